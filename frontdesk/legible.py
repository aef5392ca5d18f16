"""Which journals cannot be read: each is folded as its holder would fold it. Changes nothing."""

from frontdesk.rewriting import KINDS
from gateway.broker.protocol import Broker
from gateway.folding import fold_stored
from gateway.record import Undecodable


async def unreadable(broker: Broker) -> list[str]:
    """Why, of each; of actions those that are in flight. Raises Unconfirmed."""
    found = []
    for prefix, kind in KINDS.items():
        for subject in await broker.subjects("cmd.act.>" if prefix == "log.act." else f"{prefix}>"):
            key = subject.removeprefix("cmd.act.").removeprefix(prefix)
            try:
                await fold_stored(broker, f"{prefix}{key}", kind.fresh(key), kind.entries)
            except Undecodable as error:
                found.append(str(error))
    return found
