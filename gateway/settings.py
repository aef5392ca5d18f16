"""What can be set: the tables of config.toml as frozen values with their defaults. Reading a file is config.py's.

A key is here when this version acts on it, and config.example.toml explains it.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from zoneinfo import ZoneInfo

import msgspec

from gateway.addresses import Address
from gateway.llm.model import Endpoint
from gateway.quiet import QuietHours
from gateway.written import (
    BrokerUrl,
    HostName,
    HostPattern,
    HttpUrl,
    Listen,
    MailAddress,
    PackageName,
    Place,
    Secret,
)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of config.toml."""


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
    return tuple(dict.fromkeys(value for secret in _secrets(settings) if (value := secret.reveal())))


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
