"""How Slack is reached over HTTP, and what it means when it is not."""

import logging

import aiohttp

from mediums.proxies import has_proxies
from mediums.slack.failures import Unreachable

CONNECT_SECONDS = 5.0
CALLS_AT_ONCE = 16

_NEVER_LEFT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)

for _name in ("slack_sdk", "mediums.slack.client", "mediums.slack.connection"):
    if logging.getLogger(_name).level == logging.NOTSET:  # else `gateway.logs` has decided, and hides the tokens
        logging.getLogger(_name).setLevel(logging.WARNING)


def session(seconds: float | None) -> aiohttp.ClientSession:
    """Reads proxies from the environment, as the rest of the gateway does."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=CALLS_AT_ONCE),
        timeout=aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS),
        trust_env=has_proxies(),
    )


def unreachable(error: Exception) -> Unreachable:
    """The request never left if there was no connection for it."""
    never_left = isinstance(error, _NEVER_LEFT)
    what = type(error).__name__
    reason = error.strerror if isinstance(error, OSError) and error.strerror else ""
    return Unreachable(why=f"{what}: {reason}" if reason else what, left=not never_left)
