"""The least that a bot can do and still lose nothing: poll, commit, ask the model, commit, send. One file, no product.

python -m bench.floor TELEGRAM MODEL DATABASE
"""

import asyncio
import json
import sqlite3
import sys
from typing import Any

import aiohttp


class Floor:
    def __init__(self, telegram: str, model: str, path: str, session: aiohttp.ClientSession) -> None:
        self._telegram, self._model, self._session = telegram, model, session
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(
            "pragma journal_mode=wal; pragma synchronous=full; create table if not exists entry(data text)"
        )
        self._busy: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        offset = 0
        while True:
            polled = {"offset": offset, "timeout": 25, "allowed_updates": '["message"]'}
            async with self._session.post(f"{self._telegram}/getUpdates", data=polled) as answer:
                updates = (await answer.json())["result"]
            for update in updates:
                self._commit(update)
                task = asyncio.create_task(self._answer(update["message"]))
                self._busy.add(task)
                task.add_done_callback(self._busy.discard)
                offset = update["update_id"] + 1

    async def _answer(self, message: dict[str, Any]) -> None:
        asked = {"model": "scripted", "stream": True, "messages": [{"role": "user", "content": message["text"]}]}
        text = ""
        async with self._session.post(f"{self._model}/chat/completions", json=asked) as answer:
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        text += choice["delta"].get("content") or ""
        self._commit(text)
        sent = {"chat_id": message["chat"]["id"], "text": text}
        async with self._session.post(f"{self._telegram}/sendMessage", data=sent) as answer:
            await answer.read()

    def _commit(self, value: Any) -> None:
        self._db.execute("insert into entry values (?)", (json.dumps(value),))


async def main(telegram: str, model: str, path: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=256)) as session:
        await Floor(telegram, model, path, session).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
