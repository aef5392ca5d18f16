"""A process that appends to a store until it is killed; each number on stdout was acknowledged. Run by a test."""

import asyncio
import sys
from pathlib import Path

from gateway.broker.sqlite import SqliteBroker


async def main(path: Path) -> None:
    broker = SqliteBroker(path)

    async def one(task: int) -> None:
        number = 0
        while True:
            data = f"{task}/{number}".encode()
            await broker.append(f"log.lane.{task}", data, msg_id=data.decode())
            sys.stdout.write(f"{data.decode()}\n")
            sys.stdout.flush()
            number += 1

    await asyncio.gather(*(one(task) for task in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
