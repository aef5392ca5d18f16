"""Sending, through python-telegram-bot. The only module that imports it: that costs 0.4 s and 20 MB, after the start.

Below the library's surface its requests go over our own pool, because its exceptions tell neither a request that never
left from one that did, nor an outage from a refusal.
"""

import logging
from typing import Any

from telegram import (
    Bot,
    BotCommand,
    BotCommandScopeAllPrivateChats,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    ReplyParameters,
)
from telegram.constants import ChatAction
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from mediums.telegram.failures import Failure, Unreachable, is_same
from mediums.telegram.http import Http, RequestFailed
from mediums.telegram.outgoing import SendMessage

PRESS_ANSWER = 200  # characters
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)  # Telegram would fetch an address that a model was talked into

for _name in ("httpx", "httpcore", "telegram"):
    if logging.getLogger(_name).level == logging.NOTSET:  # else `gateway.logs` has decided, and hides the token
        logging.getLogger(_name).setLevel(logging.WARNING)


class _Failed(TelegramError):
    """Passes through the library as its own, with what it would have dropped."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(type(failure).__name__)
        self.failure = failure


class _Request(BaseRequest):
    def __init__(self, http: Http) -> None:
        self._http = http

    @property
    def read_timeout(self) -> float | None:
        return None  # each call has its own deadline

    async def initialize(self) -> None:
        """Nothing to do before the first request."""

    async def shutdown(self) -> None:
        """The pool is not ours."""

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **timeouts: Any
    ) -> tuple[int, bytes]:
        try:
            return await self._http.request(method, url, request_data.json_parameters if request_data else None)
        except RequestFailed as error:
            raise _Failed(error.failure) from None


class Sender:
    """All raise RequestFailed."""

    def __init__(self, token: str, api_base: str, http: Http) -> None:
        request = _Request(http)
        self._bot = Bot(token, base_url=f"{api_base}/bot", request=request, get_updates_request=request)

    async def send(self, message: SendMessage) -> int:
        """The id of the message that now stands there. https://core.telegram.org/bots/api#sendmessage
        https://core.telegram.org/bots/api#editmessagetext"""
        text = message.text if message.html is None else message.html
        mode = None if message.html is None else "HTML"
        markup = _keyboard(message)
        if message.edits is not None:
            edit = self._bot.edit_message_text(
                text,
                message.chat,
                message.edits,
                parse_mode=mode,
                reply_markup=markup,
                link_preview_options=NO_PREVIEW,
            )
            try:
                await _honest(edit)
            except RequestFailed as error:
                if not is_same(error.failure):
                    raise
            return message.edits
        sent = await _honest(
            self._bot.send_message(
                message.chat,
                text,
                parse_mode=mode,
                message_thread_id=message.thread,
                reply_parameters=None if message.reply_to is None else ReplyParameters(message.reply_to, None, True),
                reply_markup=markup,
                link_preview_options=NO_PREVIEW,
                disable_notification=message.silent or None,
            )
        )
        return int(sent.message_id)

    async def answer(self, query: str, text: str) -> None:
        """https://core.telegram.org/bots/api#answercallbackquery"""
        await _honest(self._bot.answer_callback_query(query, text[:PRESS_ANSWER] or None))

    async def offer(self, commands: dict[str, str], private: bool) -> None:
        """What a client proposes after a slash; `private`: in private chats, instead of what is proposed everywhere.

        https://core.telegram.org/bots/api#setmycommands
        """
        scope = BotCommandScopeAllPrivateChats() if private else None
        offered = [BotCommand(word, about) for word, about in commands.items()]
        await _honest(self._bot.set_my_commands(offered, scope))

    async def typing(self, chat: int, thread: int | None) -> None:
        """Shown for five seconds: https://core.telegram.org/bots/api#sendchataction"""
        await _honest(self._bot.send_chat_action(chat, ChatAction.TYPING, thread))


def _keyboard(message: SendMessage) -> InlineKeyboardMarkup | None:
    rows = [[InlineKeyboardButton(text, callback_data=data) for text, data in row] for row in message.buttons]
    return InlineKeyboardMarkup(rows) if rows else None


async def _honest(call: Any) -> Any:
    try:
        return await call
    except _Failed as error:
        raise RequestFailed(error.failure) from None
    except TelegramError as error:
        raise RequestFailed(Unreachable(why=str(error), left=True)) from None
