"""Many people at once: nothing lost, doubled or misrouted. The figures themselves are `python -m bench.store`."""

import asyncio

from tests.store.conftest import eventually
from tests.store.stage import EchoModel, FakePlatform, said, stage


async def test_two_hundred_messages_of_fifty_chats_are_each_answered_once(tmp_path):
    chats = [f"{100 + n}" for n in range(50)]
    platform, model = FakePlatform(), EchoModel(0.1)
    async with stage(tmp_path / "s.db", model, chats, [platform]) as s:
        await asyncio.gather(*(s.hears(said(chat, f"word-{chat}-{n}.", n)) for n in range(4) for chat in chats))
        words = sorted(f"word-{chat}-{n}." for chat in chats for n in range(4))

        def found():
            told = [(place, word) for place, text, _, _ in platform.arrived for word in text.split()]
            return [(place, word) for place, word in told if word.startswith("word-")]

        await eventually(lambda: len(found()) >= len(words))
        assert sorted(word for _, word in found()) == words
        assert all(word.startswith(f"word-{place}-") for place, word in found())
