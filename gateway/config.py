"""From config.toml to settings. An error names the file, the key and the mend, and all errors come at once.

The only place that knows TOML, `env:NAME` and `file:PATH`. What can be set, and to what, stands in settings.py; nothing
here decides what a setting does.
"""

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from gateway.addresses import Address
from gateway.quiet import QuietHours, quiet_hours
from gateway.settings import (
    CappedModelSettings,
    MediumsSettings,
    ModelSettings,
    Settings,
    StoreSettings,
    Table,
    WebSettings,
    known_keys,
    without_none,
)
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
    broker_url,
    contact_address,
    duration,
    host_name,
    host_pattern,
    http_url,
    mail_address,
    package_name,
    place,
)

_SHOWN_CHARACTERS = 40
_WRITE = {
    str: 'a text in "quotes"',
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    timedelta: 'a duration in "quotes", as in "12h"',
}


class ConfigError(Exception):
    """What is wrong with a file of settings, a line for each mistake, in words for who wrote it. Shows no secret."""


def load(path: Path | None, environ: Mapping[str, str], secrets_of: Collection[str] | None = None) -> Settings:
    """The settings in `path`, or the defaults for None. Relative paths in a file start where the file is.

    `secrets_of` are the tables whose secrets must be there, None for all; any other that is not there is empty.
    Raises ConfigError.
    """
    if path is None:
        return Settings()
    reader = _Reader(path, environ, secrets_of)
    settings = reader.settings(_parsed(path))
    if reader.mistakes:
        raise ConfigError("\n".join(f"{path}: {mistake}" for mistake in reader.mistakes))
    if settings.store == StoreSettings():  # beside the file too, whatever folder a command runs in
        store = StoreSettings(path=path.parent / settings.store.path)
        settings = msgspec.structs.replace(settings, store=store)
    return settings


def _parsed(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        mend = "name a file that exists, with --config"
        raise ConfigError(f"{path}: cannot be read ({error.strerror}): {mend}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 (byte {error.start}): save it as UTF-8") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        lines = text.split("\n")
        end = f"at line {len(lines)}, column {len(lines[-1]) + 1}, the end of the file"
        what = str(error).replace("at end of document", end)
        mend = "often a quote or a bracket is missing there or in the line before"
        raise ConfigError(f"{path}: is not TOML: {what}: {mend}") from error


class _Reader:
    """One reading of one file: gathers mistakes instead of stopping at the first.

    What has a mistake is left out of the values, so settings are only good when there is none.
    """

    def __init__(self, path: Path, environ: Mapping[str, str], secrets_of: Collection[str] | None) -> None:
        self.mistakes: list[str] = []
        self._secrets_of = secrets_of
        self._folder = path.parent
        self._environ = environ
        self._parse: dict[Any, Callable[[str], Any]] = {
            Address: contact_address,
            HostName: host_name,
            HostPattern: host_pattern,
            Place: place,
            PackageName: package_name,
            BrokerUrl: broker_url,
            HttpUrl: http_url,
            Listen: Listen.parse,
            MailAddress: mail_address,
            Path: self._path,
            QuietHours: quiet_hours,
            Secret: Secret,
            ZoneInfo: _timezone,
            timedelta: duration,
        }

    def settings(self, raw: dict[str, Any]) -> Settings:
        given = self._table(Settings, {key: value for key, value in raw.items() if key != "model"}, "")
        given |= self._models(raw.get("model", {}))
        if self.mistakes:
            return Settings()
        settings = Settings(**given)
        if settings.mediums == MediumsSettings():
            settings = msgspec.structs.replace(settings, mediums=MediumsSettings(web=WebSettings()))
        self.mistakes += _contradictions(settings)
        return settings

    def _models(self, raw: Any) -> dict[str, ModelSettings]:
        if not isinstance(raw, dict):
            self.mistakes.append("model: must be a table, with its keys below it")
            return {}
        model = self._table(CappedModelSettings, {key: value for key, value in raw.items() if key != "actor"}, "model")
        actor = self._table(ModelSettings, raw.get("actor", {}), "model.actor")
        same = {key: value for key, value in model.items() if key in ModelSettings.__struct_fields__}
        return {"model": CappedModelSettings(**model), "actor_model": ModelSettings(**same | actor)}

    def _table(self, kind: type[Table], raw: Any, where: str) -> dict[str, Any]:
        """What is given and right, by key."""
        if not isinstance(raw, dict):
            self.mistakes.append(f"{where}: must be a table, with its keys below it")
            return {}
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        values: dict[str, Any] = {}
        for key, value in raw.items():
            dotted = _join(where, key)
            if key not in fields:
                self.mistakes.append(f"{dotted}: {_unknown(fields, key, where)}")
            else:
                for read in self._value(fields[key].type, value, dotted):
                    values[key] = read
        for key, field in fields.items():
            if field.required and key not in raw:
                self.mistakes.append(f"{_join(where, key)}: is missing: add {key} = {_example(field.type)}")
        return values

    def _value(self, kind: Any, raw: Any, where: str) -> Iterator[Any]:
        """One value of this kind, or none and a mistake."""
        kind = without_none(kind)
        if isinstance(kind, type) and issubclass(kind, Table):
            before = len(self.mistakes)
            values = self._table(kind, raw, where)
            if len(self.mistakes) == before:
                yield kind(**values)
        elif get_origin(kind) is tuple:
            yield from self._list(get_args(kind)[0], raw, where)
        else:
            yield from self._leaf(kind, raw, where)

    def _list(self, kind: Any, raw: Any, where: str) -> Iterator[tuple[Any, ...]]:
        of_tables = isinstance(kind, type) and issubclass(kind, Table)
        if not isinstance(raw, list):
            write = f"[[{where}]] with two brackets, once for each" if of_tables else '["…", "…"]'
            self.mistakes.append(f"{where}: must be a list: write {write}")
            return
        items: list[Any] = []
        for number, item in enumerate(raw, 1):
            items += self._value(kind, item, _label(where, number, item) if of_tables else f"{where} no. {number}")
        yield tuple(items)

    def _leaf(self, kind: Any, raw: Any, where: str) -> Iterator[Any]:
        try:
            value = self._looked_up(raw) if isinstance(raw, str) else raw
            parse = self._parse.get(kind)
            plain = msgspec.convert(value, str if parse else kind, strict=True)
            yield parse(plain) if parse else plain
        except msgspec.ValidationError:
            self.mistakes.append(f"{where}{_shown(raw) if kind is not Secret else ''}: must be {_write(kind)}")
        except ValueError as error:
            if kind is Secret and not self._needed(where):
                yield Secret("")
            else:
                self.mistakes.append(f"{where}: {error}")

    def _needed(self, where: str) -> bool:
        table = where.lstrip("[")
        return self._secrets_of is None or any(table.startswith(f"{one}.") for one in self._secrets_of)

    def _looked_up(self, text: str) -> str:
        source, colon, name = text.partition(":")
        if colon and source == "env":
            value = self._environ.get(name, "")
            mend = f"environment variable {name} is not set: export {name}, or write the value here"
        elif colon and source == "file":
            value, mend = self._file_text(name)
        else:
            value, mend = text, "is empty: write a value, or leave the key out"
        if not value.strip():
            raise ValueError(mend)
        return value

    def _file_text(self, name: str) -> tuple[str, str]:
        path = self._path(name)
        try:
            return path.read_text("utf-8").strip(), f"file {path} is empty: write the value in it"
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            return "", f"file {path} cannot be read ({reason}): create it with the value in it, or write the value here"

    def _path(self, text: str) -> Path:
        return self._folder / os.path.expanduser(text)


def _contradictions(settings: Settings) -> list[str]:
    """What is right key by key, and wrong together."""
    found = []
    owners: dict[Address, str] = {}
    for number, contact in enumerate(settings.contacts, 1):
        label = f"[[contacts]] no. {number} ({contact.name})"
        if not contact.addresses:
            found.append(f'{label}: addresses: is empty: write at least one, as in ["telegram:42"]')
        for address in contact.addresses:
            if address in owners:
                found.append(
                    f"{label}: addresses: {address} is already {owners[address]}'s: leave it out of one of them"
                )
            owners.setdefault(address, contact.name)
    slack = settings.mediums.slack
    if slack is not None and (slack.signing_secret is None) != (slack.listen is None):
        found.append("mediums.slack: signing_secret and listen belong together: add the other one")
    elif slack is not None and slack.app_token is None and slack.signing_secret is None:
        found.append("mediums.slack: has no way to hear: add app_token, or signing_secret and listen")
    return found


def _timezone(text: str) -> ZoneInfo:
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f'there is no time zone "{text}": write a name as in "Europe/Berlin"') from None


