"""What can be set: the tables of config.toml as frozen values with their defaults. Reading a file is config.py's.

A key is here when this version acts on it, and config.example.toml explains it.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from gateway.addresses import Address
from gateway.llm.model import Endpoint
from gateway.package_names import wanted
from gateway.quiet import QuietHours


class Secret:
    """A value that no log, no traceback and no printed settings show. `reveal` is for the one call that needs it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


HttpUrl = NewType("HttpUrl", str)


def http_url(text: str) -> HttpUrl:
    """An http or https address, without a slash at its end. Raises ValueError for any other, and for a password in it.

    The error does not repeat the text: a key may stand in it.
    """
    url = urlsplit(text)
    if url.username or url.password:
        raise ValueError("has a name or a password in it: leave them out; a key has its own place")
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ValueError('is no address of a server: write "https://host" or "http://host:port"')
    return HttpUrl(text.rstrip("/"))


MailAddress = NewType("MailAddress", str)


def mail_address(text: str) -> MailAddress:
    """Raises ValueError."""
    local, at, domain = text.strip().rpartition("@")
    if not (local and at and domain) or any(character in ' ,;<>"' for character in text.strip()):
        raise ValueError(f'"{text}" is no mail address: write it as in "desk@example.org"')
    return MailAddress(text.strip())


