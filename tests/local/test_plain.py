"""The conversation for pipes: each line after the outcome of the one before it, and figures that are true."""

import asyncio
import io
import socket
from contextlib import AsyncExitStack

import pytest

from frontdesk.doctor import check
from frontdesk.talk import look_up
from gateway.events import MediumFact
from gateway.live import ActionShown, ActionsShown, QuestionShown, TurnDecided
from gateway.record import decode
from gateway.settings import MediumsSettings, Settings, StoreSettings, WebSettings
from gateway.written import Listen, Secret
from mediums.local import wire
from mediums.local.client import LocalClient
from mediums.local.plain import run_plain
from tests.local.house import TOKEN, house


async def said(*lines):
    for line in lines:
        yield line


def running(now, *questions):
    return ActionsShown(
        route=wire.route("web"),
        actions=(
            ActionShown(action="a1", name="booking", about="Rome", phase="running", since=now, questions=questions),
        ),
    )


async def test_each_line_follows_the_outcome_of_the_one_before_and_a_silence_is_one(client):
    out = io.StringIO()
    result = await run_plain(client, said("hello\nthere", "thanks", "/code", "bye"), out, quiet_seconds=0.05)
    assert out.getvalue().splitlines() == [
        "you> hello",
        "     there",
        "assistant> hello",
        "           there",
        "you> thanks",
        "· left alone: thanks needs no answer",
        "you> /code",
        "· ```python",
        "  print(6 * 7)",
        "  ```",
        "you> bye",
        "assistant> bye",
    ]
    assert (result.messages, result.answered, result.left_alone, result.lost, result.doubled) == (3, 2, 1, 0, 0)
    assert result.ok


async def test_at_the_end_it_waits_for_what_is_running(home, client):
    await home.medium.show(running(home.medium._now()))
    plain = asyncio.create_task(run_plain(client, said("hello"), io.StringIO(), quiet_seconds=0.05))
    async with LocalClient(home.medium.url, TOKEN) as other:
        async for event in other:
            if isinstance(event, wire.Decided):
                break
    done, _ = await asyncio.wait({plain}, timeout=0.2)
    assert not done
    await home.medium.show(ActionsShown(route=wire.route("web"), actions=()))
    assert (await plain).ok


async def test_a_gateway_that_starts_again_at_the_end_is_waited_for(tmp_path):
    first, out, over = AsyncExitStack(), io.StringIO(), asyncio.Event()
    home = await first.enter_async_context(house(tmp_path / "room.db"))
    port = int(home.medium.url.rpartition(":")[2])

    async def lines():
        yield "hello"
        over.set()

    async with LocalClient(home.medium.url, TOKEN) as client:
        plain = asyncio.create_task(run_plain(client, lines(), out, quiet_seconds=0.5))
        await over.wait()
        await first.aclose()
        done, _ = await asyncio.wait({plain}, timeout=0.7)
        assert not done
        async with house(tmp_path / "room.db", port) as home:
            await home.medium.send(wire.route("web"), "Which Sarah?", "house/x/0")
            await plain
    assert out.getvalue().splitlines()[-2:] == ["· back again", "assistant> Which Sarah?"]


async def test_an_open_question_at_the_end_is_not_well(home, client):
    question = QuestionShown(question="q1", text="Which Sarah?")
    await home.medium.show(running(home.medium._now(), question))
    result = await run_plain(client, said("hello"), io.StringIO(), quiet_seconds=0.05)
    assert (result.answered, result.lost, result.questions, result.ok) == (1, 0, 1, False)


async def test_a_message_that_nobody_answers_is_lost_when_patience_ends(tmp_path):
    async with house(tmp_path / "room.db", answering=False) as home, LocalClient(home.medium.url, TOKEN) as client:
        result = await run_plain(client, said("hello", "more"), io.StringIO(), patience_seconds=0.1)
    assert (result.messages, result.lost, result.ok) == (1, 1, False)


async def test_without_a_gateway_it_says_what_to_do_once_and_does_not_wait_for_ever():
    out = io.StringIO()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with LocalClient(nobody, TOKEN) as client:
        result = await run_plain(client, said("hello"), out, patience_seconds=0.7)
    assert (result.messages, result.lost) == (1, 1)
    told, line = out.getvalue().splitlines()
    assert (told.startswith("· no gateway answers ("), line) == (True, "you> hello")
    assert told.endswith("start one with `frontdesk run`; trying again")


@pytest.mark.parametrize("token", [TOKEN, "another gateway's"])
async def test_a_look_at_the_gateway_of_other_settings_says_so(home, token):
    web = WebSettings(listen=Listen.parse(home.medium.url.removeprefix("http://")), token=Secret(token))
    text, found = await look_up(Settings(mediums=MediumsSettings(web=web)), "people", "")
    assert found is (token == TOKEN)
    assert found or text.endswith("If that is the gateway of another config.toml, name it with --config.")


async def test_what_was_said_before_is_no_part_of_it(home, client):
    await run_plain(client, said("first"), io.StringIO(), quiet_seconds=0.05)
    out = io.StringIO()
    async with LocalClient(home.medium.url, TOKEN) as second:
        result = await run_plain(second, said("second"), out, quiet_seconds=0.05)
    assert out.getvalue() == "you> second\nassistant> second\n"
    assert result.messages == 1


async def test_a_steering_turn_without_words_counts_after_a_grace(tmp_path):
    async with house(tmp_path / "room.db", answering=False) as home, LocalClient(home.medium.url, TOKEN) as client:
        plain = asyncio.create_task(
            run_plain(client, said("no, net"), io.StringIO(), grace_seconds=0.05, quiet_seconds=0.05)
        )
        async for delivery in home.broker.consume("evt.in.local", "brain"):
            fact = decode(delivery.stored.data, MediumFact)
            await home.medium.show(TurnDecided(route=fact.route, covers=(fact.identity,)))
            break
        assert (await plain).answered == 1


async def test_the_doctor_takes_the_gateway_that_runs_for_what_it_is(home, tmp_path, capsys):
    def settings(token):
        web = WebSettings(listen=Listen.parse(home.medium.url.removeprefix("http://")), token=Secret(token))
        return Settings(store=StoreSettings(path=tmp_path / "other.db"), mediums=MediumsSettings(web=web))

    for token in (TOKEN, "another"):
        await check(settings(token))
    (ours, theirs) = (line for line in capsys.readouterr().out.splitlines() if "web: " in line)
    assert ours.startswith("ok    web: the gateway that runs is at 127.0.0.1:")
    assert theirs.startswith("MEND  web: 127.0.0.1:")
