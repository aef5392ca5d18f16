"""config.toml to settings: what is right is read, and what is wrong names file, key and mend."""

import re
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

from frontdesk.accounts import mail_account
from gateway.addresses import Address
from gateway.config import ConfigError, load
from gateway.llm.model import Endpoint
from gateway.record import decode, encode
from gateway.settings import ModelSettings, Settings, WebSettings, all_secrets, endpoints, known_keys
from gateway.written import HttpUrl, Listen, Secret

EXAMPLE = Path(__file__).parent.parent / "config.example.toml"
ENVIRON = {"TOKEN": "123:tok", "KEY": "sk-key", "EMPTY": ""}


@pytest.fixture
def read(tmp_path):
    def read(text: str) -> Settings:
        (tmp_path / "config.toml").write_text(text, "utf-8")
        return load(tmp_path / "config.toml", ENVIRON)

    return read


@pytest.fixture
def refusal(tmp_path, read):
    """What is said of a file with mistakes, without the file's name before each line."""

    def refusal(text: str) -> list[str]:
        with pytest.raises(ConfigError) as raised:
            read(text)
        start = f"{tmp_path / 'config.toml'}: "
        lines = str(raised.value).split("\n")
        assert all(line.startswith(start) for line in lines)
        return [line.removeprefix(start) for line in lines]

    return refusal


# --- what is right ---------------------------------------------------------------------------------------------------


def test_only_the_secrets_that_are_needed_here_must_be_there(tmp_path):
    (tmp_path / "config.toml").write_text("""
        [model]
        name = "openai/x"
        api_key = "env:KEY"
        [mediums.telegram]
        token = "env:MISSING"
        [[sandbox.secrets]]
        name = "weather"
        host = "api.example.org"
        value = "file:missing"
    """)
    settings = load(tmp_path / "config.toml", ENVIRON, ["model"])
    assert all_secrets(settings) == ("sk-key",)
    assert settings.mediums.telegram is not None
    for needed, key in (
        ("mediums", "mediums.telegram.token"),
        ("sandbox", "[[sandbox.secrets]] no. 1 (weather): value"),
    ):
        with pytest.raises(ConfigError) as raised:
            load(tmp_path / "config.toml", ENVIRON, [needed])
        assert f"config.toml: {key}: " in str(raised.value)
        assert len(str(raised.value).split("\n")) == 1


def test_without_a_file_there_is_the_web_page_alone():
    settings = load(None, {})
    assert settings.mediums.web == WebSettings(listen=Listen("127.0.0.1", 8765))
    assert settings.mediums.telegram is None
    assert settings.model.name is None
    assert not settings.sandbox.allow_unisolated


def test_every_kind_of_value(read, tmp_path):
    settings = read("""
        [assistant]
        name = "Mina"
        timezone = "Europe/Berlin"
        [model]
        name = "openai/small"
        api_base = "http://127.0.0.1:8080/v1/"
        temperature = 0
        fallbacks = ["openai/other", "env:KEY"]
        [store]
        path = "data/desk.db"
        [mediums.web]
        listen = "[::1]:0"
        [[contacts]]
        name = "Ana"
        role = "owner"
        addresses = ["telegram:42", "email:Ana@Example.org"]
        [[contacts]]
        name = "Ben"
        addresses = ["slack:T1/U7"]
        [sandbox]
        allow_unisolated = true
    """)
    assert settings.assistant.timezone == ZoneInfo("Europe/Berlin")
    assert settings.model.api_base == HttpUrl("http://127.0.0.1:8080/v1")
    assert settings.model.temperature == 0.0
    assert settings.model.fallbacks == ("openai/other", "sk-key")
    assert settings.store.path == tmp_path / "data/desk.db"
    assert settings.mediums.web == WebSettings(listen=Listen("::1", 0))
    assert settings.contacts[0].addresses[1] == Address(medium="email", user="ana@example.org")
    assert [contact.role for contact in settings.contacts] == ["owner", "member"]
    assert settings.sandbox.allow_unisolated


def test_a_medium_is_on_when_its_table_is_there(read):
    settings = read('[mediums.telegram]\ntoken = "env:TOKEN"')
    assert settings.mediums.telegram
    assert settings.mediums.web is None
    assert read("[mediums.web]").mediums.web == WebSettings()
    assert read("[assistant]").mediums.web == WebSettings()


EMAIL = """
    [mediums.email]
    address = "Desk@example.org"
    imap_host = "imap.example.org"
    smtp_host = "smtp.example.org"
    password = "env:KEY"
    authserv_id = "mx.example.org"
"""


