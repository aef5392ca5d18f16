"""How somebody is written to at an address from which they never wrote: by a mail of its own, or in a private chat."""

from collections.abc import Callable

from frontdesk.accounts import mail_account
from gateway.addresses import Address, Route
from gateway.settings import Settings


def reach(settings: Settings, is_account: Callable[[str], bool]) -> Callable[[Address], Route | None]:
    """None where only an answer goes, or nothing. On Slack: only in a workspace that is an account here."""
    mediums = settings.mediums
    ways: dict[str, Callable[[str], Route | None]] = {}
    if (email := mediums.email) is not None:
        mailbox = mail_account(email, settings.assistant.name).key
        ways["email"] = lambda user: Route(medium="email", account=mailbox, place=f"mailto:{user}")
    if (telegram := mediums.telegram) is not None:
        bot = f"telegram-{telegram.token.reveal().partition(':')[0]}"
        ways["telegram"] = lambda user: Route(medium="telegram", account=bot, place=user)

    def on_slack(user: str) -> Route | None:
        team, _, person = user.partition("/")
        account = f"slack-{team}"
        return Route(medium="slack", account=account, place=person) if is_account(account) else None

    if mediums.slack is not None:
        ways["slack"] = on_slack
    return lambda address: ways[address.medium](address.user) if address.medium in ways and address.vouched else None
