"""The program that the host starts: loads this folder as a package of its own name, and becomes the zygote.

The folder is not put on `sys.path`: inside the sandbox `import session` must find the user's file, never ours.
"""

import importlib
import importlib.util
import os
import sys

PACKAGE = "_frontdesk_worker"


def main() -> None:
    here = os.path.dirname(os.path.realpath(__file__))
    spec = importlib.util.spec_from_file_location(PACKAGE, f"{here}/__init__.py", submodule_search_locations=[here])
    if spec is None:
        raise ImportError(f"no worker in {here}")
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    later = importlib.import_module(f"{PACKAGE}.later")
    tls = ("ssl", "asyncio.sslproto") if importlib.util.find_spec("_ssl") else ()
    with later.put_off(*tls):  # asyncio imports them, with OpenSSL 2 MB, which few idle sessions need
        zygote = importlib.import_module(f"{PACKAGE}.zygote")
    zygote.main()


if __name__ == "__main__":
    main()
