"""People on real wires: codes, orders of the operator, and work of a group that is steered in private."""

import re

from brain.audience import WENT_ON

CODE = re.compile(r"[A-Z2-9]{4}-[A-Z2-9]{4}")
MENTION = [{"type": "mention", "offset": 0, "length": 10}]


async def test_a_code_of_the_terminal_said_on_telegram_makes_one_conversation_of_two(stage):
    stage.desk.on("salary").replies("Noted")
    both = stage.desk.on("what do you know").replies("Your salary")
    await stage.ana.terminal("My salary is 5.").sees("Noted")
    code = CODE.search(await stage.ana.terminal("/link").sees("this to me"))[0]
    await stage.sam.telegram(code).sees("is Ana now")
    await stage.ana.sees("If you did not do that")
    await stage.sam.telegram("So what do you know?").sees("Your salary")
    assert "salary is 5" in (await both.asked()).text


async def test_a_stranger_gets_a_code_where_that_is_set_and_no_model_is_asked(opens):
    async with opens(more='[access]\ntelegram = "pair"') as stage:
        code = CODE.search(await stage.sam.telegram("Hello?").sees("I don't know you here"))[0]
        assert not stage.desk.requests
        stage.desk.on("Now").replies("Welcome, Ben")
        await stage.ben.telegram(code).sees("is Ben now")
        await stage.sam.telegram("Now.").sees("Welcome, Ben")


async def test_the_operator_sees_and_changes_who_is_who(stage):
    sam = f"telegram:{stage.sam.phone.id}"
    stage.desk.on("Hello").replies("Hello, Ben")
    assert "**Ben**, member" in await stage.terminal.look("people")
    assert sam in await stage.terminal.look("people", f"link Ben {sam}")
    await stage.sam.telegram("Hello.").sees("Hello, Ben")
    assert "already" in await stage.terminal.look("people", f"link Gus {sam}")
    assert "Write `people`" in await stage.terminal.look("people", "marry Ben")
    assert sam not in await stage.terminal.look("people", f"unlink {sam}")


async def test_what_an_unlinked_address_asked_for_is_not_told_there(stage):
    sam = f"telegram:{stage.sam.phone.id}"
    stage.desk.on("February").acts("sales", "Total February", saying="On it")
    stage.desk.on("now March").interjects("sales", saying="On March")
    stage.worker.on("Total February").responds("total 6")
    march = stage.worker.on("now March").responds("total 10").silent()
    await stage.terminal.look("people", f"link Ana {sam}")
    february = stage.ana.terminal("Total February.")
    await february.sees("total 6")
    await stage.sam.telegram("now March.").sees("On March")
    await march.asked()
    await stage.terminal.look("people", f"unlink {sam}")
    march.release()
    await february.sees("total 10")
    assert "total 10" not in stage.sam.on_telegram()


async def test_what_is_added_in_private_is_told_in_private(stage):
    group = stage.telegram.group("Travel")
    stage.desk.on("book").acts("booking", "Book Rome", saying="On it")
    stage.desk.on("my card").interjects("booking", "card 4242", saying="Passed on")
    held = stage.worker.on("Book Rome").responds("Never said").silent()
    stage.worker.on("4242").responds("Booked with card 4242")
    stage.ana.telegram("@helperbot book Rome.", chat=group, entities=MENTION)
    await stage.telegram.sees(group, "On it")
    await held.asked()
    await stage.ana.telegram("Use my card 4242.").sees("Passed on")
    await stage.ana.sees("Booked with card 4242")
    await stage.telegram.sees(group, WENT_ON)
    assert "4242" not in str(stage.telegram.seen_by(group))
    shared = [one.text for one in stage.desk.requests if "several people in a shared place" in one.text]
    assert shared
    assert not any("4242" in text for text in shared)