_DURATION = re.compile(r"(\d{1,6}(?:\.\d+)?)\s*(s|min|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}


def duration(text: str) -> timedelta:
    """A number and its unit: `90s`, `15min`, `12h`, `30d`. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or float(found[1]) == 0:
        raise ValueError(f'"{text}" is no duration: write a number and s, min, h or d, as in "12h"')
    return timedelta(seconds=float(found[1]) * _SECONDS[found[2]])


HostPattern = NewType("HostPattern", str)


def host_pattern(text: str) -> HostPattern:
    """A host's name; `*.` and a name, for all below it; `*` for all. Raises ValueError for anything else."""
    name = text.lower().removeprefix("*.")
    if text != "*" and not re.fullmatch(r"([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)+[a-z][a-z0-9-]*", name):
        raise ValueError(f'"{text}" is no name of a host: write it as in "api.example.org" or "*.example.org"')
    return HostPattern(text.lower())


Place = NewType("Place", str)


def place(text: str) -> Place:
    """`slack:C024BE91L`, `telegram:-1001234`. Raises ValueError."""
    medium, colon, room = text.strip().partition(":")
    if not (medium in ("slack", "telegram", "email") and colon and room):
        raise ValueError(f'"{text}" is no place: write medium:room, as in "slack:C024BE91L" or "telegram:-1001234"')
    return Place(text.strip())


HostName = NewType("HostName", str)


def host_name(text: str) -> HostName:
    """One host's own name. Raises ValueError for a pattern, and for anything else."""
    if "*" in text:
        raise ValueError(f'"{text}" is several hosts: write the name of the one that it is for')
    return HostName(host_pattern(text))


PackageName = NewType("PackageName", str)


def package_name(text: str) -> PackageName:
    """With versions, if need be; `*` for any. Raises ValueError."""
    return PackageName(text if text == "*" else wanted(text))


BrokerUrl = NewType("BrokerUrl", str)


def broker_url(text: str) -> BrokerUrl:
    """ "sqlite", or the address of a NATS server. Raises ValueError, without the text: a password may stand in it."""
    if text == "sqlite":
        return BrokerUrl(text)
    url = urlsplit(text)
    if url.username or url.password:
        raise ValueError("has a name or a password in it: leave them out; a token has its own place, broker.token")
    if url.scheme not in ("nats", "tls") or not url.hostname or url.path.strip("/"):
        raise ValueError('must be "sqlite", or where a NATS server listens: write "nats://host:4222"')
    return BrokerUrl(text.rstrip("/"))


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of config.toml."""


class Listen(msgspec.Struct, frozen=True):
    """Where a server listens. Port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Listen":
        """`host:port`, with an IPv6 host in brackets. Raises ValueError."""
        host, colon, port = text.rpartition(":")
        if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
            raise ValueError(f'"{text}" is not host:port: write it as in "127.0.0.1:8765"')
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


class AssistantSettings(Table, frozen=True, kw_only=True):
    name: str = "Frontdesk"
    timezone: ZoneInfo = ZoneInfo("UTC")


class ModelSettings(Table, frozen=True, kw_only=True):
    """`name` is None when no model is set up."""

    name: str | None = None
    api_base: HttpUrl | None = None
    api_key: Secret | None = None
    fallbacks: tuple[str, ...] = ()
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    tool_calls: Literal["auto", "native", "schema"] = "auto"


class CappedModelSettings(ModelSettings, frozen=True, kw_only=True):
    """The conversation's. The caps, None for none, are for it and the actors' together."""

    max_usd_per_day: Annotated[float, msgspec.Meta(gt=0)] | None = None
    max_usd_per_person_per_day: Annotated[float, msgspec.Meta(gt=0)] | None = None


class StoreSettings(Table, frozen=True, kw_only=True):
    path: Path = Path("frontdesk.db")


class BrokerSettings(Table, frozen=True, kw_only=True):
    """`token` is what the NATS server asks for, if it does."""

    url: BrokerUrl = BrokerUrl("sqlite")
    token: Secret | None = None


class TelegramSettings(Table, frozen=True, kw_only=True):
    token: Secret
    api_base: HttpUrl = HttpUrl("https://api.telegram.org")


class SlackSettings(Table, frozen=True, kw_only=True):
    """Called over HTTP at `listen` where there is a `signing_secret`, else in Socket Mode with `app_token`."""

    bot_token: Secret
    app_token: Secret | None = None
    signing_secret: Secret | None = None
    listen: Listen | None = None
    api_base: HttpUrl = HttpUrl("https://slack.com/api")


MailSecurity = Literal["tls", "starttls", "none"]
IMAP_PORTS: dict[MailSecurity, int] = {"tls": 993, "starttls": 143, "none": 143}
SMTP_PORTS: dict[MailSecurity, int] = {"tls": 465, "starttls": 587, "none": 25}
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class EmailSettings(Table, frozen=True, kw_only=True):
    """A port of None is the usual one for its security, a username of None the address."""

    address: MailAddress
    imap_host: str
    imap_port: Port | None = None
    imap_security: MailSecurity = "tls"
    smtp_host: str
    smtp_port: Port | None = None
    smtp_security: MailSecurity = "tls"
    username: str | None = None
    password: Secret
    authserv_id: str
    ca_file: Path | None = None


class WebSettings(Table, frozen=True, kw_only=True):
    """A `token` of None asks for one to be made: there is no page without."""

    listen: Listen = Listen("127.0.0.1", 8765)
    token: Secret | None = None


class MediumsSettings(Table, frozen=True, kw_only=True):
    """A medium is on when its table is in the file. A file without any has the web page."""

    telegram: TelegramSettings | None = None
    slack: SlackSettings | None = None
    email: EmailSettings | None = None
    web: WebSettings | None = None


class ContactSettings(Table, frozen=True, kw_only=True):
    name: str
    addresses: tuple[Address, ...]
    role: Literal["owner", "member", "guest"] = "member"
    timezone: ZoneInfo | None = None
    language: str = ""
    quiet_hours: QuietHours | None = None
    urgent_questions: bool = False


Unknown = Literal["ignore", "pair", "reply"]


class AccessSettings(Table, frozen=True, kw_only=True):
    """What becomes of strangers: `unknown`, or what their medium says."""

    unknown: Unknown = "ignore"
    telegram: Unknown | None = None
    slack: Unknown | None = None
    email: Unknown | None = None


class PlaceSettings(Table, frozen=True, kw_only=True):
    """A shared place. `ambient`: the model hears all that is said there, and decides whether it is its business."""

    place: Place
    ambient: bool = False


class ActorsSettings(Table, frozen=True, kw_only=True):
    """`max_steps` to `max_minutes` bound one action, with all that it starts, since a person's last word to it: at each
    it asks. The others say how long an idle session is kept, and how."""

    max_steps: Annotated[int, msgspec.Meta(ge=1)] = 60
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 3_000_000
    max_usd: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    max_minutes: Annotated[float, msgspec.Meta(gt=0)] = 120.0
    max_live: Annotated[int, msgspec.Meta(ge=1)] = 20
    hibernate_after: timedelta = timedelta(hours=12)
    close_after: timedelta = timedelta(days=30)


class GrantSettings(Table, frozen=True, kw_only=True):
    """A secret that the host uses for actors' code in requests to `host`, and that the code never sees."""

    name: str
    host: HostName
    value: Secret
    header: str = "Authorization"


class SandboxSettings(Table, frozen=True, kw_only=True):
    """`allow_unisolated` must be said: code then runs in a plain child process, and the other keys bind nobody.

    `allow`: the names of hosts that the proxy lets through, `*.` before one for all below it. `python` None looks for
    one that others than the gateway's user can read. `packages`: what all code can import; None is our own choice.
    `install`: what more it may have installed, `*` for anything.
    """

    allow_unisolated: bool = False
    network: Literal["none", "proxy", "host"] = "proxy"
    allow: tuple[HostPattern, ...] = ()
    python: Path | None = None
    memory_mb: Annotated[int, msgspec.Meta(ge=256)] = 2048
    disk_mb: Annotated[int, msgspec.Meta(ge=64)] = 2048
    secrets: tuple[GrantSettings, ...] = ()
    packages: tuple[PackageName, ...] | None = None
    install: tuple[PackageName, ...] = ()


class Settings(Table, frozen=True, kw_only=True):
    """All of config.toml. `model` is the conversation's; `actor_model` has each key from [model.actor] or else from
    [model]."""

    assistant: AssistantSettings = AssistantSettings()
    model: CappedModelSettings = CappedModelSettings()
    actor_model: ModelSettings = msgspec.field(default=ModelSettings(), name="model.actor")
    store: StoreSettings = StoreSettings()
    broker: BrokerSettings = BrokerSettings()
    mediums: MediumsSettings = MediumsSettings(web=WebSettings())
    contacts: tuple[ContactSettings, ...] = ()
    access: AccessSettings = AccessSettings()
    places: tuple[PlaceSettings, ...] = ()
    actors: ActorsSettings = ActorsSettings()
    sandbox: SandboxSettings = SandboxSettings()


def endpoints(model: ModelSettings, section: str) -> tuple[Endpoint, ...]:
    """The model and its fallbacks in their order, or none. `section` is the table that an error sends the operator to.

    A key goes to the provider that it was given for: a fallback of another one has what litellm finds by itself.
    """
    if model.name is None:
        return ()
    key = model.api_key.reveal() if model.api_key else None
    provider = _provider(model.name)
    return tuple(
        Endpoint(
            name=name,
            api_base=model.api_base if _provider(name) == provider else None,
            api_key=key if _provider(name) == provider else None,
            temperature=model.temperature,
            section=section,
        )
        for name in (model.name, *model.fallbacks)
    )


def _provider(name: str) -> str:
    return name.rpartition("/")[0].partition("/")[0]


def all_secrets(settings: Settings) -> tuple[str, ...]:
    """Every secret value that is set, for what must hide them."""
    return tuple(dict.fromkeys(secret.reveal() for secret in _secrets(settings)))


def _secrets(value: Any) -> Iterator[Secret]:
    if isinstance(value, Secret):
        yield value
    elif isinstance(value, Table):
        for name in value.__struct_fields__:
            yield from _secrets(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from _secrets(item)


def known_keys(kind: type[Table] = Settings, where: str = "") -> Iterator[str]:
    """Every key that can be set, dotted."""
    for field in msgspec.structs.fields(kind):
        inner = without_none(field.type)
        inner = get_args(inner)[0] if get_origin(inner) is tuple else inner
        dotted = f"{where}.{field.encode_name}" if where else field.encode_name
        if isinstance(inner, type) and issubclass(inner, Table):
            yield from known_keys(inner, dotted)
        else:
            yield dotted


def without_none(kind: Any) -> Any:
    """The type that a key's value has when it is given."""
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    return kind