@pytest.mark.parametrize(("security", "ports"), [("tls", (993, 465)), ("starttls", (143, 587)), ("none", (143, 25))])
def test_a_mailbox_has_the_usual_ports(read, security, ports):
    given = read(f'{EMAIL}\nimap_security = "{security}"\nsmtp_security = "{security}"').mediums.email
    assert given
    account = mail_account(given, "Mina")
    assert (account.imap.port, account.smtp.port) == ports
    assert (account.username, account.key) == ("Desk@example.org", "email-desk-example-org")
    assert "sk-key" not in repr(account)


def test_a_mailbox_without_what_it_needs(refusal):
    assert refusal(EMAIL.replace('password = "env:KEY"', "").replace("Desk@example.org", "Desk <desk>")) == [
        'mediums.email.address: "Desk <desk>" is no mail address: write it as in "desk@example.org"',
        'mediums.email.password: is missing: add password = "env:NAME"',
    ]


def test_actors_use_the_model_of_the_conversation_key_by_key(read):
    settings = read("""
        [model]
        name = "openai/small"
        api_key = "env:KEY"
        temperature = 0.2
        [model.actor]
        name = "openai/large"
    """)
    assert settings.model.name == "openai/small"
    assert settings.actor_model.name == "openai/large"
    assert settings.actor_model.api_key == Secret("sk-key")
    assert settings.actor_model.temperature == 0.2


def test_a_key_goes_only_to_the_provider_that_it_was_given_for():
    model = ModelSettings(
        name="openai/small",
        api_base=HttpUrl("http://127.0.0.1:1"),
        api_key=Secret("sk-key"),
        fallbacks=("openai/large", "anthropic/other", "bare"),
        temperature=0.5,
    )
    first, same, other, bare = endpoints(model, "model.actor")
    assert first == Endpoint(
        name="openai/small", api_base="http://127.0.0.1:1", api_key="sk-key", temperature=0.5, section="model.actor"
    )
    assert (same.name, same.api_key, same.api_base) == ("openai/large", "sk-key", "http://127.0.0.1:1")
    assert (other.name, other.api_key, other.api_base) == ("anthropic/other", None, None)
    assert bare.api_key is None
    assert decode(encode(first), Endpoint) == first  # it has to cross to the helper process
    assert endpoints(ModelSettings(), "model") == ()


def test_a_value_comes_from_a_file(read, tmp_path):
    (tmp_path / "token").write_text("123:from-file\n")
    (tmp_path / "name").write_text("Mina\r\n")
    settings = read('[assistant]\nname = "file:name"\n[mediums.telegram]\ntoken = "file:token"')
    assert settings.mediums.telegram
    assert settings.mediums.telegram.token.reveal() == "123:from-file"
    assert settings.assistant.name == "Mina"


def test_a_file_from_an_editor_that_marks_utf_8(tmp_path):
    (tmp_path / "config.toml").write_bytes(b'\xef\xbb\xbf[assistant]\nname = "M\xc3\xaena"')
    assert load(tmp_path / "config.toml", {}).assistant.name == "Mîna"


# --- secrets ---------------------------------------------------------------------------------------------------------


def test_settings_can_be_printed_and_stored_without_a_secret(read):
    settings = read("""
        model = { name = "x", api_key = "env:KEY" }
        mediums = { telegram = { token = "env:TOKEN" }, web = { token = "web-token" } }
    """)
    for text in (repr(settings), str(settings), f"{settings.model.api_key}", encode(settings.model).decode()):
        assert not any(secret in text for secret in ("sk-key", "123:tok", "web-token"))
    assert all_secrets(settings) == ("sk-key", "123:tok", "web-token")


@pytest.mark.parametrize(
    "text",
    [
        "mediums = { telegram = '123:tok' }",
        "[mediums]\nweb = ['123:tok']",
        "[mediums.telegram]\ntoken = ['123:tok']",
        "[mediums.telegram]\ntoken = 123\ntokn = '123:tok'",
        "[model]\napi_base = '123:tok'",
        "[model]\napi_base = 'https://ana:123:tok@host'",
        "[mediums.telegram]\ntoken = 123:tok",
    ],
)
def test_a_mistake_does_not_show_what_may_be_a_secret(refusal, text):
    assert "123" not in "".join(refusal(text))


