"""Trying both servers without changing anything, for whoever sets them up."""

from email.parser import BytesHeaderParser
from email.policy import compat32

from gateway.outbox import SurelyNotSent
from mediums.email import identity
from mediums.email.account import Account
from mediums.email.failures import MailboxFailed
from mediums.email.headers import Fields
from mediums.medium import Health

HEADERS_READ = 10


async def try_imap(account: Account, call_seconds: float) -> Health:
    """Whether the mailbox opens, and whether the newest mails in it bear the name that the settings trust."""
    from mediums.email.imap import Mailbox

    try:
        mailbox = await Mailbox.open(account, call_seconds, lambda: None)
        try:
            headers = await mailbox.newest_headers(HEADERS_READ)
        finally:
            await mailbox.close()
    except MailboxFailed as error:
        return Health(well=False, text=str(error))
    parsed = [Fields(BytesHeaderParser(policy=compat32).parsebytes(header)) for header in headers]
    return _vouched(account, parsed)


async def try_smtp(account: Account, call_seconds: float) -> Health:
    from mediums.email.smtp import logged_in

    try:
        async with logged_in(account, call_seconds):
            return Health(well=True, text=f"{account.smtp} lets {account.username} in")
    except SurelyNotSent as error:
        return Health(well=False, text=str(error))


def _vouched(account: Account, mails: list[Fields]) -> Health:
    opened = f"{account.imap} opens the INBOX of {account.username}"
    names = [name for fields in mails for name in identity.servers(fields) if name]
    if not mails:
        return Health(well=True, text=f"{opened}, which is empty: send it a mail to have authserv_id checked")
    if any(identity.vouched_domain(fields, account.authserv_id) for fields in mails):
        return Health(well=True, text=f"{opened}, and {account.authserv_id} says who wrote its mails")
    seen = ", ".join(dict.fromkeys(names)) or "none at all"
    return Health(
        well=False,
        text=f"{opened}, but in its newest {len(mails)} mails {account.authserv_id} vouches for nobody, so no contact "
        f"would be known: set mediums.email.authserv_id (names found there: {seen})",
    )
