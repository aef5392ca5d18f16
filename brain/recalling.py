"""`recall`: what was said here before what the prompt shows, looked up for the model and recorded with the turn.

Where a search looks is not the model's to say: it is given the conversation, by code.
"""

from collections.abc import Callable, Collection
from typing import Protocol
from zoneinfo import ZoneInfo

from brain.emission import emissions
from brain.entries import Recalled
from brain.history import Found
from brain.quoting import indented, one_line
from brain.state import LaneState
from gateway.addresses import Address
from gateway.events import Send, identity_of
from gateway.keeping import ViewsFailed

SHOWN = 12
TEXT_CHARACTERS = 800
NOTHING = "Nothing that was said here has these words in it. Other words may find it."
NO_SEARCH = "There is no search here: only what you see is known. Say so, if it matters."
FAILED = "The search does not work right now. Say so, if it matters."


class Recall(Protocol):
    async def __call__(self, conversation: str, words: str, limit: int, without: Collection[Address]) -> list[Found]:
        """What was said in that conversation, the best first, but for what these addresses said and were told. May lag
        by what is still in the prompt. Raises ViewsFailed."""
        ...


async def look_up(
    recall: Recall | None, state: LaneState, query: str, zone: ZoneInfo, operator: Callable[[str], None]
) -> Recalled:
    """Never more than the conversation itself has heard or said, and nothing that the prompt shows anyway."""
    if recall is None:
        return Recalled(query=query, found=NO_SEARCH)
    shown = _shown(state)
    try:
        places = (state.conversation, *state.joined)
        found = [one for place in places for one in await recall(place, query, SHOWN + len(shown), state.parted)]
    except ViewsFailed as error:
        operator(f"What was said before cannot be searched: {error}")
        return Recalled(query=query, found=FAILED)
    older = sorted([one for one in found if one.id not in shown][:SHOWN], key=lambda one: one.at)
    text = "\n".join(_line(one, query, zone) for one in older)
    return Recalled(query=query, found=text or NOTHING, of=tuple(one.id for one in older))


def _shown(state: LaneState) -> set[str]:
    shown = {identity_of(item.fact) for item in (*state.overheard, *state.undecided)}
    for exchange in state.exchanges:
        shown |= {identity_of(item.fact) for item in exchange.heard}
        sent = emissions(exchange.origin or state.conversation, exchange.decided, 0)
        shown |= {str(item.ref) for item in sent if isinstance(item.body, Send)}
    return shown


def _line(one: Found, query: str, zone: ZoneInfo) -> str:
    at = one.at.astimezone(zone).strftime("%a %d %b %Y %H:%M")
    who = one_line(one.name) if one.who else "you"
    outcome = "" if one.outcome in ("received", "sent", "") else f" · {one.outcome}"
    return f"[{at} · {one.medium} · {who}{outcome}] {indented(_around(one.text, query))}"


def _around(text: str, query: str) -> str:
    """Where the first of the words stands in a long text."""
    if len(text) <= TEXT_CHARACTERS:
        return text
    folded = text.casefold()
    at = min((place for word in query.casefold().split() if (place := folded.find(word)) >= 0), default=0)
    first = max(0, min(at - TEXT_CHARACTERS // 4, len(text) - TEXT_CHARACTERS))
    return f"{'… ' if first else ''}{text[first : first + TEXT_CHARACTERS]} … (of {len(text):,} characters)"
