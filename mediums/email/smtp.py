"""Handing one mail to the SMTP server, through aiosmtplib. Importing that costs 0.07 s, so the adapter does it late.

The steps are made one by one, because the outcome depends on how far it came: until the mail's end is written nothing
has happened, and an answer that is lost after that leaves it open.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiosmtplib

from gateway.outbox import SurelyNotSent
from mediums.email import failures
from mediums.email.account import Account
from mediums.email.letter import Letter

_CANNOT = (aiosmtplib.SMTPException, OSError, ssl.SSLError, asyncio.TimeoutError)

if logging.getLogger("aiosmtplib").level == logging.NOTSET:
    logging.getLogger("aiosmtplib").setLevel(logging.WARNING)


class ServerTrouble(SurelyNotSent):
    """It is not this mail: no mail at all can be sent now."""


async def hand_over(account: Account, letter: Letter, call_seconds: float) -> None:
    """Returns when the server has taken it. Raises SurelyNotSent, Rejected or OutcomeUnknown."""
    async with logged_in(account, call_seconds) as smtp:
        try:
            await smtp.mail(letter.sender, timeout=call_seconds)
            await smtp.rcpt(letter.recipient, timeout=call_seconds)
        except aiosmtplib.SMTPResponseException as error:
            raise failures.refused(error.code, error.message, letter.recipient) from None
        except _CANNOT as error:
            raise ServerTrouble(failures.unreachable("SMTP", account.smtp, _why(error))) from None
        try:
            await smtp.data(letter.data, timeout=call_seconds)
        except aiosmtplib.SMTPResponseException as error:
            raise failures.refused(error.code, error.message, letter.recipient) from None
        except _CANNOT as error:
            raise failures.lost_after_data(letter.recipient, _why(error)) from None


@asynccontextmanager
async def logged_in(account: Account, call_seconds: float) -> AsyncIterator[aiosmtplib.SMTP]:
    """Raises SurelyNotSent, always as ServerTrouble. The password is sent only as `smtp_security` says."""
    smtp = await _connected(account, call_seconds)
    try:
        await _log_in(smtp, account, call_seconds)
        yield smtp
    finally:
        _part(smtp)


async def _connected(account: Account, call_seconds: float) -> aiosmtplib.SMTP:
    server = account.smtp
    try:
        context = None if server.security == "none" else account.tls()
    except OSError as error:
        raise ServerTrouble(f"mediums.email.ca_file cannot be used ({_why(error)})") from None
    smtp = aiosmtplib.SMTP(
        hostname=server.host,
        port=server.port,
        use_tls=server.security == "tls",
        start_tls=server.security == "starttls",
        tls_context=context,
        timeout=call_seconds,
        local_hostname=account.domain,  # else the machine's own name is looked up, and told
    )
    try:
        await smtp.connect()
    except ssl.SSLCertVerificationError as error:
        smtp.close()
        raise ServerTrouble(failures.certificate("SMTP", server, error.verify_message)) from None
    except aiosmtplib.SMTPResponseException as error:
        smtp.close()
        words = f"{error.code} {failures.one_line(error.message)}"
        raise ServerTrouble(f"the SMTP server {server} takes no mail now ({words})") from None
    except _CANNOT as error:
        smtp.close()
        cause = error.__cause__ or error.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise ServerTrouble(failures.certificate("SMTP", server, cause.verify_message)) from None
        raise ServerTrouble(failures.unreachable("SMTP", server, _why(error))) from None
    return smtp


async def _log_in(smtp: aiosmtplib.SMTP, account: Account, call_seconds: float) -> None:
    """A relay on this machine may ask for no login; one that was reached with TLS always does."""
    try:
        if account.smtp.security == "none":
            await smtp.ehlo(timeout=call_seconds)
            if not smtp.supports_extension("auth"):
                return
        await smtp.login(account.username, account.password.reveal(), timeout=call_seconds)
    except aiosmtplib.SMTPAuthenticationError as error:
        words = f"{error.code} {failures.one_line(error.message)}"
        if error.code >= 500:
            raise ServerTrouble(
                failures.login_refused("SMTP", account.smtp, words), failures.LOGIN_RETRY_SECONDS
            ) from None
        raise ServerTrouble(f"the SMTP server {account.smtp} does not let anyone in now ({words})") from None
    except _CANNOT as error:
        text = f"the SMTP server {account.smtp} takes no login ({_why(error)}): check mediums.email.smtp_security"
        raise ServerTrouble(text) from None


def _part(smtp: aiosmtplib.SMTP) -> None:
    """Says goodbye and waits for no answer: what was taken is taken, and the sooner it is written down the better."""
    if isinstance(smtp.transport, asyncio.WriteTransport) and not smtp.transport.is_closing():
        smtp.transport.write(b"QUIT\r\n")
    smtp.close()


def _why(error: BaseException) -> str:
    return failures.one_line(str(error)) or type(error).__name__


__all__ = ["ServerTrouble", "hand_over", "logged_in"]
