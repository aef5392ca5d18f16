"""Telegram, by the Bot API: https://core.telegram.org/bots/api

`wire` and `words` are pure, `client` makes the calls, `adapter` is the medium. Payloads of the Bot API stay in here.
"""

import sys

# httpx, which python-telegram-bot brings, imports its own command line where rich is installed: 3 MB that nobody runs.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

from mediums.telegram.adapter import TelegramMedium  # noqa: E402 - after that

__all__ = ["TelegramMedium"]
