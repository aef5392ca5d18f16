"""Files both ways: what people send reaches the work, what the work makes reaches people; albums, edits and emojis."""

from gateway.events import MessageReceived
from tests.servers.telegram import Refuse
from tests.staging.models import call, live_state, new_to_desk, new_to_worker

SUM = """\
from pathlib import Path
(numbers,) = Path(".").glob("received-*/*")
total = sum(map(int, numbers.read_text().split()))
Path("total.txt").write_text(f"total {total}")
print(await primitives.files.send("total.txt"))
"""


async def test_a_file_on_telegram_reaches_the_work_and_what_the_work_makes_comes_back(stage):
    stage.desk.on("Sum it").acts("summing", "Sum the numbers", saying="On it")
    work = stage.worker.on("Sum the numbers").runs(SUM)
    passed = stage.desk.told("total.txt", "responded").calls(call("send_message", text="Here it is", attach=["f2"]))
    document = stage.telegram.file(b"1 2 3", file_name="../../numbers.txt", mime_type="text/plain")
    said = stage.ana.telegram(None, document=document, caption="Sum it")
    await said.sees("Here it is")
    shown = await stage.telegram.sees(stage.ana.phone, lambda one: one.file is not None)
    assert (shown.file.name, shown.file.data) == ("total.txt", b"total 6")
    assert "[file: received-1/numbers.txt (text/plain, 5 B)]" in new_to_worker(await work.asked())
    assert "offers a file" in new_to_desk(await passed.asked())
    await stage.until(lambda: [one.outcome for one in stage.lane().sends.values()] == ["sent", "sent"])


async def test_a_file_goes_on_to_another_medium_and_to_a_task_that_runs(stage):
    stage.desk.on("Sum").acts("summing", "Wait for numbers", saying="Send them")
    waits = stage.worker.on("Wait for numbers").responds("Ready")
    told = stage.desk.told("Ready").waits("nothing to say")
    upload = await stage.page.client.upload("numbers.csv", "text/csv", b"1,2")
    await stage.ana.telegram("Sum").sees("Send them")
    await waits.over()
    await told.over()
    await stage.until(lambda: not stage.lane().undecided)
    stage.desk.on("these").interjects("summing", saying="Passed on")
    more = stage.worker.on("these").responds("Taken")
    said = stage.page.client.say("these", [upload])
    await stage.page.until(lambda: "Passed on" in stage.page.shown())
    assert "numbers.csv (text/csv, 3 B)" in new_to_worker(await more.asked())
    stage.desk.on("to my phone").calls(call("send_message", text="", medium="telegram", attach=["numbers.csv"]))
    stage.page.client.say("and to my phone")
    shown = await stage.telegram.sees(stage.ana.phone, lambda one: one.file is not None)
    assert (shown.file.name, shown.file.data) == ("numbers.csv", b"1,2")
    (post,) = [one for one in stage.page.posts if one.id == said]
    assert [one.name for one in post.files] == ["numbers.csv"]


async def test_who_sends_what_cannot_be_taken_is_told_so_by_code(stage):
    stage.desk.told("big.mov").waits("they know")
    said = stage.ana.telegram(None, video=stage.telegram.file(b"x", file_name="big.mov") | {"file_size": 50_000_000})
    assert "I could not take “big.mov”: it is larger (50.0 MB)" in await said.sees("big.mov")


async def test_tg04_an_album_is_one_turn_with_one_reply(stage):
    group = stage.telegram.group("Team")
    told = stage.desk.on("compare").replies("The second is better")
    stage.telegram.script("download", Refuse(500, ""))

    def piece(**fields):
        stage.ana.phone.says(None, group, media_group_id="G1", photo=stage.telegram.photo(b"a picture"), **fields)

    mention = {"type": "mention", "offset": 0, "length": 10}
    piece(message_id=101)
    piece(message_id=103, caption="after")
    piece(message_id=102, caption="@helperbot compare: before", caption_entities=[mention])
    await stage.telegram.sees(group, "The second is better")
    events = new_to_desk(await told.asked(len(told.requests)))
    first, second, third = [line for line in events.splitlines() if "photo.jpg" in line]
    assert "not taken" in first
    assert second.endswith("] compare: before")
    assert third.endswith("] after")
    assert [text for text in stage.telegram.seen_by(group) if "better" in text] == ["The second is better"]
    assert [text for text in stage.telegram.seen_by(group) if "could not take" in text] != []