# --- what is wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[model]\nnaem = 'x'", "model.naem: there is no such key: did you mean model.name?"),
        ("[mediums.slak]", "mediums.slak: there is no such key: did you mean mediums.slack?"),
        (
            "[mediums.slack]\nbot_token = 'x'",
            "mediums.slack: has no way to hear: add app_token, or signing_secret and listen",
        ),
        (
            "[mediums.slack]\nbot_token = 'x'\nlisten = '127.0.0.1:1'",
            "mediums.slack: signing_secret and listen belong together: add the other one",
        ),
        ("[contact]", "contact: there is no such key: did you mean contacts?"),
        ("[actor_model]", "actor_model: there is no such key: did you mean model?"),
        (
            "[sandbox]\ntoken = 'x'",
            "sandbox.token: there is no such key here: "
            "it belongs under [broker] or [mediums.telegram] or [mediums.web]",
        ),
        ("[store]\nzzz = 1", "store.zzz: there is no such key: leave it out (config.example.toml shows all)"),
        ("[assistant]\nname = 5", 'assistant.name = 5: must be a text in "quotes"'),
        ("[assistant]\nname = ' '", "assistant.name: is empty: write a value, or leave the key out"),
        (
            "[assistant]\ntimezone = 'Mars/Base'",
            'assistant.timezone: there is no time zone "Mars/Base": write a name as in "Europe/Berlin"',
        ),
        (
            "[assistant]\ntimezone = '../etc/passwd'",
            'assistant.timezone: there is no time zone "../etc/passwd": write a name as in "Europe/Berlin"',
        ),
        ("[actors]\nmax_steps = 0", "actors.max_steps = 0: must be a whole number, at least 1"),
        ("[actors]\nmax_steps = true", "actors.max_steps = true: must be a whole number, at least 1"),
        ("[actors]\nmax_steps = '9'", 'actors.max_steps = "9": must be a whole number, at least 1'),
        ("[actors]\nclose_after = 30", 'actors.close_after = 30: must be a duration in "quotes", as in "12h"'),
        (
            "[actors]\nhibernate_after = 'soon'",
            'actors.hibernate_after: "soon" is no duration: write a number and s, min, h or d, as in "12h"',
        ),
        ("[actors]\nmax_minutes = 0", "actors.max_minutes = 0: must be a number, above 0"),
        ("[model]\ntemperature = 3", "model.temperature = 3: must be a number, at least 0, at most 2"),
        ("[model]\ntemperature = nan", "model.temperature = NaN: must be a number, at least 0, at most 2"),
        ("[model]\nfallbacks = 'x'", 'model.fallbacks: must be a list: write ["…", "…"]'),
        ("[model]\nfallbacks = ['x', 3]", 'model.fallbacks no. 2 = 3: must be a text in "quotes"'),
        ("[model]\nactor = 3", "model.actor: must be a table, with its keys below it"),
        ("model = 3", "model: must be a table, with its keys below it"),
        ("[sandbox]\nallow_unisolated = 'yes'", 'sandbox.allow_unisolated = "yes": must be true or false'),
        ("[access]\nunknown = 'welcome'", 'access.unknown = "welcome": must be "ignore" or "pair" or "reply"'),
        (
            "[broker]\nurl = 'redis://x'",
            'broker.url: must be "sqlite", or where a NATS server listens: write "nats://host:4222"',
        ),
        (
            "[broker]\nurl = 'nats://ana:123@x'",
            "broker.url: has a name or a password in it: leave them out; a token has its own place, broker.token",
        ),
        ("[mediums.telegram]", 'mediums.telegram.token: is missing: add token = "env:NAME"'),
        (
            "[mediums.telegram]\ntoken = 5",
            'mediums.telegram.token: must be "env:NAME", "file:PATH" or the value in "quotes"',
        ),
        (
            "[mediums.web]\nlisten = '8765'",
            'mediums.web.listen: "8765" is not host:port: write it as in "127.0.0.1:8765"',
        ),
        (
            "[model]\napi_base = 'localhost:80'",
            'model.api_base: is no address of a server: write "https://host" or "http://host:port"',
        ),
        (
            "[contacts]\nname = 'Ana'",
            "contacts: must be a list: write [[contacts]] with two brackets, once for each",
        ),
        ("contacts = [3]", "[[contacts]] no. 1: must be a table, with its keys below it"),
        (
            "[[contacts]]\nname = 'Ana'\nrole = 'boss'\naddresses = ['telegram:42']",
            '[[contacts]] no. 1 (Ana): role = "boss": must be "owner" or "member" or "guest"',
        ),
        (
            "[[contacts]]\nname = 'Ana'\nadresses = []\naddresses = ['telegram:42']",
            "[[contacts]] no. 1 (Ana): adresses: there is no such key: did you mean addresses?",
        ),
        (
            "[[contacts]]\nname = 'Ana'\naddresses = ['42']",
            "[[contacts]] no. 1 (Ana): addresses no. 1: '42' is no address: write medium:user, "
            "as in telegram:42 or email:ana@example.org",
        ),
        (
            "[[contacts]]\nname = 'Ana'\naddresses = ['telegrm:42']",
            "[[contacts]] no. 1 (Ana): addresses no. 1: there is no medium 'telegrm': "
            "write one of telegram, slack, email, web, terminal",
        ),
        *(
            (
                f"[[contacts]]\nname = 'Ana'\naddresses = ['{address}']",
                f"[[contacts]] no. 1 (Ana): addresses no. 1: nobody can have the address '{address}': write {write}",
            )
            for address, write in {
                "telegram:@ana": "their number, as in telegram:42",
                "slack:U023BECGF": "the workspace's id and theirs, as in slack:T024BE7LD/U023BECGF",
                "slack:t024/u023": "the workspace's id and theirs, as in slack:T024BE7LD/U023BECGF",
                "email:ana": "as in email:ana@example.org",
            }.items()
        ),
        ("[[contacts]]\nname = 'Ana'", '[[contacts]] no. 1 (Ana): addresses: is missing: add addresses = ["…"]'),
        (
            "[[contacts]]\nname = 'Ana'\naddresses = []",
            '[[contacts]] no. 1 (Ana): addresses: is empty: write at least one, as in ["telegram:42"]',
        ),
        (
            "[[contacts]]\nname='Ana'\naddresses=['email:A@x.org']\n[[contacts]]\nname='Ben'\naddresses=['email:a@X.org']",
            "[[contacts]] no. 2 (Ben): addresses: email:a@x.org is already Ana's: leave it out of one of them",
        ),
        (
            "[model]\napi_key = 'env:NOPE'",
            "model.api_key: environment variable NOPE is not set: export NOPE, or write the value here",
        ),
        (
            "[model]\nname = 'env:EMPTY'",
            "model.name: environment variable EMPTY is not set: export EMPTY, or write the value here",
        ),
        (
            "[model]\napi_key = 'file:/nope'",
            "model.api_key: file /nope cannot be read (No such file or directory): "
            "create it with the value in it, or write the value here",
        ),
        (
            "[store]\npath = 'file:~nobody-here/x'",
            "store.path: file XX/~nobody-here/x cannot be read (No such file or directory): "
            "create it with the value in it, or write the value here",
        ),
        (
            "a = [1,",
            "is not TOML: Invalid value (at line 1, column 8, the end of the file): "
            "often a quote or a bracket is missing there or in the line before",
        ),
        (
            "[model]\nname = openai",
            "is not TOML: Invalid value (at line 2, column 8): "
            "often a quote or a bracket is missing there or in the line before",
        ),
    ],
)
def test_a_mistake_names_the_key_and_the_mend(refusal, tmp_path, text, said):
    assert refusal(text) == [said.replace("XX", str(tmp_path))]


