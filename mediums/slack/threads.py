"""What stood in a thread when the bot is called into it: asked for once, and quoted before the words that call.

A thread is a conversation of its own, and the message that began it was said in the channel, perhaps before the bot was
there, perhaps by a robot. It is a courtesy, as a name is: where Slack does not tell in time, the words come without.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from gateway.commands import command
from gateway.events import MessageReceived
from mediums.slack import words
from mediums.slack.failures import CallFailed
from mediums.slack.memory import Rooms
from mediums.slack.people import People
from mediums.slack.wire import Heard
from mediums.slack.words import Me, Payload

log = logging.getLogger(__name__)

ROOT_LENGTH, ANSWER_LENGTH = 1000, 300

Ask = Callable[[str, str, str], Awaitable[list[Payload]]]


class Threads:
    def __init__(self, ask: Ask, people: People, rooms: Rooms, within_seconds: float) -> None:
        """`ask` is given channel, thread and the time before which it was said; it raises CallFailed."""
        self._ask, self._people, self._rooms, self._within_seconds = ask, people, rooms, within_seconds

    async def opened(self, heard: Heard, me: Me) -> Heard:
        """With what it is about, where that is not known yet. Raises nothing."""
        fact = heard.fact
        if not isinstance(fact, MessageReceived) or not (fact.addressed and fact.in_thread) or command(fact.text):
            return heard
        channel, thread, ts = fact.route.place, str(fact.route.thread), str(fact.route.reply_to)
        if self._rooms.knows_thread(channel, thread, ts):
            return heard
        try:
            async with asyncio.timeout(self._within_seconds):
                there = await self._ask(channel, thread, ts)
                users = [str(one["user"]) for one in there if one.get("user")]
                profiles = await self._people.profiles(users)
        except (CallFailed, TimeoutError) as error:
            log.info("slack: what stands in thread %s of %s is not told: %s", thread, channel, error)
            return heard
        self._rooms.told_of_thread(channel, thread, ts)
        if any(one.get("user") == me.user and one["ts"] != thread for one in there):
            return heard  # it has spoken there before this process: its conversation knows what it is about
        fresh = [one for one in there if one["ts"] == thread or not self._rooms.was_heard(channel, str(one["ts"]))]
        quotes = [quote for one in fresh if (quote := _quote(one, thread, me, profiles))]
        files = [file for one in fresh if one["ts"] == thread for file in words.files(one)]
        text = "\n\n".join([*quotes, fact.text])
        return Heard(msgspec.structs.replace(fact, text=text), (*heard.files, *files))


def _quote(message: Payload, thread: str, me: Me, profiles: words.Profiles) -> str:
    """Empty for what says nothing."""
    began = message["ts"] == thread
    text = words.said(message, me, profiles) or words.attached(message, profiles)
    if not text:
        return ""
    user = str(message.get("user") or "")
    name = profiles[user].name if user in profiles else words.one_line(message.get("username") or "") or user
    who = "you" if user == me.user else name or "somebody"
    length = ROOT_LENGTH if began else ANSWER_LENGTH
    shown = text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
    return words.quoted(f"[{who} began this thread:]" if began else f"[{who} wrote in it:]", shown)
