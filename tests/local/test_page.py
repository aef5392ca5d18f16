"""The page in a real browser: what a person sees, presses and types, and what comes of it."""

import asyncio
from datetime import timedelta

import pytest
from playwright.async_api import expect

from gateway.live import ActionShown, ActionsShown, QuestionShown, Typing
from mediums.local import wire
from mediums.local.client import LocalClient
from tests.local.house import TOKEN
from tests.patience import PATIENCE_SECONDS

HOSTILE = """<script>window.pwned = 1</script>

<img src=x onerror="window.pwned = 1"> <svg onload="window.pwned = 1"></svg>

[click](javascript:window.pwned=1) <a href="javascript:window.pwned=1">me</a> [data](data:text/html,<script>1</script>)

![picture](https://example.invalid/steal?what=said)

<iframe src="https://example.invalid"></iframe> `<b onclick=x>` <javascript:window.pwned=1>"""


def words(page, author):
    return page.locator(f".post.{author} .body")


async def say(page, text):
    await page.locator("#box").fill(text)
    await page.keyboard.press("Enter")


def working(home, **changes):
    since = home.medium._now() - timedelta(minutes=3)
    fields = {"action": "a1", "name": "march-totals", "about": "Do March", "phase": "running", "since": since}
    return ActionShown(**{**fields, "can": ("interject", "ask", "pause", "stop"), **changes})


async def show(home, *actions):
    await home.medium.show(ActionsShown(route=wire.route("web"), actions=actions))


async def test_a_message_is_said_its_reply_is_rendered_and_a_reload_shows_each_once(home, page):
    await say(page, "is it **true**?")
    await expect(words(page, "assistant").locator("strong")).to_have_text("true")
    await expect(words(page, "you")).to_have_text(["is it **true**?"])
    await page.reload()
    await expect(words(page, "assistant")).to_have_text(["is it true?"])
    await expect(words(page, "you")).to_have_text(["is it **true**?"])
    assert len(await home.published()) == 1


async def test_both_mediums_are_one_stream_with_labels(home, page):
    async with LocalClient(home.medium.url, TOKEN) as terminal:
        terminal.say("from the terminal")
        await expect(words(page, "assistant")).to_have_text(["from the terminal"])
        await say(page, "from the page")
        await expect(page.locator(".post .medium")).to_have_text(["terminal", "terminal", "web", "web"])


async def test_hostile_words_are_inert(home, page):
    await say(page, HOSTILE)
    await expect(words(page, "assistant")).to_contain_text("window.pwned")
    await say(page, "/trace " + HOSTILE.replace("\n", " ")[:150])
    await expect(page.locator(".note .body")).to_contain_text("onerror")
    inside = "document.querySelectorAll('#posts :is(script, img, svg, iframe, [onerror], [onload], [style])').length"
    assert await page.evaluate(inside) == 0
    links = await page.eval_on_selector_all("#posts a", "all => all.map(one => [one.protocol, one.rel, one.target])")
    assert all(protocol in ("https:", "http:", "mailto:") for protocol, _, _ in links)
    assert all("noopener" in rel and target == "_blank" for _, rel, target in links)
    assert await page.evaluate("window.pwned") is None


async def test_a_silence_is_marked_on_its_message_also_after_a_reload(page):
    await say(page, "thanks")
    mark = page.locator(".post.you .mark")
    await expect(mark).to_have_text("left alone: thanks needs no answer")
    await page.reload()
    await expect(mark).to_have_text("left alone: thanks needs no answer")


async def test_typing_is_shown_until_the_reply(home, page):
    await home.medium.show(Typing(route=wire.route("web"), on=True))
    await expect(page.locator("#typing")).to_have_text("Frontdesk is typing")
    await home.medium.send(wire.route("web"), "here it is", "lane/1/0/0")
    await expect(words(page, "assistant")).to_have_text(["here it is"])
    await expect(page.locator("#typing")).to_be_hidden()


async def test_the_panel_shows_what_is_in_flight_and_only_what_may_be_done(home, page):
    await show(home, working(home, doing="Reading march.csv"))
    card = page.locator(".card")
    await expect(card.locator("h3")).to_have_text("march-totals")
    await expect(card.locator(".state")).to_have_text("running")
    await expect(card.locator(".age")).to_have_text("3 min")
    await expect(card.locator(".doing")).to_have_text("Reading march.csv")
    await expect(card.locator(".row button")).to_have_text(["Ask", "Pause", "Stop"])
    await show(home, working(home, phase="paused", can=("ask", "resume", "stop")))
    await expect(card.locator(".row button")).to_have_text(["Ask", "Resume", "Stop"])
    await show(home)
    await expect(card).to_have_count(0)
    await expect(page.locator("#idle")).to_be_visible()


