"""Email, by IMAP (RFC 3501, with IDLE) and SMTP (RFC 5321).

`wire` makes facts of mails and `letter` makes mails of answers; both are pure, like the pages that they read in
(`headers`, `identity`, `robots`, `body`, `hypertext`, `quotes`). `imap` and `smtp` make the calls, `adapter` is the
medium. Raw mail stays in here.
"""

from mediums.email.account import Account, Server
from mediums.email.adapter import EmailMedium

__all__ = ["Account", "EmailMedium", "Server"]
