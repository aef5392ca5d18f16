"""What a stored word becomes when a person's words are erased: the same word with nothing to read in it. Pure.

It works on entries as the JSON that they are stored as, so that one set of rules serves all journals and their
snapshots. What goes is every text that the person said, that was said to them, or that the work they asked for
produced; and the quotes of it wherever else they stand (`frontdesk.quotes`). What stays is that something was there,
when and where, by whom, and what it led to: the folds need that. The identity of a message becomes a digest: it is
still known as taken.
"""

import re
from collections.abc import Iterator
from typing import Any, TypeGuard

import msgspec

from actors.transcript import CONTEXT, SUMMARY
from frontdesk.quotes import Quotes
from gateway.seen import erased

TOMBSTONE = "(erased)"
NAME = "erased"  # where a name has to be a token
_STRUCTURE = """
    type ref conversation action medium account place thread reply_to user at since until verb phase end outcome
    by attention kind job call cell rpc child question key label model worker subject send command id ids role
    tool_call_id method identity identities covers waits resting seen author
    origin joined moved digest order into how asked
    began card_at
    met only winding_up remind_at expires_at word_at idle_since children reminded nonce of mark
"""
STAYS = frozenset(_STRUCTURE.split())  # fields; where one holds a whole struct, that is looked into all the same
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SUMMARY = SUMMARY.partition("{")[0]


