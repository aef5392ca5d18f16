"""`frontdesk erase`, wherever the journals are and whether or not a gateway has them."""

import asyncio
import sqlite3

from brain.people import PeopleEntry, PeopleState
from frontdesk import control
from frontdesk.erase import Report, erase_from
from frontdesk.people import contacts
from frontdesk.store import is_shared, machine_of, open_broker
from gateway import fed
from gateway.addresses import Address
from gateway.broker.protocol import Broker, BrokerUnusable, Unconfirmed
from gateway.broker.sqlite import SqliteBroker
from gateway.broker.sqlite_file import mend, shrink
from gateway.journal import fold_stored
from gateway.people import BOOK
from gateway.settings import Settings


async def erase_person(settings: Settings, person: Address) -> str:
    """What was done, in words. Raises BrokerUnusable, ViewsFailed, Undecodable, Unconfirmed, Stale."""
    if is_shared(settings):
        return await _erase_shared(settings, person)
    answered = await control.ask(settings.store.path, control.Asked(what="erase", about=str(person)))
    if answered is None:
        broker = SqliteBroker(settings.store.path)
        try:
            return await erase_here(broker, settings, person)
        finally:
            await broker.close()
    if not answered.well:
        raise BrokerUnusable(answered.text)
    return answered.text


async def erase_here(broker: Broker, settings: Settings, person: Address) -> str:
    """By whoever has the file, while no role runs. Raises BrokerUnusable, ViewsFailed, Undecodable."""
    store = settings.store.path
    try:
        report = await erase_from(broker, store, person, await _key_of(broker, settings, person))
        await asyncio.to_thread(shrink, store)
    except (Unconfirmed, sqlite3.Error, OSError) as error:
        raise BrokerUnusable(f"{mend(store, error)} Not all is erased yet: do it again then.") from error
    return words(report, person)


async def _erase_shared(settings: Settings, person: Address) -> str:
    """By this process, while all that run keep away."""
    broker = await open_broker(settings)
    try:
        async with control.all_away(broker):
            key = await _key_of(broker, settings, person)
            report = await erase_from(broker, settings.store.path, person, key)
        own = f"{fed.PATTERN}{machine_of(settings.store.path)}"
        others = [one.removeprefix(fed.PATTERN) for one in await broker.subjects(f"{fed.PATTERN}>") if one != own]
    finally:
        await broker.close()
    text = words(report, person)
    if others:
        text += f" Other machines have views and workspaces too: run this there as well ({', '.join(others)})."
    return text


async def _key_of(broker: Broker, settings: Settings, person: Address) -> str:
    book = await fold_stored(broker, BOOK, PeopleState(), PeopleEntry)
    return contacts(settings, book).key_of(person)


def words(report: Report, person: Address) -> str:
    if not (report.messages or report.entries):
        return (
            f"Nothing of {person} was found: `frontdesk people` and `frontdesk search` show how addresses are written."
        )
    return (
        f"Erased: {report.messages} messages of {person} and what was made of them ({report.entries} entries, "
        f"{report.workspaces} workspaces, {report.blobs} attachments). Backups that were made before still hold them."
    )
