"""The Slack medium: the connection in Socket Mode, the posts, and an honest word about both.

Owns the order of "durable, then confirmed": an envelope is acknowledged when its fact is published. What is not
acknowledged within three seconds comes again, and is known by its identity. What payloads mean is in `wire`.
"""

import asyncio
import importlib
import logging
import time
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from gateway.addresses import Route
from gateway.cards import Card
from gateway.events import ControlPressed, MessageReceived
from gateway.files import Keep
from gateway.live import LiveSignal, TurnDecided
from mediums import markup
from mediums.medium import Carried, Health, OutcomeUnknown, Publish, SurelyNotSent
from mediums.slack import failures, outgoing, wire
from mediums.slack.door import Door
from mediums.slack.failures import CallFailed
from mediums.slack.fetching import Fetching
from mediums.slack.memory import Rooms
from mediums.slack.pace import Pace
from mediums.slack.people import People
from mediums.slack.presses import Presses
from mediums.slack.sockets import Sockets
from mediums.slack.threads import Threads
from mediums.slack.words import Me, Payload, Profile

if TYPE_CHECKING:
    from mediums.slack.client import Client
    from mediums.slack.connection import Envelope, Envelopes

log = logging.getLogger(__name__)

Entry = str | Door

API_BASE = "https://slack.com/api"


