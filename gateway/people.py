"""The words by which whoever runs the gateway changes who is who, and where they and their answers are kept."""

from typing import Literal

from gateway.addresses import Address
from gateway.record import Tagged

BOOK = "log.people.book"  # the brain writes it
ORDERS = "evt.people"


class ChangePeople(Tagged, frozen=True, kw_only=True):
    """`person` and `into` are names or keys of contacts. `id` is for finding the answer in the book."""

    id: str
    verb: Literal["link", "unlink", "merge"]
    person: str = ""
    address: Address | None = None
    into: str = ""
