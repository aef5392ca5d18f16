"""What Slack needs to call at an address of ours. Apart from the server itself, which is slow to import."""

from gateway.record import Record


class Door(Record, frozen=True, kw_only=True):
    """Where Slack's requests arrive, mostly from a proxy that ends TLS, and the secret that they are signed with."""

    host: str
    port: int
    signing_secret: str