class SlackMedium:
    """One bot in one workspace. Posts are not repeatable: Slack knows no key by which it would show a message once."""

    name = wire.MEDIUM
    repeatable = False
    may_come_back = False
    files_with_text = False

    def __init__(
        self, bot_token: str, entry: Entry, team: str, api_base: str = API_BASE, pace: Pace | None = None
    ) -> None:
        """`entry` is the app-level token of Socket Mode, or the door where Slack's requests arrive. `team` is the
        workspace's id; `introduced` asks Slack for it. `api_base` without a trailing slash."""
        self.account = wire.account_of(team)
        self._bot_token, self._entry, self._team, self._api_base = bot_token, entry, team, api_base
        self._pace = pace or Pace()
        self._client: Client | None = None
        self._people = People(self._profile, self._pace.lookup_seconds)
        self._rooms = Rooms()
        self._fetching = Fetching(self.account, self._connected)
        self._threads = Threads(self._told_of, self._people, self._rooms, self._pace.lookup_seconds)
        self._chats: dict[str, str] = {}  # person -> the channel of their direct messages
        self._presses = Presses(self._whisper)
        self._trouble = "not connected to Slack yet"
        self._publishing_since: float | None = None

    # --- receiving ---------------------------------------------------------------------------------------------------

    async def receive(self, publish: Publish, keep: Keep) -> None:
        """For ever. What a failed `publish` left unacknowledged is sent again by Slack."""
        try:
            me = await self._me()
            from mediums.slack.connection import new_queue

            envelopes = new_queue()
            taking = self._take_all(envelopes, me, publish, keep)
            await _both(self._heard_from(envelopes, await self._connected()), taking)
        finally:
            self._trouble = self._trouble or "no longer receiving"
            self._publishing_since = None
            await self.close()

    async def _heard_from(self, envelopes: "Envelopes", client: "Client") -> None:
        if isinstance(self._entry, str):
            await Sockets(lambda: client.connect(envelopes), self._tell, self._pace).run()
        else:
            from mediums.slack.posted import Posted

            await Posted(self._entry, envelopes, self._tell).run()

    async def _me(self) -> Me:
        failed = 0
        while True:
            try:
                me = await (await self._connected()).me()
            except CallFailed as error:
                failed += 1
                self._tell(str(error))
                await asyncio.sleep(self._pace.pause_seconds(failed, error.failure))
                continue
            if me.team == self._team:
                return me
            self._tell(f"mediums.slack.bot_token is now of another workspace ({me.team}): start the gateway again")
            await asyncio.sleep(self._pace.longest_pause_seconds)

    async def _take_all(self, envelopes: "Envelopes", me: Me, publish: Publish, keep: Keep) -> None:
        """In order in each channel; one whose files take long holds up no other."""
        last: dict[str, asyncio.Task[None]] = {}
        running: set[asyncio.Task[None]] = set()
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            while not failed.done():
                coming = asyncio.ensure_future(envelopes.get())
                either: set[asyncio.Future[Any]] = {coming, failed}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if failed.done():
                    coming.cancel()
                    break
                channel = wire.channel_of(coming.result().payload)
                taking = self._take(coming.result(), last.get(channel), me, publish, keep)
                last = {name: task for name, task in last.items() if not task.done()}
                last[channel] = asyncio.create_task(taking, name=f"{self.account}: {channel}")
                last[channel].add_done_callback(partial(_tell_failure, failed))
                running = {task for task in running if not task.done()} | {last[channel]}
            failed.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _take(
        self, envelope: "Envelope", before: "asyncio.Task[None] | None", me: Me, publish: Publish, keep: Keep
    ) -> None:
        if before is not None:
            await asyncio.wait({before})
            before.result()  # after one that failed nothing of its channel is taken: it comes again, in order
        heard = await self._heard(envelope, me)
        if heard is not None and not self._rooms.has(heard.fact):
            heard = await self._threads.opened(heard, me)
            fact = heard.fact
            if isinstance(fact, MessageReceived) and heard.files:
                files = await self._fetching.taken(heard.files, keep)
                fact = msgspec.structs.replace(fact, files=files)
            if isinstance(fact, ControlPressed):
                self._presses.expect(fact)
            self._publishing_since = time.monotonic()
            await publish(fact)
            self._publishing_since = None
            self._rooms.published(fact)
        await envelope.acknowledge()

    async def _heard(self, envelope: "Envelope", me: Me) -> wire.Heard | None:
        """What cannot be read is logged and passed over; other kinds than events and presses say nothing."""
        payload = envelope.payload
        if envelope.kind == "interactive" and payload.get("type") == "block_actions":
            pressed = self._pressed(payload, me)
            return wire.Heard(pressed) if pressed else None
        if payload.get("type") == "app_rate_limited":
            log.warning("%s: Slack held back events of the last minute: more than 30,000 an hour came", self.account)
        if envelope.kind != "events_api":
            return None
        try:
            profiles = await self._people.profiles(wire.people(payload, me))
            return wire.heard(payload, me, profiles, self._rooms)
        except (KeyError, TypeError, ValueError, AttributeError):
            log.exception("%s: event %s cannot be read and is passed over", self.account, payload.get("event_id"))
            return None

    def _pressed(self, payload: Payload, me: Me) -> ControlPressed | None:
        try:
            return wire.pressed(payload, me)
        except (KeyError, TypeError, ValueError, AttributeError):
            log.info("%s: a press that is none of ours is passed over", self.account)
            return None

    # --- sending -----------------------------------------------------------------------------------------------------

    def split(self, text: str) -> tuple[str, ...]:
        """At most 4000 characters each as they are sent: a longer one Slack would cut anywhere."""
        return markup.split(text, outgoing.fullness)

    async def send(self, route: Route, text: str, key: str) -> None:
        """In channels into the thread of the route. `key` is not used."""
        route = await self._opened(route)
        ts = await self._post(outgoing.message(route, text))
        self._rooms.wrote(route.place, route.thread, ts)

    async def send_files(self, route: Route, text: str, files: Sequence[Carried], key: str) -> None:
        """Each file is a message of its own, the text another. Until it is shared nobody has seen it."""
        (carried,) = files
        route = await self._opened(route)
        upload = outgoing.upload(route, carried.file)
        client = await self._connected()
        try:
            name = await client.store(carried.file, carried.data)
        except CallFailed as error:
            end = failures.end(error.failure)
            raise (SurelyNotSent(str(end)) if isinstance(end, OutcomeUnknown) else end) from None
        try:
            await client.share(name, upload)
        except CallFailed as error:
            raise failures.end(error.failure) from None
        self._rooms.wrote(route.place, route.thread)

    async def react(self, route: Route, emoji: str, key: str) -> None:
        call = outgoing.reaction(route, emoji)
        try:
            await (await self._connected()).react(call)
        except CallFailed as error:
            raise failures.end(error.failure) from None

    async def _opened(self, route: Route) -> Route:
        """With its channel, where the route leads to a person who may never have written."""
        if not wire.is_person(route.place):
            return route
        if route.place not in self._chats:
            try:
                self._chats[route.place] = await (await self._connected()).chat_with(route.place)
            except CallFailed as error:
                end = failures.end(error.failure)  # opened or not, nothing was said
                raise (SurelyNotSent(str(end)) if isinstance(end, OutcomeUnknown) else end) from None
        return msgspec.structs.replace(route, place=self._chats[route.place])

    async def show_card(self, route: Route, card: Card, message: str | None) -> str:
        return await self._post(outgoing.card(route, card, message))

    async def _post(self, call: outgoing.PostMessage) -> str:
        try:
            return await (await self._connected()).post(call)
        except CallFailed as error:
            raise failures.end(error.failure) from None

    async def show(self, signal: LiveSignal) -> None:
        """Why a press did nothing, to who pressed. A bot cannot be seen typing on Slack."""
        if isinstance(signal, TurnDecided):
            self._presses.decided(signal)

    async def _whisper(self, press: ControlPressed, text: str) -> None:
        user = press.author.address.user.rpartition("/")[2]
        await (await self._connected()).whisper(press.route.place, user, markup.escaped(text), press.route.thread)

    # --- the connection ----------------------------------------------------------------------------------------------

    def health(self) -> Health:
        since = self._publishing_since
        if since is not None and time.monotonic() - since > self._pace.publishing_seconds:
            waited = time.monotonic() - since
            return Health(well=False, text=f"a message waits since {waited:.0f} s to be stored: look at the broker")
        return Health(well=not self._trouble, text=self._trouble)

    async def close(self) -> None:
        """Ends the connections for calls. A later call connects anew."""
        await self._presses.close()
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def _tell(self, trouble: str) -> None:
        """Says what is wrong, once."""
        if trouble and trouble != self._trouble:
            log.warning("%s: %s", self.account, trouble)
        elif self._trouble and not trouble:
            log.info("%s: receiving", self.account)
        self._trouble = trouble

    async def _profile(self, user: str) -> Profile:
        return await (await self._connected()).profile(user)

    async def _told_of(self, channel: str, thread: str, before: str) -> list[Payload]:
        return await (await self._connected()).thread(channel, thread, before)

    async def _connected(self) -> "Client":
        if self._client is None:
            await imported()
        if self._client is None:  # still: nobody was quicker
            self._client = client_of(self._bot_token, self._entry, self._api_base, self._pace)
        return self._client


async def imported() -> None:
    """0.4 s of importing, which a start without Slack does not pay, nor anyone else's turn."""
    await asyncio.to_thread(importlib.import_module, "mediums.slack.client")


def client_of(bot_token: str, entry: Entry, api_base: str, pace: Pace) -> "Client":
    from mediums.slack.client import Client

    return Client(bot_token, entry if isinstance(entry, str) else "", api_base, pace)


async def _both(*work: Coroutine[None, None, None]) -> None:
    """Until one of them fails, with its error; then the others are cancelled and over."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _tell_failure(failed: "asyncio.Future[None]", task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None and not failed.done():
        failed.set_exception(error)
