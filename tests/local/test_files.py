"""Files in the room: handed over by whoever has the token, shown to nobody else, and never run."""

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import expect

from gateway.files import LARGEST_BYTES, attachment
from mediums.local import wire
from mediums.local.client import LocalClient, NotTaken
from mediums.medium import Carried
from tests.local.house import TOKEN

BEARER = {"Authorization": f"Bearer {TOKEN}"}
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000"
    "000049454e44ae426082"
)


@pytest_asyncio.fixture(loop_scope="session")
async def http(home):
    async with aiohttp.ClientSession(home.medium.url) as session:
        yield session


async def send(home, name, kind, data, text=""):
    digest = await home.broker.put_blob(data)
    carried = Carried(file=attachment(name, kind, len(data), digest), data=data)
    await home.medium.send_files(wire.route("web"), text, [carried], f"p-ana/{digest[:6]}/0/0")
    return digest


async def test_a_file_is_taken_and_said_with_a_message(home):
    async with LocalClient(home.medium.url, TOKEN, "web") as client:
        upload = await client.upload("q.pdf", "application/pdf", b"%PDF figures")
        client.say("", [upload])
        async for event in client:
            if isinstance(event, wire.Post) and event.author == "you":
                break
    (fact,) = [one for one in await home.published() if one.files]
    assert (fact.text, fact.files[0].name, fact.files[0].kind) == ("", "q.pdf", "application/pdf")
    assert await home.broker.get_blob(fact.files[0].digest) == b"%PDF figures"
    assert [one.name for one in event.files] == ["q.pdf"]


async def test_what_is_too_large_is_not_taken_and_says_so(home):
    async with LocalClient(home.medium.url, TOKEN, "web") as client:
        with pytest.raises(NotTaken, match=r"film\.mov"):
            await client.upload("film.mov", "video/quicktime", bytes(LARGEST_BYTES + 1))


async def test_a_file_that_was_never_handed_over_is_refused(home):
    async with LocalClient(home.medium.url, TOKEN, "web") as client:
        said = client.say("look", [wire.Upload(digest="0" * 64, name="a.txt", kind="text/plain", size=3)])
        async for event in client:
            if isinstance(event, wire.Refused):
                break
    assert (event.id, event.why) == (said, "the file a.txt is not here: attach it again")


async def test_nothing_is_taken_or_shown_without_the_token_or_from_another_page(home, http):
    digest = await send(home, "a.txt", "text/plain", b"abc")
    async with http.post("/files?name=a", data=b"x") as answer:
        assert answer.status == 401
    async with http.get(f"/files/{digest}") as answer:
        assert answer.status == 401
    async with http.post("/files?name=a", data=b"x", headers={**BEARER, "Origin": "https://evil.example"}) as answer:
        assert answer.status == 403
    cookie = {"Cookie": f"frontdesk_{home.medium.url.rpartition(':')[2]}={TOKEN}"}
    async with http.post("/files?name=a", data=b"x", headers=cookie) as answer:
        assert answer.status == 401  # a form of another site sends the cookie, and no origin that is ours


async def test_only_what_was_posted_here_is_shown_and_none_of_it_runs(home, http):
    page = await send(home, "evil.html", "text/html", b"<script>alert(1)</script>")
    async with http.get(f"/files/{page}", headers=BEARER) as answer:
        assert answer.status == 200
        assert answer.content_type == "application/octet-stream"
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["Content-Security-Policy"]
    elsewhere = await home.broker.put_blob(b"of somebody else")
    async with http.get(f"/files/{elsewhere}", headers=BEARER) as answer:
        assert answer.status == 404


async def test_files_are_attached_by_the_button_and_by_dropping_them_and_pictures_are_shown(home, page):
    await page.locator("#files").set_input_files({"name": "q.csv", "mimeType": "text/csv", "buffer": b"1,2"})
    await expect(page.locator(".chip .size")).to_have_text("3 B")
    await page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["dropped"], "d.txt", { type: "text/plain" }));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    await expect(page.locator(".chip .size")).to_have_count(2)
    await page.locator("#box").fill("look")
    await page.keyboard.press("Enter")
    await expect(page.locator(".post.you:not(.pending) .file")).to_have_text(["q.csv · 3 B", "d.txt · 7 B"])
    (fact,) = [one for one in await home.published() if one.files]
    assert [one.name for one in fact.files] == ["q.csv", "d.txt"]
    await send(home, "figure.png", "image/png", PNG, "Here it is")
    picture = page.locator(".post.assistant .file img")
    await expect(picture).to_have_attribute("alt", f"figure.png · {len(PNG)} B")
    await expect(picture).to_have_js_property("naturalWidth", 1)
