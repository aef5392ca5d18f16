"""Takes the README's pictures of the real product: `.venv/bin/python docs/take_pictures.py`.

It runs the demo, holds the tour's conversation on the page in Debian's Chromium, and photographs it in the middle.
"""

import asyncio
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import Page, async_playwright

from frontdesk.demo.find_model import Found
from frontdesk.demo.stage import Options, Stage

HERE = Path(__file__).with_name("pictures")
CHROMIUM = {"executable_path": "/usr/bin/chromium", "args": ["--no-sandbox", "--disable-dev-shm-usage"]}


async def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="frontdesk-pictures-"))
    stage = Stage(folder, Options(pace_seconds=1.2), Found(name="rehearsal"))
    try:
        await stage.start()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(**CHROMIUM)
            for scheme in ("light", "dark"):
                context = await browser.new_context(
                    color_scheme=scheme, viewport={"width": 1180, "height": 760}, device_scale_factor=1.5
                )
                page = await context.new_page()
                await _open(page, f"{stage.url}/?token={stage.token}")
                if scheme == "light":
                    await _talk(page)
                await page.screenshot(path=HERE / f"page-{scheme}.png")
            await browser.close()
    finally:
        await stage.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def _open(page: Page, url: str) -> None:
    await page.goto(url)
    await page.get_by_text("connected").wait_for()
    await page.wait_for_timeout(500)


async def _talk(page: Page) -> None:
    await _say(page, "total February by region", "On it.")
    await _say(page, "how far are you?", "doing:")
    await _say(page, "net, not gross", "Total net for February by region:")
    await _say(page, "great, now do March", "Total net for March by region:")
    await _say(page, "send it to Sarah", "Which Sarah?")
    await page.wait_for_timeout(800)


async def _say(page: Page, text: str, until: str) -> None:
    box = page.get_by_role("textbox", name="Message")
    await box.fill(text)
    await box.press("Enter")
    await page.get_by_text(until).last.wait_for(timeout=30_000)


asyncio.run(main())
