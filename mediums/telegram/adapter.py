"""The Telegram medium: the long poll, the sends, the typing sign, and an honest word about all three.

Owns the connection's life and the order of "durable, then confirmed": an update is confirmed by the offset of the next
poll, which starts only when each fact of this one is published. What payloads mean is in `wire` and `words`.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from gateway.addresses import Route
from gateway.cards import Card
from gateway.commands import COMMANDS, PRIVATE_COMMANDS
from gateway.events import MediumFact, PlaceMoved
from gateway.files import LARGEST_BYTES, Keep, too_large
from gateway.live import LiveSignal, TurnDecided, Typing
from gateway.record import Record
from mediums import incoming, markup
from mediums.medium import Carried, Health, Publish, Rejected, SurelyNotSent
from mediums.telegram import failures, outgoing, wire
from mediums.telegram.entities import Me, Payload
from mediums.telegram.failures import CallFailed, Refusal
from mediums.telegram.presses import Presses
from mediums.telegram.signs import TypingSigns
from mediums.telegram.taking import Taking

if TYPE_CHECKING:
    from mediums.telegram.client import Client

log = logging.getLogger(__name__)

REMEMBERED = 2000  # texts by which an edit that changed nothing is known; one of an older message counts as a change
CONFLICT_PROBE_SECONDS = 5
IN_A_ROW = 3  # answers that ask for no wait at all
MENDS = 3  # one for each thing that `outgoing.mended` may give up


class Pace(Record, frozen=True, kw_only=True):
    """How long things may take, in seconds. The defaults are right for api.telegram.org."""

    poll_seconds: int = 25
    call_seconds: float = 15.0
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 30.0
    publishing_seconds: float = 10.0
    typing_seconds: float = 4.0
    typing_after_seconds: float = 0.5
    press_seconds: float = 1.0


class TelegramMedium:
    """One bot. Sends are not repeatable: Telegram knows no key by which it would show a message once."""

    name = wire.MEDIUM
    repeatable = False
    may_come_back = False
    files_with_text = False

    def __init__(self, token: str, api_base: str = "https://api.telegram.org", pace: Pace | None = None) -> None:
        """`api_base` without a trailing slash. Raises ValueError for what cannot be a bot token."""
        self.account = wire.account_of(token)
        self._token, self._api_base, self._pace = token, api_base, pace or Pace()
        self._client: Client | None = None
        self._said: OrderedDict[str, wire.Said] = OrderedDict()
        self._own: OrderedDict[str, str | None] = OrderedDict()  # messages of the bot, with their topics
        self._marked: OrderedDict[tuple[str, str, str | None], str] = OrderedDict()
        self._trouble = "not connected to Telegram yet"
        self._publishing: dict[str, float] = {}  # since when, by identity
        self._moved: list[PlaceMoved] = []  # told by a send, and not yet published
        self._typing = TypingSigns(self._show_typing, self._pace.typing_seconds, self._pace.typing_after_seconds)
        self._presses = Presses(self._answer_press, self._pace.press_seconds)
        self._preparing: asyncio.Task[None] | None = None

    # --- receiving ---------------------------------------------------------------------------------------------------

    async def receive(self, publish: Publish, keep: Keep) -> None:
        """For ever. Updates that a failed `publish` left unconfirmed come again with the next call."""
        try:
            await self._poll(publish, keep)
        finally:
            self._trouble = self._trouble or "no longer receiving"
            await self.close()

    async def _poll(self, publish: Publish, keep: Keep) -> None:
        failed = wait_seconds = 0
        me: Me | None = None

        async def take(update: Payload) -> None:
            assert me is not None
            await self._take(update, me, publish, keep)

        taking = Taking(take, _chat_of)
        try:
            while True:
                try:
                    client = self._connected()
                    me = me or await client.me(self.account)
                    updates = await client.updates(taking.offset, 0 if taking.busy else wait_seconds)
                except CallFailed as error:
                    failed += 1
                    wait_seconds = self._probe_seconds(error)
                    await self._rest(error, failed)
                    continue
                self._well()
                if self._preparing is None:
                    self._preparing = asyncio.create_task(self._prepare(client), name=f"{self.account}: prepare")
                failed, wait_seconds = 0, self._pace.poll_seconds
                while self._moved:  # before what was said in the new place
                    await self._publish(self._moved[0], publish)
                    del self._moved[0]
                await taking.add(updates)
        finally:
            await taking.close()

    async def _take(self, update: Payload, me: Me, publish: Publish, keep: Keep) -> None:
        """Published if a person has done it; what cannot be read is logged and passed over."""
        if "callback_query" in update:
            await self._take_press(update["callback_query"], me, publish)
            return
        try:
            moved, key = wire.moved(update, me), wire.message_key(update)
            reacted = wire.reacted(update, me, self._thread(key), key in self._own)
            heard = wire.heard(update, me, self._said.get(key))
        except (KeyError, TypeError, ValueError, AttributeError):
            log.exception("%s: update %s cannot be read and is passed over", self.account, update.get("update_id"))
            return
        await self._publish(moved, publish)
        await self._publish(reacted, publish)
        if heard is not None and heard.fact is not None:
            files = await incoming.taken(heard.files, self._fetch, keep, self.account)
            await self._publish(msgspec.structs.replace(heard.fact, files=files), publish)
        if heard is not None:
            _remember(self._said, heard.key, heard.said)

    def _thread(self, key: str) -> str | None:
        """The topic of a message, as far as it is remembered."""
        return self._own[key] if key in self._own else self._said[key].thread if key in self._said else None

    async def _publish(self, fact: MediumFact | PlaceMoved | None, publish: Publish) -> None:
        if fact is None:
            return
        self._publishing[fact.identity] = time.monotonic()
        try:
            await publish(fact)
        finally:
            self._publishing.pop(fact.identity, None)

    async def _fetch(self, found: incoming.Found) -> bytes:
        try:
            return await self._connected().fetch(found.fetch, LARGEST_BYTES)
        except CallFailed as error:
            if isinstance(error.failure, Refusal) and "too big" in error.failure.description:
                raise incoming.NotFetched(too_large()) from None
            log.warning("%s: a file could not be fetched: %s", self.account, error)
            raise incoming.NotFetched("Telegram did not hand it over; please send it again") from None

    async def _take_press(self, query: Payload, me: Me, publish: Publish) -> None:
        try:
            fact = wire.pressed(query, me, datetime.now(UTC), self._thread)
        except (KeyError, TypeError, ValueError, AttributeError):
            log.info("%s: a press that is none of ours: %s", self.account, str(query.get("data"))[:80])
            self._presses.take(str(query["id"]))
            return
        self._presses.expect(fact.identity)
        await self._publish(fact, publish)
        self._presses.take(str(query["id"]), fact.identity)

    async def _prepare(self, client: "Client") -> None:
        """What the first message should not wait for, and the commands that a client proposes."""
        try:
            await client.warm()
            await client.offer(COMMANDS, private=False)
            await client.offer(COMMANDS | PRIVATE_COMMANDS, private=True)
        except CallFailed as error:
            log.info("%s: its commands are not proposed: %s", self.account, error)

    async def _rest(self, error: CallFailed, failed: int) -> None:
        """Says what is wrong, once, and waits."""
        text = str(error)
        if text != self._trouble:
            log.warning("%s: %s", self.account, text)
        self._trouble = text
        await asyncio.sleep(self._pause_seconds(error, failed))

    def _probe_seconds(self, error: CallFailed) -> int:
        """After a failure the next poll does not wait, so that health tells at once when all is well again. Against
        another poller an answer proves nothing, as each poll ends the other's: only one that is left alone does."""
        conflict = isinstance(error.failure, Refusal) and error.failure.status == 409
        return min(CONFLICT_PROBE_SECONDS, self._pace.poll_seconds) if conflict else 0

    def _pause_seconds(self, error: CallFailed, failed: int) -> float:
        if error.retry_after_seconds is not None and (error.retry_after_seconds > 0 or failed < IN_A_ROW):
            return error.retry_after_seconds
        if isinstance(error.failure, Refusal) and error.failure.status in (401, 404):
            return self._pace.longest_pause_seconds
        grown: float = self._pace.first_pause_seconds * 2 ** min(failed - 1, 16)
        return min(grown, self._pace.longest_pause_seconds)

    def _well(self) -> None:
        if self._trouble:
            log.info("%s: receiving", self.account)
        self._trouble = ""

    # --- sending -----------------------------------------------------------------------------------------------------

    def split(self, text: str) -> tuple[str, ...]:
        """At most 4096 UTF-16 units each as shown: https://core.telegram.org/bots/api#sendmessage"""
        return markup.split(text, outgoing.fullness)

    async def send(self, route: Route, text: str, key: str) -> None:
        """In groups the first of several parts is marked as a reply. `key` is not used."""
        answered, marked = route.reply_to or "", self._marks(route)
        await self._deliver(route, outgoing.message(route, text, marked))
        _remember(self._marked, route.room, answered)

    async def send_files(self, route: Route, text: str, files: Sequence[Carried], key: str) -> None:
        """Each file is a message of its own, the text another. A picture is shown as one."""
        (carried,) = files
        await self._deliver(route, outgoing.file(route, carried.file, self._marks(route)), carried.data)
        _remember(self._marked, route.room, route.reply_to or "")

    async def react(self, route: Route, emoji: str, key: str) -> None:
        """One of those that Telegram knows: https://core.telegram.org/bots/api#reactiontypeemoji"""
        call = outgoing.reaction(route, emoji)
        try:
            await self._connected().react(call)
        except CallFailed as error:
            raise failures.end(error.failure) from None

    async def show_card(self, route: Route, card: Card, message: str | None) -> str:
        return str(await self._deliver(route, outgoing.card(route, card, message)))

    def _marks(self, route: Route) -> bool:
        return outgoing.shows_replies(route) and self._marked.get(route.room) != (route.reply_to or "")

    async def _deliver(self, route: Route, made: outgoing.Call, data: bytes = b"") -> int:
        call: outgoing.Call | None = made
        for _ in range(MENDS + 1):
            if call is None:
                break
            try:
                client = self._connected()
                number = await (
                    client.send(call) if isinstance(call, outgoing.SendMessage) else client.send_file(call, data)
                )
            except CallFailed as error:
                before, call = call, outgoing.mended(call, error.failure)
                if call is not None and call.chat != before.chat:
                    self._moved.append(wire.renamed(self.account, before.chat, call.chat, datetime.now(UTC)))
                if call is None:
                    self._hold_signs(route, error)
                    raise failures.end(error.failure) from None
                log.info("%s: a message is sent in another form: %s", self.account, error)
            else:
                _remember(self._own, f"{call.chat}/{number}", route.thread)
                return number
        raise SurelyNotSent("Telegram refused each form of the message")

    # --- live --------------------------------------------------------------------------------------------------------

    async def show(self, signal: LiveSignal) -> None:
        """Typing, repeated while it is on, and what came of a press. Other signals have no sign on Telegram."""
        if isinstance(signal, Typing):
            self._typing.turn(signal.route, signal.on)
        elif isinstance(signal, TurnDecided):
            self._presses.decided(signal)

    async def _answer_press(self, query: str, text: str) -> None:
        await self._connected().answer(query, text)

    async def _show_typing(self, route: Route) -> float | None:
        """None, or for how many seconds this chat must be left alone."""
        try:
            chat, thread = outgoing.place(route)
            await self._connected().typing(chat, thread)
        except CallFailed as error:
            return error.retry_after_seconds
        except Rejected:
            return None
        return None

    def _hold_signs(self, route: Route, error: CallFailed) -> None:
        if error.retry_after_seconds:
            self._typing.hold(route.place, error.retry_after_seconds)

    # --- the connection ----------------------------------------------------------------------------------------------

    def health(self) -> Health:
        since = min(self._publishing.values(), default=None)
        if since is not None and time.monotonic() - since > self._pace.publishing_seconds:
            waited = time.monotonic() - since
            return Health(well=False, text=f"a message waits since {waited:.0f} s to be stored: look at the broker")
        return Health(well=not self._trouble, text=self._trouble)

    async def close(self) -> None:
        """Ends the typing signs and the connections. A later call connects anew."""
        await self._typing.close()
        await self._presses.close()
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.gather(self._preparing, return_exceptions=True)
            self._preparing = None
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _connected(self) -> "Client":
        if self._client is None:
            from mediums.telegram.client import Client

            self._client = Client(self._token, self._api_base, self._pace.call_seconds)
        return self._client


def _chat_of(update: Payload) -> str:
    try:
        return wire.message_key(update).partition("/")[0]
    except (KeyError, TypeError, ValueError, AttributeError):
        return ""  # it is passed over when it is read


def _remember(memory: OrderedDict[Any, Any], key: Hashable, value: object) -> None:
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