def test_all_mistakes_come_at_once(refusal):
    assert (
        len(refusal("[model]\nnaem = 1\ntemperature = 'x'\n[model.actor]\nname = 3\n[stor]\n[actors]\nmax_steps = 1.5"))
        == 5
    )


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read \(No such file or directory\): name a file"):
        load(tmp_path / "none.toml", {})
    (tmp_path / "latin.toml").write_bytes(b'name = "M\xeena"')
    with pytest.raises(ConfigError, match=r"latin\.toml: is not UTF-8 \(byte 9\): save it"):
        load(tmp_path / "latin.toml", {})


# --- config.example.toml ---------------------------------------------------------------------------------------------


def uncommented() -> str:
    return re.sub(r"^#(?=[\[a-z])", "", EXAMPLE.read_text("utf-8"), flags=re.MULTILINE)


def test_the_example_as_it_stands_changes_nothing():
    default = load(None, {})
    settings = load(EXAMPLE, {})
    beside = msgspec.structs.replace(default.store, path=EXAMPLE.parent / default.store.path)
    assert settings == msgspec.structs.replace(default, store=beside)


def test_the_example_is_right_in_every_line(tmp_path):
    (tmp_path / "config.toml").write_text(uncommented(), "utf-8")
    names = re.findall(r'"env:(\w+)"', uncommented())
    assert load(tmp_path / "config.toml", dict.fromkeys(names, "x")).contacts


def test_the_example_shows_every_key():
    table, shown = "", set()
    for line in uncommented().splitlines():
        if found := re.match(r"\[+([\w.]+)\]+", line):
            table = found[1]
        elif found := re.match(r"(\w+) = ", line):
            shown.add(f"{table}.{found[1]}")
    assert shown == set(known_keys())
