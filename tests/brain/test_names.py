"""By which name the model knows who spoke: never by one that somebody merely typed as theirs."""

from datetime import UTC, datetime

import pytest

from brain.contacts import Contact, Contacts
from gateway.addresses import Address, Route
from gateway.events import MessageReceived, Person

ANA = Contact(key="ana", name="Ana", role="owner", addresses=(Address(medium="telegram", user="42"),))


@pytest.mark.parametrize(
    ("user", "shown", "name"),
    [
        ("42", "🎀 queen of spreadsheets", "Ana"),
        ("42", "Bo", "Ana"),
        ("7", "Bo", "Bo"),
        ("7", "Ana", "Ana (not the contact)"),
        ("7", " aNA ", " aNA  (not the contact)"),
    ],
)
def test_a_contact_has_the_operators_name_and_nobody_else_has_it(user, shown, name):
    author = Person(address=Address(medium="telegram", user=user), name=shown)
    route = Route(medium="telegram", account="telegram-1", place="42")
    fact = MessageReceived(identity="1", route=route, author=author, text="hello", at=datetime.now(UTC))
    contacts = Contacts([ANA])
    assert contacts.name_of(contacts.of(fact)) == name
