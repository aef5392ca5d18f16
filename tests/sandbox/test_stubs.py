"""What the model reads about primitives, and what the host makes of a call."""

import pytest

from actors.sandbox.stubs import STUBS, Signatures, Stub, inside


def test_the_text_has_every_signature_and_the_rule_for_answers() -> None:
    text = inside()
    for stub in STUBS:
        assert f"primitives.{stub.signature}" in text
    assert ".result()" in text
    assert "RemoteError" in text


def test_a_wing_can_bring_stubs_of_its_own() -> None:
    stub = Stub(signature="files.list(folder: str = '.') -> list[str]", doc="The files there.")
    assert "primitives.files.list(folder: str = '.')" in inside([stub])
    assert Signatures([stub]).bind("files.list", ["a"], {}) == {"folder": "a"}
    assert Signatures([stub]).bind("files.list", [], {}) == {}


def test_keyword_only_parameters() -> None:
    signatures = Signatures([Stub(signature="send(to: str, *, urgent: bool = False) -> str", doc="")])
    assert signatures.bind("send", ["ana"], {"urgent": True}) == {"to": "ana", "urgent": True}
    with pytest.raises(TypeError, match="too many positional"):
        signatures.bind("send", ["ana", True], {})


def test_what_is_missing_is_named() -> None:
    with pytest.raises(TypeError, match="question"):
        Signatures().bind("request_clarification", [], {})


@pytest.mark.parametrize("signature", ["x(", "x(*args)", "x(**kwargs)"])
def test_a_stub_that_is_no_plain_signature_is_refused(signature: str) -> None:
    with pytest.raises(SyntaxError):
        Signatures([Stub(signature=signature, doc="")])
