"""What is said in the room is in it once, in order, whatever happens to connections."""

import asyncio

from gateway.events import MessageReceived
from gateway.live import ActionShown, ActionsShown, Typing
from mediums.local import wire
from mediums.local.client import Disconnected, LocalClient
from tests.local.house import TOKEN, house
from tests.patience import PATIENCE_SECONDS


async def until(client, wanted):
    """The events up to the first that is wanted, it included."""
    seen = []
    async with asyncio.timeout(PATIENCE_SECONDS):
        async for event in client:
            seen.append(event)
            if wanted(event):
                return seen
    raise AssertionError("the client ended")


def is_post(text, author):
    return lambda event: isinstance(event, wire.Post) and (event.text, event.author) == (text, author)


def posts(events):
    return [(event.author, event.text) for event in events if isinstance(event, wire.Post)]


async def test_a_message_is_published_then_posted_then_accepted_and_its_reply_comes_to_the_same_room(home, client):
    said = client.say("hello")
    seen = await until(client, is_post("hello", "assistant"))
    assert posts(seen) == [("you", "hello"), ("assistant", "hello")]
    assert wire.Accepted(id=said, position=1) in seen
    (fact,) = home.heard
    assert isinstance(fact, MessageReceived)
    assert (fact.identity, str(fact.author.address), fact.author.name) == (
        f"local/message/{said}/0",
        "terminal:owner",
        "Ana",
    )
    assert client.unsent == ()


async def test_the_page_and_the_terminal_are_one_conversation(home, client):
    async with LocalClient(home.medium.url, TOKEN, "web") as page:
        client.say("from the terminal")
        await until(page, is_post("from the terminal", "assistant"))
        page.say("from the *page*")
        reply = (await until(client, is_post("from the *page*", "assistant")))[-1]
        assert (reply.medium, reply.html) == ("web", "")
        reply = (await until(page, is_post("from the *page*", "assistant")))[-1]
        assert reply.html == "<p>from the <em>page</em></p>\n"


async def test_who_comes_late_is_told_everything_and_who_knows_something_only_the_rest(home, client):
    client.say("one")
    seen = await until(client, is_post("one", "assistant"))
    async with LocalClient(home.medium.url, TOKEN) as late:
        assert posts(await until(late, is_post("one", "assistant"))) == posts(seen)
    async with LocalClient(home.medium.url, TOKEN, after=seen[-1].position) as later:
        client.say("two")
        assert posts(await until(later, is_post("two", "assistant"))) == [("you", "two"), ("assistant", "two")]


async def test_a_repeated_message_and_a_repeated_send_are_one_post(home, client):
    say = wire.Say(id="a" * 32, text="once")
    first = await home.medium.say(say, "web")
    assert await home.medium.say(say, "web") == first
    for _ in range(2):
        await home.medium.send(wire.route("web"), "a result", "lane/1/0/0")
    client.say("end")
    seen = posts(await until(client, is_post("end", "assistant")))
    assert seen.count(("you", "once")) == seen.count(("assistant", "a result")) == 1
    assert len(await home.published()) == 2


async def test_a_silence_is_shown_with_its_reason_also_to_who_comes_late(home, client):
    said = client.say("thanks")
    await until(client, lambda event: isinstance(event, wire.Decided))
    async with LocalClient(home.medium.url, TOKEN) as late:
        decided = (await until(late, lambda event: isinstance(event, wire.Decided)))[-1]
    assert (decided.ids, decided.silence) == ((said,), "thanks needs no answer")


async def test_a_room_that_is_opened_again_knows_what_was_said(tmp_path):
    async with house(tmp_path / "room.db") as home, LocalClient(home.medium.url, TOKEN) as client:
        client.say("before")
        await until(client, is_post("before", "assistant"))
    async with house(tmp_path / "room.db") as home, LocalClient(home.medium.url, TOKEN) as client:
        client.say("after")
        seen = await until(client, is_post("after", "assistant"))
    assert [text for _, text in posts(seen)] == ["before", "before", "after", "after"]


async def test_a_client_outlives_its_room_and_says_again_what_was_not_accepted(tmp_path):
    async with house(tmp_path / "room.db") as home:
        port = int(home.medium.url.rpartition(":")[2])
        client = await LocalClient(home.medium.url, TOKEN).__aenter__()
        client.say("before")
        await until(client, is_post("before", "assistant"))
    await until(client, lambda event: isinstance(event, Disconnected))
    client.say("while it was away")
    assert [say.text for say in client.unsent] == ["while it was away"]
    async with house(tmp_path / "room.db", port):
        seen = await until(client, is_post("while it was away", "assistant"))
        await client.__aexit__(None, None, None)
    assert posts(seen) == [("you", "while it was away"), ("assistant", "while it was away")]


async def test_a_client_of_another_room_starts_over(home):
    async with LocalClient(home.medium.url, TOKEN, after=999) as client:
        client.say("hello")
        assert len(posts(await until(client, is_post("hello", "assistant")))) == 2


async def test_a_button_is_a_fact_and_a_line_in_the_room(home, client):
    shown = ActionShown(action="a1", name="february-totals", about="sum", phase="running", since=home.medium._now())
    await home.medium.show(ActionsShown(route=wire.route("web"), actions=(shown,)))
    pressed = client.press("answer", "a1", question="q1", text="Sarah Jones")
    post = (await until(client, is_post("Sarah Jones", "you")))[-1]
    assert post.pressed == "answer february-totals"
    await until(client, lambda event: isinstance(event, wire.Accepted) and event.id == pressed)
    (fact,) = await home.published()
    assert (fact.verb, fact.action, fact.question, fact.text) == ("answer", "a1", "q1", "Sarah Jones")


async def test_live_things_are_told_at_once_and_the_last_panel_to_who_comes_late(home, client):
    await home.medium.show(Typing(route=wire.route("web"), on=True))
    await until(client, lambda event: isinstance(event, wire.Typing) and event.on)
    await home.medium.send(wire.route("web"), "done", "lane/1/0/0")
    await until(client, lambda event: isinstance(event, wire.Typing) and not event.on)
    await home.medium.show(ActionsShown(route=wire.route("web"), actions=()))
    async with LocalClient(home.medium.url, TOKEN) as late:
        await until(late, lambda event: event == wire.Actions(actions=()))


async def test_looks_are_notes_and_never_messages(home, client):
    looked = client.look("trace", "m1")
    note = (await until(client, lambda event: isinstance(event, wire.Looked)))[-1]
    assert note.id == looked
    assert "<img" not in note.html
    client.look("trace", "nothing")
    refused = (await until(client, lambda event: isinstance(event, wire.Refused)))[-1]
    assert refused.why == "there is no message like that"
    assert await home.published() == []


async def test_what_cannot_be_taken_is_refused_once_and_not_said_for_ever(client):
    for text in ("   ", "x" * (wire.MAX_TEXT + 1)):
        said = client.say(text)
        assert (await until(client, lambda event: isinstance(event, wire.Refused)))[-1].id == said
    assert client.unsent == ()


async def test_the_longest_message_fits_the_broker_whatever_is_in_it(home, client):
    client.say("\x01" * wire.MAX_TEXT)
    await until(client, lambda event: isinstance(event, wire.Post) and event.author == "assistant")
