"""What goes wrong between here and the mail servers, what it means for a message, and the words for it. Pure."""

from gateway.outbox import OutcomeUnknown, Rejected, SurelyNotSent

LOGIN_RETRY_SECONDS = 30.0

_WANTS_A_LOGIN = (530, 534, 535, 538)

LOGIN = "set mediums.email.username and mediums.email.password (many providers want an app password)"


class MailboxFailed(Exception):
    """The IMAP connection cannot be had, or is of no more use. `patience` asks for a long pause before the next."""

    def __init__(self, why: str, *, patience: bool = False) -> None:
        super().__init__(why)
        self.patience = patience


def unreachable(what: str, server: object, why: str) -> str:
    key = what.lower()
    mend = f"check mediums.email.{key}_host, {key}_port and {key}_security"
    return f"the {what} server {server} cannot be reached ({why}): {mend}"


def certificate(what: str, server: object, why: str) -> str:
    return (
        f"the {what} server {server} shows a certificate that is not trusted ({why}): set mediums.email.ca_file, or "
        f"correct mediums.email.{what.lower()}_host"
    )


def login_refused(what: str, server: object, words: str) -> str:
    return f"the {what} server {server} refused the login ({words}): {LOGIN}"


def refused(code: int, words: str, who: str) -> SurelyNotSent | Rejected:
    """The server's answer to a step before the mail was taken: https://www.rfc-editor.org/rfc/rfc5321#section-4.2.1"""
    text = f"the mail server answered {code} for {who}: {one_line(words)}"
    if code in _WANTS_A_LOGIN:
        return SurelyNotSent(f"{text}: {LOGIN}", LOGIN_RETRY_SECONDS)
    return SurelyNotSent(text) if 400 <= code < 500 else Rejected(text)


def lost_after_data(who: str, why: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"the connection ended while the mail to {who} was handed over ({why}): it may have arrived")


def one_line(text: str) -> str:
    return " ".join(text.split())[:300]
