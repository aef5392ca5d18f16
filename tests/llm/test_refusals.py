"""Refusals, as pure functions."""

from gateway.llm.model import Endpoint
from gateway.llm.refusals import refusal, retry_after


def test_retry_after_is_seconds_or_a_date_or_milliseconds() -> None:
    assert retry_after({"retry-after": "20"}) == 20
    assert retry_after({"retry-after-ms": "1500", "retry-after": "2"}) == 1.5
    date = {"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert retry_after(date) == 30
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_no_model_is_left_alone_for_longer_than_an_hour() -> None:
    far = {"retry-after": "Wed, 21 Oct 2099 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    asked = [{"retry-after": "86400"}, {"retry-after": "9" * 400}, {"retry-after-ms": "9" * 400}, far]
    assert [retry_after(one) for one in asked] == [3600.0] * 4


def test_a_wait_that_stands_in_words_alone_is_kept_to() -> None:
    endpoint = Endpoint(name="gemini/x")
    told = {
        "Please retry in 27.25s. See https://x/limits": 27.25,
        "Rate limit reached. Please try again in 7m12s.": 432.0,
        "Please try again in 250ms. Visit": 0.25,
        "please try again in 1h": 3600.0,
        "Retry after 20 s": 20.0,
        "try again in a moment": None,
        "Please try again in 20 minutes": None,
    }
    assert {said: refusal(endpoint, 429, said).retry_after_seconds for said in told} == told
    assert refusal(endpoint, 429, "retry in 27s", headers={"retry-after": "5"}).retry_after_seconds == 5.0
    assert refusal(endpoint, 400, "retry in 27s").retry_after_seconds is None


def test_an_endpoint_never_shows_its_key() -> None:
    endpoint = Endpoint(name="openai/x", api_base="http://x", api_key="very-secret", section="model.actor")
    assert "very-secret" not in f"{endpoint} {endpoint!r}"
    told = refusal(endpoint, 401, "bad key: very-secret, Bearer abc, sk-proj-1234567890abcdef")
    assert not any(word in told.for_operator for word in ("very-secret", "abc,", "1234567890"))
    assert "set model.actor.api_key" in told.for_operator