async def test_tg05_an_edit_within_the_window_is_what_was_said(stage):
    first = stage.desk.on("delete branch dev").replies("Deleted").held()
    listed = stage.desk.on("list branches").replies("main, dev")
    message = stage.ana.phone.says("delete branch dev.")
    await first.streaming()
    stage.ana.phone.edits(message, "list branches.", edit_date=1)
    await stage.ana.sees("main, dev")
    assert "delete" not in new_to_desk(await listed.asked())
    assert stage.lane().turns == 1
    stage.desk.on("and tags").replies("v1")
    stage.ana.phone.edits(message, "list branches. ", edit_date=90)
    stage.ana.phone.edits(message, "list branches and tags.", edit_date=95)
    await stage.ana.sees("v1")
    late = stage.lane().exchanges[-1].heard[0]
    assert (late.about, late.before) == ("m1", "list branches.")
    assert stage.lane().turns == 2


async def test_tg05_a_mention_that_an_edit_adds_is_answered_once(stage):
    group = stage.telegram.group("Team")
    stage.desk.on("what time is it").replies("Noon")
    message = stage.ana.phone.says("what time is it?", group)
    mention = {"text": "@helperbot what time is it?", "entities": [{"type": "mention", "offset": 0, "length": 10}]}
    for edit_date in (90, 95):
        stage.ana.phone.edits(message, **mention, edit_date=edit_date)
    await stage.telegram.sees(group, "Noon")
    stage.ana.phone.says("/status", group, entities=[{"type": "bot_command", "offset": 0, "length": 7}])
    await stage.telegram.sees(group, "Nothing is in flight")
    assert list(stage.telegram.seen_by(group)) == ["Noon", "Nothing is in flight."]


async def test_tg05_an_edited_command_does_not_run_again(stage):
    message = stage.ana.phone.says("/status")
    await stage.telegram.sees(stage.ana.phone, "Nothing is in flight")
    stage.ana.phone.edits(message, "/help", edit_date=90)
    stage.desk.on("hello").replies("Hello")
    await stage.ana.telegram("hello.").sees("Hello")
    assert len(stage.ana.on_telegram()) == 2


async def test_emojis_are_shown_with_the_next_turn_and_put_by_the_assistant(stage):
    stage.desk.on("hello").replies("Hello")
    await stage.ana.telegram("hello.").sees("Hello")
    shown = await stage.telegram.sees(stage.ana.phone, "Hello")
    stage.ana.phone.reacts(shown, "👍")
    thanked = stage.desk.on("thanks").calls(call("react", emoji="🎉"))
    message = stage.ana.phone.says("thanks.")
    await stage.telegram.until(lambda: stage.telegram.reactions)
    assert stage.telegram.reactions == {(stage.ana.phone.id, message["message_id"]): "🎉"}
    assert "[a message of yours · " in new_to_desk(await thanked.asked())
    assert "Ana put 👍]" in new_to_desk(await thanked.asked())
    assert stage.lane().turns == 2


async def test_the_live_state_names_the_files_at_hand(stage):
    seen = stage.desk.told("a.txt").waits()
    stage.ana.telegram(None, document=stage.telegram.file(b"abc", file_name="a.txt", mime_type="text/plain"))
    assert "Files: f1 a.txt, text/plain, 3 B" in live_state(await seen.asked())
    await stage.until(lambda: stage.lane().turns == 1)
    (heard,) = stage.lane().exchanges[0].heard
    assert isinstance(heard.fact, MessageReceived)
