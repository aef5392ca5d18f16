"""`/link`, `/unlink`, codes, and what a stranger is told: decided by code, without a model."""

from brain.entries import Decision, Speak, Wait
from brain.linking import LINK, unlinked
from brain.parts import Heard
from brain.registry import NOT_GOOD, Registry
from brain.state import LaneState
from gateway.addresses import Address, Route
from gateway.events import MessageReceived

IN_PRIVATE = "Write `/link` to me in private: a code that others can read is void."
NO_CODE = "I can't link an address that nobody vouches for."
HOW = "Say which, with its medium: `unlink telegram:42`."
HAS_CODE = "a stranger, who has a code that is still good"


class Pairing:
    def __init__(self, registry: Registry) -> None:
        self._registry, self._contacts = registry, registry.contacts

    async def decide(self, heard: Heard, route: Route, state: LaneState) -> tuple[Decision, ...] | None:
        """None where it is about something else."""
        assert isinstance(heard.fact, MessageReceived)
        said = heard.fact
        if (pairing := self._registry.book.pairings.get(said.identity)) is not None:
            return self._linked(pairing.address, said, state)
        if (why := self._registry.whys.get(said.identity)) is not None:
            return (Speak(route=route, text=why),)
        stranger = self._contacts.known(said.author.address) is None
        if stranger and (self._contacts.unknown(route.medium) == "pair" or LINK.match(said.text)):
            return (await self._to_stranger(said),)
        if LINK.match(said.text):
            return (Speak(route=route, text=await self._code(said)),)
        if (address := unlinked(said.text)) is not None:
            return (Speak(route=route, text=await self._unlinked(address, said)),)
        return (Speak(route=route, text=NOT_GOOD),) if self._registry.has_code(said.text) else None

    async def _code(self, said: MessageReceived) -> str:
        if not said.private:
            return IN_PRIVATE
        if not said.author.address.vouched:
            return NO_CODE
        code = await self._registry.offer(said.author.address)
        return (
            f"Say this to me where I don't know you yet, in private and within fifteen minutes: **{code}**\n\n"
            "Whoever says it is you from then on, and hears what we said: show it to nobody."
        )

    async def _to_stranger(self, said: MessageReceived) -> Decision:
        if not (said.private and said.author.address.vouched):
            return Wait(reason="a stranger, not in private")
        if self._registry.offered(said.author.address) and not LINK.match(said.text):
            return Wait(reason=HAS_CODE)
        code = await self._registry.offer(said.author.address)
        silent = ", so I don't answer yet" if self._contacts.unknown(said.route.medium) == "pair" else ""
        text = (
            f"I don't know you here{silent}. If you talk to me somewhere else, say this to me there, in private and "
            f"within fifteen minutes: **{code}**"
        )
        return Speak(route=said.route, text=text)

    def _linked(self, address: Address, said: MessageReceived, state: LaneState) -> tuple[Decision, ...]:
        """Told where it was said, and where the other end last wrote: they may not have meant it."""
        person = self._contacts.known(address)
        name = person.name if person else "somebody"
        here = f"{address} is {name} now: what we say there and here is one conversation."
        told: list[Decision] = [Speak(route=said.route, text=f"{here} If that is wrong: `unlink {address}`")]
        others = [route for who, route in state.reached.items() if who != said.author.address]
        if others:
            told.append(Speak(route=others[-1], text=f"{here} If you did not do that: `unlink {address}`"))
        return tuple(told)

    async def _unlinked(self, text: str, said: MessageReceived) -> str:
        """Only what is theirs."""
        if not said.private:
            return "Write that to me in private."
        if not text:
            return HOW
        try:
            address = Address.parse(text)
        except ValueError as error:
            return str(error)
        if not self._contacts.same(address, said.author.address):
            return f"{address} is not linked to you."
        why = await self._registry.unlink(address)
        return f"{why}." if why else f"{address} is not you any more, and hears nothing of this."
