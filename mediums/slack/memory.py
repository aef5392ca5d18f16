"""What is remembered of the rooms that the bot is in, for as long as this process lives: a restart forgets it."""

from collections import OrderedDict
from collections.abc import Hashable

from gateway.events import MediumFact, MessageReceived

REMEMBERED = 5000  # of threads, of messages that called the bot, and of what was published: each


class Rooms:
    def __init__(self) -> None:
        self._threads, self._told, self._called, self._published, self._rooms = (_Recent() for _ in range(5))

    def published(self, fact: MediumFact) -> None:
        self._published.add(fact.identity)
        if isinstance(fact, MessageReceived):
            self._rooms.add((fact.route.place, fact.route.reply_to), fact.route.thread)
            if fact.addressed and not fact.private:
                self._called.add((fact.route.place, fact.route.reply_to))
                self._threads.add((fact.route.place, fact.route.thread))

    def wrote(self, channel: str, thread: str | None, ts: str | None = None) -> None:
        """The bot did, in this thread, or with `ts` began one."""
        if thread or ts:
            self._threads.add((channel, thread or ts))
        if ts:
            self._rooms.add((channel, ts), thread or ts)

    def has(self, fact: MediumFact) -> bool:
        """It was published."""
        return fact.identity in self._published

    def thread_of(self, channel: str, ts: str) -> str | None:
        return self._rooms.get((channel, ts))

    def was_heard(self, channel: str, ts: str) -> bool:
        return (channel, ts) in self._rooms

    def knows_thread(self, channel: str, thread: str, ts: str) -> bool:
        """What began it called the bot, or was told with a message; that one, edited, needs it again."""
        return self.was_called(channel, thread) or self._told.get((channel, thread)) not in (None, ts)

    def told_of_thread(self, channel: str, thread: str, ts: str) -> None:
        self._told.add((channel, thread), ts)

    def takes_part(self, channel: str, thread: str) -> bool:
        """A lane that has spoken in the thread knows it also after a restart."""
        return (channel, thread) in self._threads

    def was_called(self, channel: str, ts: str) -> bool:
        return (channel, ts) in self._called


class _Recent:
    """The newest REMEMBERED, each with what is to be known of it."""

    def __init__(self) -> None:
        self._items: OrderedDict[Hashable, str | None] = OrderedDict()

    def __contains__(self, item: Hashable) -> bool:
        return item in self._items

    def get(self, item: Hashable) -> str | None:
        return self._items.get(item)

    def add(self, item: Hashable, about: str | None = None) -> None:
        self._items[item] = about
        self._items.move_to_end(item)
        if len(self._items) > REMEMBERED:
            self._items.popitem(last=False)
