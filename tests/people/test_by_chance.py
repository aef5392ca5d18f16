"""People, places, edits, events of actions and restarts at random: each event is in exactly one turn, in order; no
reply crosses routes; nothing private is in a shared place's prompt, or is sent there.

A message's text holds a word of its own, `w<seed>x<number>`, with a `p` before it in private. The desk answers with all
words that are new to it; so what is sent shows what was known.
"""

import random
import re
from pathlib import Path

import pytest

from brain.contacts import Contact
from gateway.addresses import Address
from gateway.events import ActionProgressed, ActionResponded, MessageReceived, Ref
from tests.people.town import Town, calls, private, room, says, shown, town

SUITE, SOAK, CHUNK = 50, 1000, 10
STEPS, LIVES = 12, 3
WORD = re.compile(r"p?w\d+x\d+")


class Walk:
    """One seed: two people on two mediums each, a shared place, and one action there."""

    def __init__(self, seed: int) -> None:
        self.seed, self.chance = seed, random.Random(seed)
        self.number = 0
        self.people = [
            tuple(Address(medium=medium, user=f"{medium[0]}{seed}-{n}") for medium in ("telegram", "email"))
            for n in range(2)
        ]
        self.room = room(f"C{seed}")
        self.said: list[MessageReceived] = []
        self.told = 0

    def contacts(self) -> list[Contact]:
        return [
            Contact(key=f"c{self.seed}-{n}", name=f"Person {self.seed}-{n}", role="member", addresses=addresses)
            for n, addresses in enumerate(self.people)
        ]

    async def step(self, here: Town) -> None:
        self.number += 1
        what = self.chance.random()
        if what < 0.15 and self.said:
            await self.edits(here)
        elif what < 0.3:
            await self.action_tells(here)
        else:
            await self.speaks(here)

    async def speaks(self, here: Town) -> None:
        address = self.chance.choice(self.chance.choice(self.people))
        shared = self.chance.random() < 0.4
        word = f"{'' if shared else 'p'}w{self.seed}x{self.number}"
        asks = "please act" if shared and self.chance.random() < 0.3 else ""
        at = self.room if shared else None
        self.said.append(await here.says(address, f"{word} {asks}.", at=at, name=address.user))

    async def edits(self, here: Town) -> None:
        """A version is a message of its own; now and then the platform tells the same one again."""
        old = self.chance.choice(self.said)
        if self.chance.random() < 0.3:
            await here.tells(old)
            return
        word = f"{'p' if old.private else ''}w{self.seed}x{self.number}"
        at = None if old.private else old.route
        made = await here.says(old.author.address, f"[edited] {word}.", at=at, identity=f"{old.identity}/{self.number}")
        self.said.append(made)

    async def action_tells(self, here: Town) -> None:
        conversation = f"s-slack-0_3aC{self.seed}"
        self.told += 1
        kind = self.chance.choice([ActionProgressed, ActionResponded])
        ref = Ref(f"act-{conversation}-a1", self.told, 0)
        text = f"w{self.seed}x{self.number}"
        await here.tells(kind(ref=ref, conversation=conversation, action=f"{conversation}-a1", text=text), str(ref))


def desk(request):
    last = str(request.messages[-2]["content"])
    if "(State at" not in str(request.messages[-1]["content"]):
        return says(" ".join(WORD.findall(str(request.messages))) or "ok")
    if "please act" in last and "act" in [tool["function"]["name"] for tool in request.tools]:
        return calls("act", query=last, name="work", for_message=re.findall(r"\[(m\d+)", last)[-1])
    refs = re.findall(r"\[(m\d+)", last)
    if len(refs) > 1:
        return calls("send_message", text=" ".join(WORD.findall(last)), reply_to=refs[-1])
    return says(" ".join(WORD.findall(last)) or "ok")


async def broken(here: Town, walk: Walk) -> list[str]:
    found: list[str] = []
    for n, addresses in enumerate(walk.people):
        conversation = f"p-c{walk.seed}-{n}"
        mine = [one for one in walk.said if one.private and one.author.address in addresses]
        found += await in_order(here, conversation, mine)
        for address in addresses:
            words = {word for text in await here.told(address.user) for word in WORD.findall(text)}
            theirs = {word for one in mine for word in WORD.findall(one.text)}
            found += [f"{address} was told {word}" for word in words - theirs]
    in_room = [one for one in walk.said if not one.private]
    found += await in_order(here, f"s-slack-0_3aC{walk.seed}", in_room)
    found += [f"the room was told {text}" for text in await here.told(f"C{walk.seed}") if "pw" in text]
    return [f"seed {walk.seed}: {one}" for one in found]


async def in_order(here: Town, conversation: str, said: list[MessageReceived]) -> list[str]:
    state = await here.lane(conversation)
    heard = [item.fact.identity for one in state.exchanges for item in one.heard if hasattr(item.fact, "identity")]
    expected = list(dict.fromkeys(one.identity for one in said))
    return [] if heard == expected else [f"{conversation} heard {heard}, not {expected}"]


async def walked(path: Path, seeds: range) -> list[str]:
    walks = [Walk(seed) for seed in seeds]
    contacts = [contact for walk in walks for contact in walk.contacts()]
    chance, prompts, found = random.Random(seeds.start), list[str](), list[str]()
    for _ in range(LIVES):  # each ends in the middle of everything
        async with town(path, desk, contacts=contacts, reach=private) as here:
            for _ in range(STEPS * len(walks) // LIVES):
                await chance.choice(walks).step(here)
        prompts += map(shown, here.model.requests)
    async with town(path, desk, contacts=contacts) as here:
        await here.settled()
        for walk in walks:
            found += await broken(here, walk)
    prompts += map(shown, here.model.requests)
    shared = [text for text in prompts if "several people in a shared place" in text]
    assert shared, "the model was asked about a shared place"
    return found + [f"in a shared place's prompt: {text[-300:]}" for text in shared if "pw" in text]


@pytest.mark.parametrize("first", range(0, SUITE, CHUNK))
async def test_each_event_is_in_one_turn_and_nothing_crosses(tmp_path: Path, first: int) -> None:
    assert await walked(tmp_path / "db", range(first, first + CHUNK)) == []


@pytest.mark.soak
@pytest.mark.parametrize("first", range(SUITE, SUITE + SOAK, 5 * CHUNK))
async def test_many_events_and_nothing_crosses(tmp_path: Path, first: int) -> None:
    assert await walked(tmp_path / "db", range(first, first + 5 * CHUNK)) == []
