"""How somebody is written to at an address from which they never wrote: by a mail of its own, or in a private chat."""

from collections.abc import Callable

from frontdesk.accounts import mail_account
from gateway.addresses import Address, Route
from gateway.settings import Settings


def reach(settings: Settings) -> Callable[[Address], Route | None]:
    """None where only an answer goes, or nothing."""
    mediums = settings.mediums
    ways: dict[str, Callable[[str], Route]] = {}
    if (email := mediums.email) is not None:
        mailbox = mail_account(email, settings.assistant.name).key
        ways["email"] = lambda user: Route(medium="email", account=mailbox, place=f"mailto:{user}")
    if (telegram := mediums.telegram) is not None:
        bot = f"telegram-{telegram.token.reveal().partition(':')[0]}"
        ways["telegram"] = lambda user: Route(medium="telegram", account=bot, place=user)
    return lambda address: ways[address.medium](address.user) if address.medium in ways and address.vouched else None
