"""The tour on the page, in Debian's Chromium: the panel, its buttons, a question answered by pressing its option."""

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from frontdesk.demo import outbox
from frontdesk.demo.find_model import Found
from frontdesk.demo.stage import Options, Stage
from mediums.local.client import LocalClient
from tests.patience import PATIENCE_SECONDS

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture
async def demo(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Stage]:
    made = Stage(tmp_path, Options(pace_seconds=getattr(request, "param", 0.4)), Found(name="rehearsal"))
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


@pytest.fixture
async def page(demo: Stage) -> AsyncIterator[Page]:
    if not shutil.which(CHROMIUM):
        pytest.skip(f"needs {CHROMIUM}: apt-get install chromium")
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        opened = await browser.new_page()
        opened.set_default_timeout(PATIENCE_SECONDS * 1000)
        expect.set_options(timeout=PATIENCE_SECONDS * 1000)
        await opened.goto(f"{demo.url}/?token={demo.token}")
        await opened.wait_for_selector("[data-state=connected]")
        yield opened
        await browser.close()


async def say(page: Page, text: str) -> None:
    await page.locator("#box").fill(text)
    await page.keyboard.press("Enter")


def told(page: Page, text: str | re.Pattern[str]) -> object:
    return expect(page.locator(".post.assistant .body").filter(has_text=text).last)


async def test_the_tour_on_the_page_with_a_kill_in_the_middle(page: Page, demo: Stage, tmp_path: Path) -> None:
    panel = page.get_by_role("complementary")
    await say(page, "total February by region")
    await told(page, "On it.").to_be_visible()
    await expect(panel).to_contain_text("of 4 (paced, interrupt it)")
    await say(page, "net, not gross")
    await told(page, "Total net for February by region").to_contain_text("113,411.85")
    await say(page, "great, now do March")
    await told(page, "Total net for March by region").to_contain_text("93,339.28")
    await say(page, "send it to Sarah")
    await expect(panel.get_by_role("button", name="Sarah Okafor")).to_be_visible()

    await demo.kill_and_start()

    await page.wait_for_selector("[data-state=connected]")
    await panel.get_by_role("button", name="Sarah Okafor").click()
    await told(page, "Sent to Sarah Okafor.").to_be_visible()
    await say(page, "thanks")
    await expect(page.locator(".mark").last).to_have_text("left alone: thanks need no answer")
    assert [letter["to"] for letter in outbox.letters(tmp_path / outbox.NAME)] == ["sarah.okafor@example.org"]


@pytest.mark.parametrize("demo", [5.0], indirect=True)  # long enough to be stopped
async def test_buttons_pause_resume_and_stop_what_runs(page: Page) -> None:
    panel = page.get_by_role("complementary")
    await say(page, "total January by product")
    await expect(panel).to_contain_text("of 3 (paced, interrupt it)")
    await panel.get_by_role("button", name="Pause").click()
    await expect(panel).to_contain_text("paused")
    await expect(panel.get_by_role("button", name="Resume")).to_be_visible()
    await panel.get_by_role("button", name="Resume").click()
    await expect(panel).to_contain_text("running")
    for _ in ("stop", "yes, I mean it"):
        await panel.get_by_role("button", name="Stop").click()
    await told(page, "Stopped “sales”.").to_be_visible()
    await expect(panel.get_by_role("button", name="Stop")).to_have_count(0)


async def test_the_terminal_and_the_page_are_one_conversation(page: Page, demo: Stage) -> None:
    async with LocalClient(demo.url, demo.token) as terminal:
        terminal.say("hello")
        await told(page, "I'm the rehearsal model").to_be_visible()
        await expect(page.locator(".post.you .medium").last).to_have_text("terminal")
