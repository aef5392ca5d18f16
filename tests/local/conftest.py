import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import async_playwright
from pytest_asyncio import is_async_test

from mediums.local.client import LocalClient
from tests.local.house import TOKEN, house

CHROMIUM = "/usr/bin/chromium"


def pytest_collection_modifyitems(items):
    """One loop for the folder, because its tests share one browser."""
    for item in items:
        if item.path.parent == Path(__file__).parent and is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def loop_thread():
    """The one thread of the loop's executor is there before the first test, which would else be said to leave it."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    await asyncio.to_thread(str)


@pytest_asyncio.fixture(loop_scope="session")
async def home(tmp_path):
    async with house(tmp_path / "room.db") as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def client(home):
    async with LocalClient(home.medium.url, TOKEN) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser():
    """Debian's Chromium, one for the folder."""
    if not shutil.which(CHROMIUM):
        pytest.skip(f"needs {CHROMIUM}: apt-get install chromium")
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking"]
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser, home):
    """The room's page, opened as a person would; what the browser complains about fails the test."""
    complaints = []
    context = await browser.new_context()
    opened = await context.new_page()
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    await opened.goto(await home.medium.listening())
    await opened.wait_for_selector("[data-state=connected]")
    yield opened
    await context.close()
    assert complaints == []
