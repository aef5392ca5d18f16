"""Which broker the settings ask for, opened; and which roles a process may have on it."""

import hashlib
import importlib
import logging
import socket
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from gateway.addresses import journal_key
from gateway.broker.protocol import Broker, BrokerUnusable
from gateway.broker.sqlite import SqliteBroker
from gateway.settings import Settings

log = logging.getLogger(__name__)
ROLES = ("mediums", "brain", "actors")
NATS_PY = "nats-py>=2.16"


def is_shared(settings: Settings) -> bool:
    """Several processes may work on it."""
    return settings.broker.url != "sqlite"


def workspaces(store: Path) -> Path:
    """A folder for each action, beside the store."""
    path = store.resolve()
    return path.parent / f"{path.name}.actions"


def machine_of(store: Path) -> str:
    """Where sandboxes and views can be found again: this machine, and the folder in which they are."""
    folder = hashlib.sha256(str(workspaces(store)).encode()).hexdigest()[:8]
    return f"{journal_key(socket.gethostname())}-{folder}"


def check(settings: Settings, roles: Collection[str]) -> None:
    """Whether it can be opened for these roles at all. Raises BrokerUnusable."""
    if is_shared(settings):
        try:
            importlib.import_module("nats")
        except ImportError as error:
            command = f'{sys.executable} -m pip install "{NATS_PY}"'
            raise BrokerUnusable(
                f'[broker] url = "{settings.broker.url}" needs the package nats-py: {command}'
            ) from error
    if not is_shared(settings) and {*roles} != {*ROLES}:
        raise BrokerUnusable(
            f'--roles {",".join(roles)} is for several processes, and [broker] url = "sqlite" is a file that one '
            'process has alone: leave --roles out, or set [broker] url = "nats://host:4222".'
        )


async def open_broker(settings: Settings, operator: Callable[[str], None] = log.error) -> Broker:
    """`operator` hears when it can no longer be written. Raises BrokerUnusable."""
    if not is_shared(settings):
        return SqliteBroker(settings.store.path, operator)
    from gateway.broker.nats import JetStreamBroker

    token = settings.broker.token.reveal() if settings.broker.token else None
    return await JetStreamBroker.connect(settings.broker.url, token=token)
