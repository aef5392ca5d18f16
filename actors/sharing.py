"""How the processes that run actions share them: one holder for each tree of actions, in one process, on one machine.

A process holds one lease, and claims trees under it: no renewal for each. A tree whose holder's lease is gone may be
claimed by any other. Three rules make every command arrive, whoever dies when:

1. The truth is `cmd.act.<key>`, and how far it was taken is in the tree's own log (`through`). A holder reads the
   commands in their order from there; what is delivered to it is only a hint that there are some.
2. All processes share one durable consumer over `cmd.act.>`, of which many deliveries may be outstanding. Whoever gets
   one acknowledges it when the command is in the tree's log, and not before.
3. Who gets one for a tree that is free claims the tree. If another holds it, that one is told by a signal, and says by
   a signal that it has taken all; without that word the question is asked again.

Interleavings that were thought through:

- A Start is delivered and its taker dies before it is in the log: the delivery is not acknowledged, comes again to
  another within the consumer's ack wait, which claims the tree as soon as the dead one's lease is gone.
- Two processes get the Start and the first Interject at once: one claim succeeds. The other tells; whether the holder
  hears it before or after the Start, it reads both from `cmd` in their order.
- The signal, or the word that it was taken, is lost: asked again after LOOK_SECONDS. The answer names the question, so
  an old answer never counts for a later command.
- The holder lets an ended tree go while a command for it is under way: it takes back the claim only after its log is
  closed, and while nothing that it knows of is wanted. The one with the delivery finds the tree free then, claims it,
  folds it, and has it refused or answered there.
- The holder dies in the middle of its work, with no command under way: every process looks for claims without a lease.
  One on the same machine takes it at once, and attaches its sandbox. Others wait FOREIGN_SECONDS for that, then fold
  it, and what was in its sandbox is lost and said to be.
- The holder is frozen, and thawed after it was taken over: its renewal is refused, its appends meet the new holder's
  `Owned`, its effects the deadline. It stops. On the same machine its sandbox has another owner by now, and stays;
  otherwise it is made to stand still at once, and ended when the role starts again and sees whose the tree is.
- It is thawed before anybody took over: it stops all the same, gets a lease again, finds its claims without one, and
  goes on as after a crash.
- It cannot reach the broker: its deadline passes, it stops, and its sandboxes stand still until somebody attaches.
- A session at rest whose machine restarts: others leave it alone, so that it finds its files and its saved variables
  when that machine is back. A word for it, or its time to be closed, does not wait: whoever has that claims it.
- A clean stop: the lease is released, its claims are free at once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol
from uuid import uuid4

from gateway.broker.protocol import Broker, Delivery, Lease, Shared, Unconfirmed
from gateway.clock import boot_seconds

LOOK_SECONDS = 0.5
FOREIGN_SECONDS = 1.0  # how long trees of another machine are left to that machine
LOOK, TAKEN = "actions.look", "actions.taken"


class Sharing(Protocol):
    @property
    def several(self) -> bool:
        """Other processes may run actions too."""

    async def claim(self, tree: str) -> bool: ...
    async def let_go(self, tree: str) -> None: ...

    async def orphans(self) -> list[str]:
        """Trees that nobody holds and that may have work to do."""

    def left_by(self, tree: str) -> str:
        """Of an orphan: the lease of the other machine on which its files are; "" if they may be on this one."""

    async def strangers(self, trees: set[str]) -> set[str]:
        """Those of the trees that are not for this machine: another has them, or they are over."""

    async def taken_here(self, trees: set[str]) -> set[str]:
        """Those of the trees that another process on this machine has by now."""

    def commands(self) -> AsyncIterator[Delivery]: ...

    async def told(self, tree: str) -> bool:
        """Tells its holder to look at its commands. True when it has taken all that was durable before the call."""

    def answer(self, look: Callable[[str, Callable[[], None]], None]) -> Callable[[], None]:
        """`look` is called with a tree and what to call when its commands are taken, until the returned is called."""

    def lost(self) -> bool:
        """What is held here is held no longer."""


class Alone:
    """One process has all trees: what the file lock of SQLite makes sure of."""

    several = False

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._new = True

    async def claim(self, tree: str) -> bool:
        return True

    async def let_go(self, tree: str) -> None:
        return

    async def orphans(self) -> list[str]:
        """At the start all that have commands: of those that are over they are forgotten, and a child has none."""
        if not self._new:
            return []
        self._new = False
        return [subject.removeprefix("cmd.act.") for subject in await self._broker.subjects("cmd.act.>")]

    def left_by(self, tree: str) -> str:
        return ""

    async def strangers(self, trees: set[str]) -> set[str]:
        return set()

    async def taken_here(self, trees: set[str]) -> set[str]:
        return set()

    def commands(self) -> AsyncIterator[Delivery]:
        return self._broker.consume("cmd.act.>", "actions")

    async def told(self, tree: str) -> bool:
        return False

    def answer(self, look: Callable[[str, Callable[[], None]], None]) -> Callable[[], None]:
        return lambda: None

    def lost(self) -> bool:
        return False


class Beside:
    """One of several processes. `lease` is this one's, and its key begins with `role_of(machine)`."""

    several = True

    def __init__(self, broker: Shared, lease: Lease, machine: str) -> None:
        self._broker, self._lease, self._role = broker, lease, role_of(machine)
        self._since: dict[str, float] = {}  # when a tree of another machine was first seen without a holder
        self._foreign: dict[str, str] = {}  # such trees, with the lease under which they were claimed

    async def claim(self, tree: str) -> bool:
        try:
            return await self._broker.claim(tree, self._lease)
        except Unconfirmed:
            return False

    async def let_go(self, tree: str) -> None:
        try:
            await self._broker.disclaim(tree, self._lease)
        except Unconfirmed:  # it stays claimed until this lease ends: then somebody finds that it is over
            return

    async def orphans(self) -> list[str]:
        try:
            claims = await self._broker.claims()
        except Unconfirmed:
            return []
        now = boot_seconds()
        free = {tree: claim.lease for tree, claim in claims.items() if not claim.alive}
        self._since = {tree: self._since.get(tree, now) for tree in free}
        self._foreign = {tree: lease for tree, lease in free.items() if not lease.startswith(self._role)}
        return [tree for tree in free if tree not in self._foreign or now - self._since[tree] >= FOREIGN_SECONDS]

    def left_by(self, tree: str) -> str:
        return self._foreign.get(tree, "")

    async def strangers(self, trees: set[str]) -> set[str]:
        try:
            claims = await self._broker.claims()
        except Unconfirmed:
            return set()
        elsewhere = {tree for tree, claim in claims.items() if claim.alive and not claim.lease.startswith(self._role)}
        return {tree for tree in trees if tree in elsewhere or tree not in claims}

    async def taken_here(self, trees: set[str]) -> set[str]:
        try:
            claims = await self._broker.claims()
        except Unconfirmed:
            return set()
        return {tree for tree in trees if (at := claims.get(tree)) and at.alive and at.lease.startswith(self._role)}

    def commands(self) -> AsyncIterator[Delivery]:
        return self._broker.consume_many("cmd.act.>", "actions")

    async def told(self, tree: str) -> bool:
        question = f"{tree} {uuid4().hex}".encode()
        taken = asyncio.Event()
        unwatch = self._broker.watch(TAKEN, lambda answer: taken.set() if answer == question else None)
        try:
            self._broker.signal(LOOK, question)
            async with asyncio.timeout(LOOK_SECONDS):
                await taken.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            unwatch()

    def answer(self, look: Callable[[str, Callable[[], None]], None]) -> Callable[[], None]:
        def heard(question: bytes) -> None:
            look(question.decode().partition(" ")[0], lambda: self._broker.signal(TAKEN, question))

        return self._broker.watch(LOOK, heard)

    def lost(self) -> bool:
        return boot_seconds() >= self._lease.deadline


def role_of(machine: str) -> str:
    """How the lease of each process begins that runs actions on this machine, where their sandboxes are."""
    return f"actors-{machine}-"
