"""What a person sees of a text. Pure.

Characters that show nothing can say anything to a model: Unicode's tags spell sentences, marks of direction make a
name look like another. Left are those that make what is seen: joiners, one variation of a sign, the flags of countries.
"""

import re

import msgspec

from gateway.events import MediumFact, MessageReceived, Person

NOTHING = "[a message in which nothing can be seen]"

_UNSEEN = re.compile(
    "(\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f)|"
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]|[\ufe00-\ufe0f]{2,}"
)


def visible(text: str) -> str:
    return text if text.isascii() else _UNSEEN.sub(lambda found: found[1] or "", text)


def printable(text: str) -> str:
    """Without the control characters by which a text could rewrite the terminal."""
    return "".join(one for one in text if one in "\n\t" or not (ord(one) < 32 or 127 <= ord(one) < 160))


def as_seen(fact: MediumFact) -> MediumFact:
    """With what is seen of the words, and of the name of who they are from."""
    author = fact.author
    name = visible(author.name).strip() or author.address.user
    if name != author.name:
        fact = msgspec.structs.replace(fact, author=Person(address=author.address, name=name))
    if isinstance(fact, MessageReceived):
        text = (visible(fact.text) or NOTHING) if fact.text else ""
        fact = msgspec.structs.replace(fact, text=text, before=visible(fact.before))
    return fact