class Erased(msgspec.Struct):
    """Whose words go, and what hangs on them: found by `collect`, to be repeated until it finds no more."""

    user: tuple[str, str]  # medium and user of the address
    identities: set[str] = msgspec.field(default_factory=set)  # of what they said
    turns: set[tuple[str, int]] = msgspec.field(default_factory=set)  # conversation and turn: decided on it
    actions: set[str] = msgspec.field(default_factory=set)  # asked for by them
    conversations: set[str] = msgspec.field(default_factory=set)  # private, and only theirs
    places: set[str] = msgspec.field(default_factory=set)  # conversations in which they said something
    notes: str = ""  # the journal of theirs
    blobs: set[str] = msgspec.field(default_factory=set)  # that what stays names
    quotes: Quotes = msgspec.field(default_factory=Quotes)  # of what they said, wherever it stands

    @property
    def size(self) -> int:
        return len(self.identities) + len(self.turns) + len(self.actions)

    def is_whole(self, subject: str) -> bool:
        """Everything in it goes."""
        kind, _, key = subject.partition(".")[2].partition(".")  # some have no key: `evt.people`
        return (
            subject == self.notes
            or (kind == "act" and self.has_action(key))
            or (kind == "lane" and key in self.conversations)
        )

    def has_action(self, key: str) -> bool:
        return key.partition("--")[0] in self.actions

    # --- finding -----------------------------------------------------------------------------------------------------

    def collect(self, node: Any, conversation: str) -> None:
        """`conversation` is whose journal it is, empty for others."""
        if isinstance(node, list):
            for one in node:
                self.collect(one, conversation)
        elif isinstance(node, dict):
            conversation = _where(node, conversation)
            if self._is_theirs(node, "author") and "identity" in node:
                self.identities.add(node["identity"])
            if self._is_theirs(node, "by"):
                self._collect_action(node)
            if "covers" in node and (conversation in self.conversations or self._covers(node["covers"])):
                self.turns.add((conversation, node["turn"]))
            for one in node.values():
                self.collect(one, conversation)

    def _collect_action(self, node: dict[str, Any]) -> None:
        if node.get("type") == "Start" and node.get("depth", 0) == 0:
            self.actions.add(node["action"])
        if "key" in node:  # as the conversation sees it
            self.actions.add(node["key"])

    def _covers(self, covers: list[str]) -> bool:
        return any(
            one in self.identities or (one.startswith("act-") and one[4:].partition("/")[0] in self.actions)
            for one in covers
        )

    def _is_theirs(self, node: dict[str, Any], role: str) -> bool:
        person = node.get(role)
        address = person.get("address") if isinstance(person, dict) else None
        return isinstance(address, dict) and (address["medium"], address["user"]) == self.user

    # --- writing -----------------------------------------------------------------------------------------------------

    def written(self, node: Any, conversation: str, *, told: bool = False, key: str = "") -> Any:
        """The same, with what is theirs blanked. `told`: the work of somebody else that this is about heard their
        words, and so a summary of it goes too. `key` is the field that the node is the value of."""
        if isinstance(node, str):
            return self._written_text(node, key)
        if isinstance(node, list):
            if len(node) == 2 and is_ref(node[0]) and self._answers(node[0]):  # a send in a conversation's memory
                return [node[0], self.blank(node[1])]
            if is_ref(node):
                return node
            return [self.written(one, conversation, told=told, key=key) for one in node]
        if isinstance(node, dict):
            conversation = _where(node, conversation)
            if self._goes(node, conversation) or (told and _is_summary(node)):
                return self.blank(node)
            node = self._without_context(node, conversation, told=told)
            return {name: self.written(value, conversation, told=told, key=name) for name, value in node.items()}
        return node

    def _without_context(self, node: dict[str, Any], conversation: str, *, told: bool) -> dict[str, Any]:
        """What a task was told of a conversation goes whole: it shows what they said and were told, however short."""
        if node.get("context") and node.get("conversation", conversation) in self.places:
            return {**node, "context": ""}
        if told and isinstance(content := node.get("content"), str) and CONTEXT in content:
            return {**node, "content": content.partition(CONTEXT)[0]}
        return node

    def _written_text(self, text: str, key: str) -> str:
        if text in self.identities:
            return erased(text)
        self.blobs.update(_DIGEST.findall(text))
        if key in STAYS or key == "name":
            return text
        if key == "arguments":  # always the text of a JSON object
            arguments = msgspec.json.decode(text)
            new = self.unquoted(arguments)
            return text if new == arguments else msgspec.json.encode(new).decode()
        return self.quotes.without(text)

    def unquoted(self, node: Any) -> Any:
        """Of any shape."""
        if isinstance(node, str):
            return self.quotes.without(node)
        if isinstance(node, list):
            return [self.unquoted(one) for one in node]
        if isinstance(node, dict):
            return {key: self.unquoted(value) for key, value in node.items()}
        return node

    def is_told_in(self, trees: list[Any]) -> bool:
        """Whether they speak in any of it, are quoted, or it was told of a conversation with them: from there a model
        may have retold it in its own words."""
        return self._speaks_in(trees) or any(self.unquoted(tree) != tree for tree in trees)

    def _speaks_in(self, node: Any) -> bool:
        if isinstance(node, list):
            return any(self._speaks_in(one) for one in node)
        if not isinstance(node, dict):
            return False
        if self._is_theirs(node, "author") or self._is_theirs(node, "by"):
            return True
        if node.get("context") and node.get("conversation") in self.places:
            return True
        return any(self._speaks_in(one) for one in node.values())

    def _goes(self, node: dict[str, Any], conversation: str) -> bool:
        if self._is_theirs(node, "author") or self._is_theirs(node, "by"):
            return True
        if "covers" in node and "turn" in node:
            return (conversation, node["turn"]) in self.turns
        if isinstance(action := node.get("action") or node.get("key"), str) and self.has_action(action):
            return True
        if node.get("type") == "Summarised":  # one that quotes them may retell the rest of it
            theirs = any((one["medium"], one["user"]) == self.user for one in node.get("whose", ()))
            return theirs or self.quotes.without(node["text"]) != node["text"]
        if node.get("type") == "Recalled":
            return any(one in self.identities or self._is_post(one) for one in node.get("of", ()))
        if node.get("type") == "Posted":
            return self._is_post(node["id"])
        if node.get("type") == "Settled":
            return any(self._is_post(one) for one in node["ids"])
        carried = node.get("command") or node.get("send") or node.get("body")
        ref = carried.get("ref") if isinstance(carried, dict) else node.get("ref")
        return is_ref(ref) and self._answers(ref)

    def _answers(self, ref: list[Any]) -> bool:
        return (ref[0], ref[1]) in self.turns

    def _is_post(self, post: str) -> bool:
        """A person's by its identity, the assistant's by its send's ref and part."""
        source, _, place = post.partition("/")
        turn = place.partition("/")[0]
        if turn.isdecimal() and (source, int(turn)) in self.turns:
            return True
        return f"local/message/{post}/0" in self.identities or f"local/press/{post}/0" in self.identities

    def blank(self, node: Any, key: str = "") -> Any:
        """Nothing of it can be read any more, and it is still the same kind of word."""
        if isinstance(node, str):
            if node in self.identities:
                return erased(node)
            return node if key in STAYS else _tombstone(node, key)
        if isinstance(node, list):
            if is_ref(node) or key in ("resting", "ids"):
                return node
            if key == "child_questions":
                return [[pair, self.blank(job)] for pair, job in node]
            return [self.blank(one, key) for one in node]
        if isinstance(node, dict):
            if key in ("waits", "handles"):
                return node
            if "name" in node and "digest" in node:  # a file: its reference stays taken, and leads to nothing
                told = {key: TOMBSTONE for key in ("digest", "why") if node.get(key)}
                return {**node, "name": NAME, **told}
            if node.get("type") == "NoteAdded":  # its number stays taken, and it is shown to nobody
                return {**node, "text": "", "about": ""}
            is_call = "arguments" in node
            return {
                name: value if is_call and name == "name" else self._blank_field(name, value)
                for name, value in node.items()
            }
        return node

    def _blank_field(self, name: str, value: Any) -> Any:
        if name in ("fields", "value") and not isinstance(value, str):
            return None  # of any shape
        return self.blank(value, name)


