"""One reader of a durable consumer. What it has given out is kept extended for as long as this process runs."""

import asyncio
from contextlib import suppress

from nats.aio.msg import Msg

from gateway.broker.nats_calls import LOST, ask
from gateway.broker.nats_pull import Ended, Pull
from gateway.broker.protocol import Stored, Unconfirmed

PULL_SECONDS = 2.0  # how long a request for the next entry stands; one of a frozen process catches at most one entry
STARTING_SECONDS = 0.2  # until a server that starts is asked again


class Consumer:
    """One reader of a durable consumer: keeps what it has given out extended, and hands back what it did not finish."""

    def __init__(self, pull: Pull, ack_wait_seconds: float) -> None:
        self._pull, self._ack_wait_seconds = pull, ack_wait_seconds
        self._given: set[NatsDelivery] = set()
        self._asked = False  # a request stands
        self._closed = False
        self._extending = asyncio.create_task(self._extend_forever(), name="extend deliveries")

    async def next(self) -> Msg:
        """Raises Unconfirmed when the consumer is gone."""
        while not self._closed:
            if not self._asked:
                await ask(self._pull.request(1, expires=int(PULL_SECONDS * 1e9)), "consume")
            self._asked = True
            try:
                message = await self._pull.next(PULL_SECONDS + 0.5)
                self._asked = False
                if message is not None:
                    return message
            except Ended as end:
                self._asked = False
                if end.status == "503":  # a server that starts
                    await asyncio.sleep(STARTING_SECONDS)
                elif end.status not in ("404", "408"):
                    raise Unconfirmed(f"the consumer ended: {end}") from end
        raise Unconfirmed("somebody else in this process consumes under that name")

    def give(self, message: Msg, stored: Stored) -> "NatsDelivery":
        delivery = NatsDelivery(message, stored, self._given)
        self._given.add(delivery)
        return delivery

    async def _extend_forever(self) -> None:
        while True:
            await asyncio.sleep(self._ack_wait_seconds / 4)
            for delivery in list(self._given):
                with suppress(*LOST):
                    await delivery.message.in_progress()

    async def close(self) -> None:
        self._closed = True
        self._extending.cancel()
        left = [delivery.message for delivery in self._given]
        self._given.clear()
        with suppress(*LOST):
            left += await self._pull.close()
            for message in left:
                await message.nak()


class NatsDelivery:
    def __init__(self, message: Msg, stored: Stored, given: set["NatsDelivery"]) -> None:
        self.message, self.stored, self._given = message, stored, given

    async def ack(self) -> None:
        if self in self._given:
            self._given.discard(self)
            await ask(self.message.ack(), "ack")
