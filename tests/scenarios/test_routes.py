"""Each reply goes where its message came from, and what bears on one chat is in no other's request or message."""

import random

from tests.servers.telegram import LOST_ANSWER, Refuse
from tests.staging.models import Reply, call, new_to_desk

CHATS, ROUNDS = 30, 3


async def test_two_mediums_interleaved_get_each_its_own_reply(stage):
    for n in range(3):
        stage.desk.on(f"terminal {n}").replies(f"answer to terminal {n}")
        stage.desk.on(f"telegram {n}").replies(f"answer to telegram {n}")
    for n in range(3):
        await stage.ana.terminal(f"terminal {n}.").sees(f"answer to terminal {n}")
        await stage.ana.telegram(f"telegram {n}.").sees(f"answer to telegram {n}")
    assert stage.ana.on("terminal") == [f"answer to terminal {n}" for n in range(3)]
    assert stage.ana.on_telegram() == [f"answer to telegram {n}" for n in range(3)]


async def test_two_places_in_one_turn_must_be_answered_one_by_one(stage):
    first = stage.desk.on("from here").replies("Hello").held()
    both = stage.desk.on("from here", "from there").replies("Hello, wherever you are")
    both.calls(call("send_message", text="here", reply_to="m1"), call("send_message", text="there", reply_to="m2"))
    here = stage.ana.telegram("from here.")
    await first.streaming()
    there = stage.ana.terminal("from there.")
    await there.sees("there")
    await here.sees("here")
    assert (here.after(), there.after()) == (["here"], ["there"])
    assert "say which you reply to" in both.requests[1].messages[-1]["content"]


async def test_where_the_model_says_nothing_every_place_hears_of_it(stage):
    first = stage.desk.on("from here").replies("Hello").held()
    stage.desk.on("from here", "from there").gives(Reply(text=""))
    here = stage.ana.telegram("from here.")
    await first.streaming()
    there = stage.ana.terminal("from there.")
    await there.sees("Could you say it differently?")
    await here.sees("Could you say it differently?")


async def test_where_the_model_will_not_say_which_it_is_said_in_every_place(stage):
    first = stage.desk.on("from here").replies("Hello").held()
    stage.desk.on("from here", "from there").replies("Hello, wherever you are")
    here = stage.ana.telegram("from here.")
    await first.streaming()
    there = stage.ana.terminal("from there.")
    await there.sees("Hello, wherever you are")
    await here.sees("Hello, wherever you are")


async def test_a_result_goes_where_its_task_was_asked_for(stage):
    stage.desk.on("Book").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("Nice weather").replies("Indeed")
    held = stage.worker.on("Book Rome").responds("Booked").held()
    book = stage.ana.telegram("Book Rome.")
    await held.streaming()
    weather = stage.ana.terminal("Nice weather.")
    await weather.sees("Indeed")
    held.release()
    await book.sees("Booked")
    assert weather.after() == ["Indeed"]


async def test_a_result_goes_elsewhere_if_they_say_so(stage):
    stage.desk.on("Hello").replies("Good morning")
    stage.desk.on("tell me here").acts("booking", "Book Rome", saying="On it")
    stage.desk.told("booking responded").calls(call("send_message", text="It is booked", medium="terminal"))
    stage.worker.on("Book Rome").responds("Booked")
    hello = stage.ana.terminal("Hello.")
    await hello.sees("Good morning")
    book = stage.ana.telegram("Book Rome, and tell me here on the terminal.")
    await hello.sees("It is booked")
    assert book.after() == ["On it"]


async def test_a_private_thing_is_in_nobody_elses_request(stage):
    stage.desk.on("salary").replies("Noted")
    ben = stage.desk.on("Hello").replies("Hello, Ben")
    await stage.ana.telegram("My salary is 5.").sees("Noted")
    await stage.ben.telegram("Hello.").sees("Hello, Ben")
    assert "salary" not in (await ben.asked()).text


async def test_a_group_is_answered_in_the_group_and_what_is_private_stays_private(stage):
    group = stage.telegram.group("Travel")
    stage.desk.on("salary").replies("Noted")
    in_group = stage.desk.on("who is there").replies("I am")
    await stage.ana.telegram("My salary is 5.").sees("Noted")
    text = "@helperbot who is there?"
    stage.ana.telegram(text, chat=group, entities=[{"type": "mention", "offset": 0, "length": 10}])
    await stage.telegram.sees(group, "I am")
    assert "salary" not in (await in_group.asked()).text
    assert stage.ana.on_telegram() == ["Noted"]


async def test_what_a_group_says_among_itself_is_not_answered(stage):
    group = stage.telegram.group("Travel")
    stage.desk.on("salary").replies("Noted")
    stage.ben.telegram("Who has the tickets?", chat=group)
    await stage.ana.telegram("My salary is 5.").sees("Noted")
    assert stage.telegram.seen_by(group) == []
    assert len(stage.desk.requests) == 1


# --- sends that fail -------------------------------------------------------------------------------------------------


async def test_a_send_whose_answer_is_lost_is_not_repeated_blindly(stage):
    stage.desk.on("Hello").replies("Good morning")
    unknown = stage.desk.told("a send unknown").waits("it has most likely arrived")
    stage.telegram.script("sendMessage", LOST_ANSWER)
    hello = stage.ana.telegram("Hello.")
    assert "“Good morning” on telegram" in (await unknown.asked()).text
    assert hello.after() == ["Good morning"]


async def test_a_send_that_is_told_to_wait_is_sent_once(stage):
    stage.desk.on("Hello").replies("Good morning")
    stage.telegram.script("sendMessage", Refuse(429, "Too Many Requests: retry after 1", retry_after=1))
    hello = stage.ana.telegram("Hello.")
    await hello.sees("Good morning")
    assert hello.after() == ["Good morning"]


async def test_a_person_who_has_blocked_the_bot_is_heard_again_later(stage):
    stage.desk.on("Hello").replies("Good morning")
    failed = stage.desk.told("a send failed").waits("they have blocked me")
    stage.ben.phone.blocks()
    stage.ben.telegram("Hello.")
    await failed.asked()
    stage.ben.phone.unblocks()
    await stage.ben.telegram("Hello again.").sees("Good morning")


# --- many ------------------------------------------------------------------------------------------------------------


async def test_many_chats_at_random_times_get_each_only_its_own(opens):
    async with opens(more='[access]\nunknown = "reply"') as stage:
        chance = random.Random(5)

        def echo(received):
            words = [word for word in new_to_desk(received).replace(".", " ").split() if word.startswith("chat-")]
            return Reply(text=" ".join(words), delay_seconds=chance.random() * 0.05)

        stage.desk.on("chat-").decides(echo)
        people = [stage.telegram.person(f"Guest {n}") for n in range(CHATS)]
        said = [(person, f"chat-{n}-{turn}") for turn in range(ROUNDS) for n, person in enumerate(people)]
        chance.shuffle(said)
        for person, word in said:
            person.says(f"Say {word}.")
        told = {person.id: stage.telegram.seen_by(person) for person in people}

        def all_told():
            told.update((person.id, " ".join(stage.telegram.seen_by(person)).split()) for person in people)
            return sum(map(len, told.values())) >= len(said)

        await stage.telegram.until(all_told, 20.0)
        for person in people:
            assert sorted(told[person.id]) == sorted(word for one, word in said if one is person)
        for request in stage.desk.requests:
            chats = {word.split("-")[1] for word in request.text.replace(".", " ").split() if word.startswith("chat-")}
            assert len(chats) == 1