def _where(node: dict[str, Any], conversation: str) -> str:
    """A turn that was in a conversation which has joined this one counts in that one's numbers."""
    return node["origin"] if "decided" in node and node.get("origin") else conversation


def _tombstone(text: str, key: str) -> str:
    if key == "arguments":
        return "{}"
    if key == "value":
        return ""
    if key == "name":
        return NAME
    return TOMBSTONE if text else ""


def authors(node: Any) -> set[tuple[str, str]]:
    """Of all that people said or pressed, in whatever this is: medium and user."""
    if isinstance(node, list):
        return {found for one in node for found in authors(one)}
    if not isinstance(node, dict):
        return set()
    found = {one for value in node.values() for one in authors(value)}
    if "identity" in node and isinstance(author := node.get("author"), dict):
        found.add((author["address"]["medium"], author["address"]["user"]))
    return found


def said_in(node: Any) -> Iterator[tuple[str, tuple[str, str], str]]:
    """Every message of a person: when, who (medium and user), the text."""
    if isinstance(node, list):
        for one in node:
            yield from said_in(one)
    elif isinstance(node, dict):
        if "identity" in node and isinstance(author := node.get("author"), dict):
            address = author["address"]
            for text in (node.get("text"), node.get("before")):
                if isinstance(text, str) and text != TOMBSTONE:
                    yield node.get("at", ""), (address["medium"], address["user"]), text
        elif isinstance(by := node.get("by"), dict) and isinstance(text := node.get("text"), str) and text != TOMBSTONE:
            yield node.get("at") or "", (by["address"]["medium"], by["address"]["user"]), text
        for one in node.values():
            yield from said_in(one)


def _is_summary(node: dict[str, Any]) -> bool:
    """What a model wrote in place of an older part of its transcript."""
    content = node.get("content")
    return node.get("type") == "Compacted" or (isinstance(content, str) and content.startswith(_SUMMARY))


def is_ref(node: Any) -> TypeGuard[list[Any]]:
    return (
        isinstance(node, list) and len(node) == 3 and isinstance(node[0], str) and all(type(n) is int for n in node[1:])
    )