async def test_the_buttons_press(home, page):
    question = QuestionShown(question="q1", text="Which Sarah?", options=("Sarah Jones", "Sarah Okafor"))
    await show(home, working(home, questions=(question,)))
    card = page.locator(".card")
    await card.get_by_role("button", name="Pause march-totals").click()
    await card.get_by_role("button", name="Ask march-totals").click()
    await page.keyboard.type("how far?")
    await page.keyboard.press("Enter")
    await card.get_by_role("button", name="Sarah Okafor").click()
    await expect(page.locator(".post.pressed")).to_have_count(3)
    await card.get_by_label("Another answer").fill("the one in Rome")
    await page.keyboard.press("Enter")
    await expect(page.locator(".post.pressed")).to_have_count(4)
    stop = card.get_by_role("button", name="Stop march-totals")
    await stop.click()
    await expect(stop).to_have_text("Stop it?")
    await stop.click()
    await expect(page.locator(".post.pressed .body")).to_have_text(
        [
            "pause march-totals",
            "ask march-totals: how far?",
            "answer march-totals: Sarah Okafor",
            "answer march-totals: the one in Rome",
            "stop march-totals",
        ]
    )
    assert [(fact.verb, fact.action, fact.question, fact.text) for fact in await home.published()] == [
        ("pause", "a1", "", ""),
        ("ask", "a1", "", "how far?"),
        ("answer", "a1", "q1", "Sarah Okafor"),
        ("answer", "a1", "q1", "the one in Rome"),
        ("stop", "a1", "", ""),
    ]


async def test_a_live_change_takes_no_half_written_answer_away(home, page):
    question = QuestionShown(question="q1", text="Which Sarah?")
    await show(home, working(home, questions=(question,)))
    answer = page.get_by_label("Another answer")
    await answer.press_sequentially("the one")
    await show(home, working(home, questions=(question,), doing="Waiting"))
    await expect(page.locator(".doing")).to_have_text("Waiting")
    await expect(answer).to_have_value("the one")
    await expect(answer).to_be_focused()


async def test_looks_are_notes_that_are_gone_with_the_page(home, page):
    await say(page, "/code")
    await expect(page.locator(".note pre")).to_have_text("print(6 * 7)\n")
    await say(page, "/trace nothing")
    await expect(page.locator(".note .body").nth(1)).to_have_text("there is no message like that")
    await page.get_by_role("button", name="Close /code").click()
    await expect(page.locator(".note")).to_have_count(1)
    assert await home.published() == []


async def test_the_keyboard_is_enough(home, page):
    box = page.locator("#box")
    await expect(box).to_be_focused()
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await expect(box).to_have_value("one\ntwo")
    await page.keyboard.press("Enter")
    await expect(words(page, "you")).to_have_text(["one\ntwo"])
    await page.keyboard.press("ArrowUp")
    await expect(box).to_have_value("one\ntwo")
    await page.keyboard.press("Escape")
    await expect(page.locator("#stream")).to_be_focused()
    await page.keyboard.press("/")
    await expect(box).to_be_focused()
    await expect(box).to_have_value("one\ntwo")
    await show(home, working(home))
    await page.locator(".card").wait_for()
    reached = set()
    for _ in range(10):
        await page.keyboard.press("Tab")
        reached.add(await page.evaluate("document.activeElement.getAttribute('aria-label')"))
    assert {"Send", "Ask march-totals", "Pause march-totals", "Stop march-totals", "Messages"} <= reached


async def test_only_what_is_new_is_read_aloud(page):
    await expect(page.locator("#stream")).to_have_attribute("aria-live", "polite")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_layout_scrolls_sideways(home, browser, scheme):
    long = "w" * 300
    table = "| " + " | ".join("column" for _ in range(30)) + " |\n|" + "---|" * 30
    await home.medium.send(wire.route("web"), f"{long}\n\n```\n{long}\n```\n\n{table}", "lane/1/0/0")
    await home.medium.say(wire.Say(id="a" * 32, text=long), "web")
    await show(
        home, working(home, name=long, about=long, doing=long, questions=(QuestionShown(question="q", text=long),))
    )
    context = await browser.new_context(color_scheme=scheme)
    page = await context.new_page()
    await page.goto(await home.medium.listening())
    await expect(page.locator(".post")).to_have_count(3)
    backgrounds = set()
    for width in (320, 390, 820, 821, 1280):
        await page.set_viewport_size({"width": width, "height": 700})
        if await page.locator("#strip").get_attribute("aria-expanded") == "false" and width <= 820:
            await page.locator("#strip").click()
        assert await page.locator("#work").is_visible()
        for scrolled in (
            "document.documentElement",
            "document.getElementById('stream')",
            "document.getElementById('work')",
        ):
            assert await page.evaluate(f"{scrolled}.scrollWidth <= {scrolled}.clientWidth"), (width, scrolled)
        backgrounds.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds == {"rgb(250, 249, 246)" if scheme == "light" else "rgb(23, 23, 20)"}


async def test_a_page_that_is_scrolled_up_stays_there_and_says_that_there_is_more(home, page):
    for number in range(12):
        await home.medium.send(wire.route("web"), "line\n\n" * 4, f"lane/{number}/0/0")
    await expect(page.locator(".post")).to_have_count(12)
    await page.evaluate("document.getElementById('stream').scrollTop = 0")
    await asyncio.wait_for(home.medium.send(wire.route("web"), "the newest", "lane/99/0/0"), PATIENCE_SECONDS)
    await page.locator("#newer").click()
    await expect(words(page, "assistant").last).to_be_in_viewport()
