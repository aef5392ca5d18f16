"""Whether requests go through a proxy. Which one, and for which hosts, is aiohttp's to read from the environment."""

from urllib.request import getproxies


def has_proxies() -> bool:
    """For `trust_env`: with it aiohttp looks for them with each request, in two threads."""
    return bool(getproxies())