# --- words for who wrote the file ------------------------------------------------------------------------------------


def _unknown(keys: Iterable[str], key: str, where: str) -> str:
    near = difflib.get_close_matches(key, sorted(name for name in keys if name.isidentifier()), 1)
    if near:
        return f"there is no such key: did you mean {near[0] if where.startswith('[[') else _join(where, near[0])}?"
    tables = [f"[{known.rpartition('.')[0]}]" for known in known_keys() if known.endswith(f".{key}")]
    if tables:
        return f"there is no such key here: it belongs under {' or '.join(tables)}"
    return "there is no such key: leave it out (config.example.toml shows all)"


def _join(where: str, key: str) -> str:
    if not where:
        return key
    return f"{where}: {key}" if where.startswith("[[") else f"{where}.{key}"


def _label(where: str, number: int, raw: Any) -> str:
    name = raw.get("name") if isinstance(raw, dict) else None
    return f"[[{where}]] no. {number}" + (f" ({name})" if isinstance(name, str) else "")


def _shown(raw: Any) -> str:
    """A short plain value as it stands in the file; nothing where a password may be in it."""
    text = json.dumps(raw, ensure_ascii=False) if isinstance(raw, str | int | float) else ""
    return f" = {text}" if text and len(text) <= _SHOWN_CHARACTERS and "://" not in text else ""


def _write(kind: Any) -> str:
    """What belongs there, in words."""
    if get_origin(kind) is Literal:
        return " or ".join(f'"{choice}"' for choice in get_args(kind))
    if get_origin(kind) is Annotated:
        plain, bounds = get_args(kind)
        limits = {"above": bounds.gt, "at least": bounds.ge, "at most": bounds.le}
        return ", ".join([_write(plain), *(f"{word} {limit}" for word, limit in limits.items() if limit is not None)])
    if kind is Secret:
        return '"env:NAME", "file:PATH" or the value in "quotes"'
    return _WRITE.get(kind, _WRITE[str])


def _example(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return '["…"]'
    return '"env:NAME"' if kind is Secret else '"…"'
