# make demo    a conversation, without any account or key
# make test    the tests (all but the long ones)
# make check   format, lint, types and imports, then the tests
# make bench   the figures, as a table
# make eval-local   the scenarios and a whole conversation with a small real model (fetches 1.1 GB once; an hour at most)
# make soak    the long property and kill runs
# make lock    all lock files anew, with the newest versions that fit
# make clean   .venv, caches and builds away; settings and conversations stay
#
# Everything runs in .venv, which is made on first use from the lock files, each download checked against its hash.

PYTHONS = python3.11 python3.12 python3.13 python3
UV = $(firstword $(wildcard .venv/bin/uv) uv)
PIP = .venv/bin/python -m pip --quiet --disable-pip-version-check
COMPILE = $(UV) pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url --no-header \
	--python-version 3.11 pyproject.toml

.PHONY: demo test lint check bench eval-local soak lock clean

demo: .venv/.run
	@.venv/bin/frontdesk demo

test: .venv/.dev
	.venv/bin/python -m pytest -n 3 --dist worksteal -m "not soak"

lint: .venv/.dev
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

check: lint
	@$(MAKE) --no-print-directory test

bench: .venv/.dev
	.venv/bin/python -m bench

eval-local: .venv/.dev
	.venv/bin/python -m bench.local $(EVAL)

soak: .venv/.dev
	SOAK=1 .venv/bin/python -m pytest -n 2 -m soak

lock:
	$(COMPILE) --group build --output-file requirements.lock
	$(COMPILE) --group dev --constraint requirements.lock --output-file requirements-dev.lock
	$(UV) pip compile --quiet --universal --upgrade --generate-hashes --no-emit-index-url --no-header --no-annotate \
		--python-version 3.11 actors/sandbox/packages/curated.in --output-file actors/sandbox/packages/curated.lock

clean:
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The dev lock holds all of the run lock, in the same versions: who has it needs no second install.
.venv/.dev: requirements-dev.lock pyproject.toml | .venv/.made
	@echo "Installing Frontdesk and its workshop in .venv (once, a minute or two)"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@ .venv/.run

.venv/.run: requirements.lock pyproject.toml | .venv/.made
	@echo "Installing Frontdesk in .venv (once, about a minute)"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.made:
	@for python in $(PYTHON) $(PYTHONS) ""; do \
		$${python:-false} -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>&- && break; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Frontdesk needs Python 3.11 or newer with its venv module: apt-get install python3-venv" >&2; exit 1; \
	fi; \
	$$python -m venv .venv && touch $@
