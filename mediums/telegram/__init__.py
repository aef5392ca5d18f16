"""Telegram, by the Bot API: https://core.telegram.org/bots/api

`wire` and `words` are pure, `client` makes the calls, `adapter` is the medium. Payloads of the Bot API stay in here.
"""

from mediums.telegram.adapter import TelegramMedium

__all__ = ["TelegramMedium"]
