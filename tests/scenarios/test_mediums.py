"""One person on three platforms, one conversation and one task: each word goes where it belongs, through a kill -9."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.scenarios.places import mail_settings, slack_settings
from tests.servers.mail import Mail
from tests.servers.slack import SlackServer
from tests.stage import Stage, open_stage
from tests.staging.models import call, new_to_desk

MAIL = "ana@example.org"


@asynccontextmanager
async def everywhere(folder: Path) -> AsyncIterator[tuple[Stage, SlackServer, Mail]]:
    """A gateway in a process of its own, on Slack, Telegram and mail; Ana has an address on each."""
    async with SlackServer() as slack, Mail() as mail:
        more = slack_settings(slack) + mail_settings(mail)
        async with open_stage(folder, None, more=more, also=("slack:T1/UANA", f"email:{MAIL}")) as stage:
            yield stage, slack, mail


async def test_begun_in_slack_corrected_by_mail_asked_on_telegram_and_ended_by_mail_through_a_kill(tmp_path):
    async with everywhere(tmp_path) as (stage, slack, mail):
        desk, worker = stage.desk, stage.worker
        desk.on("the sales report").acts("report", "The sales report", saying="On it")
        first = worker.on("The sales report").responds("Never said").silent()
        ana_in_slack = slack.person("Ana")
        ana_in_slack.says("Make the sales report.")
        await slack.sees(ana_in_slack, "On it")
        await first.asked()

        desk.on("net, not gross").interjects("report", "Net, not gross")
        corrected = worker.on("Net, not gross")
        corrected.calls(call("request_clarification", question="Which region?")).silent()
        mail.person(MAIL, "Ana").sends("It must be net, not gross.", subject="The report")
        await corrected.asked()

        await stage.kill()
        await stage.start()
        await corrected.asked(2)

        moved = desk.on("on the train").waits("they tell me where they are")
        stage.ana.telegram("I'm on the train now.")
        await moved.asked()
        await stage.until(lambda: not stage.lane().undecided and stage.lane().routes)
        corrected.release()
        question = await stage.ana.sees("Which region?")
        assert stage.ana.on_telegram() == [question], "asked where they are now"

        desk.on("North").answers("report", "North", saying="I'll mail it to you")
        worker.on("North").responds("North made 42 net")
        done = desk.told("report responded").calls(call("send_message", text="The report: 42 net.", medium="email"))
        stage.ana.telegram("North, and mail me the result.")
        answer = await mail.sees(MAIL, "The report: 42 net.")
        assert answer.subject == "Re: The report", "in the thread of the correction"

        desk.on("hotel").calls(call("send_message", text="The hotel is the Astoria", medium="email"))
        stage.ana.telegram("And mail me the name of the hotel.")
        answer = await mail.sees(MAIL, "The hotel is the Astoria")
        assert (answer.subject, answer["in-reply-to"]) == ("The hotel is the Astoria", ""), "no thread was about that"

        assert [one for one in slack.seen_by(ana_in_slack) if "report ·" not in one] == ["On it"], "but for a card"
        assert stage.ana.on_telegram() == [question, "I'll mail it to you"]
        assert len(mail.seen_by(MAIL)) == 2
        seen = (await done.asked()).text
        for word in ("Make the sales report", "net, not gross", "on the train", "North, and mail me"):
            assert word in seen, "it is one conversation"
        assert "report responded" in new_to_desk(await done.asked())
