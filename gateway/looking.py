"""What the views say, for whoever looks: only read, each time anew. Blocks: never in the event loop.

Each raises ViewsFailed.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from gateway.broker.sqlite_file import BUSY_SECONDS, mend
from gateway.keeping import ViewsFailed


def messages(path: Path, conversation: str, before: int) -> list[dict[str, Any]]:
    """Of one conversation, those whose entry lies before that sequence."""
    sql = "select * from messages where conversation = ? and sequence < ? order by sequence, number"
    return _read(path, sql, (conversation, before))


def ids_of(path: Path, conversation: str, who: str) -> list[str]:
    """Of what an address said in a conversation."""
    sql = "select id from messages where conversation = ? and who = ?"
    return [row["id"] for row in _read(path, sql, (conversation, who))]


def search(
    path: Path, words: str, *, conversation: str | None, limit: int, loosely: bool = False
) -> list[dict[str, Any]]:
    """Messages with all of these words, the best first; `loosely`: with any word that begins like one of them."""
    terms = ['"{}"'.format(word.replace('"', '""')) for word in words.split()]
    if not (quoted := " OR ".join(f"{term}*" for term in terms) if loosely else " ".join(terms)):
        return []
    from sqlite_utils import Database

    where = "conversation = :conversation" if conversation is not None else None
    asked = {"conversation": conversation} if conversation is not None else None
    with _opened(path) as db:
        found = Database(db).table("messages").search(quoted, where=where, where_args=asked, limit=limit)
        return [dict(row) for row in found]


COSTS = """
    select substr(costs.at, 1, 10) as day, coalesce(nullif(costs.who, ''), actions.who, '') as who,
           costs.action != '' as work, count(*) as calls, sum(costs.prompt_tokens) as prompt_tokens,
           sum(costs.completion_tokens) as completion_tokens, coalesce(sum(costs.usd), 0.0) as usd,
           sum(costs.usd is null) as unpriced,
           coalesce(nullif(costs.conversation, ''), actions.conversation, '') as place
    from costs left join actions on actions.id = case instr(costs.action, '--')
        when 0 then costs.action else substr(costs.action, 1, instr(costs.action, '--') - 1) end
    where costs.at >= ? or costs.at = ''
    group by day, coalesce(nullif(costs.who, ''), actions.who, ''), work, place order by day desc, usd desc
"""


def costs(path: Path, since: str) -> list[dict[str, Any]]:
    """By day, address, conversation (`place`) and whether it was work, from that day on, and what has no time.

    Raises ViewsFailed.
    """
    return _read(path, COSTS, (since,))


def _read(path: Path, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    with _opened(path) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(sql, values)]


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    if not path.exists():
        raise ViewsFailed(f"{path} is not there yet: start the gateway once, or run `frontdesk rebuild`.")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as db:
            yield db
    except sqlite3.Error as error:
        raise ViewsFailed(mend(path, error)) from error
