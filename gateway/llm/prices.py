"""What tokens cost, by litellm's price map: read as data, without importing litellm (that takes five seconds).

Here: one look-up table and one sum. Not here: litellm's own cost functions, which are exact for more kinds of model
but cost milliseconds a call.
"""

import functools
import importlib.util
from pathlib import Path

import msgspec

PRICE_MAP = "model_prices_and_context_window_backup.json"


class Price(msgspec.Struct, frozen=True):
    """One model's entry, in US dollars a token. `mode` is "chat" or something that chat completions cannot reach."""

    litellm_provider: str = ""
    mode: str = ""
    input_cost_per_token: float | None = None
    output_cost_per_token: float | None = None
    cache_read_input_token_cost: float | None = None
    cache_creation_input_token_cost: float | None = None


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's count. `prompt` includes `cache_read` and `cache_written`."""

    prompt: int
    completion: int
    cache_read: int = 0
    cache_written: int = 0


@functools.cache
def price_map() -> dict[str, Price]:
    """Every model that litellm knows a price for, by its name there. Empty if the map cannot be read."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        data = (Path(spec.origin).parent / PRICE_MAP).read_bytes()
        return msgspec.json.decode(data, type=dict[str, Price], strict=False)
    except (OSError, msgspec.DecodeError):
        return {}


def price_of(name: str) -> Price | None:
    """The entry for a litellm name; most models stand there without their provider, too."""
    prices = price_map()
    return prices.get(name) or prices.get(name.partition("/")[2])


def usd(name: str, tokens: Tokens) -> float | None:
    """The price of one call, None if it is not known."""
    price = price_of(name)
    if price is None or price.input_cost_per_token is None or price.output_cost_per_token is None:
        return None
    read = _or_else(price.cache_read_input_token_cost, price.input_cost_per_token)
    written = _or_else(price.cache_creation_input_token_cost, price.input_cost_per_token)
    plain = max(0, tokens.prompt - tokens.cache_read - tokens.cache_written)
    return (
        plain * price.input_cost_per_token
        + tokens.cache_read * read
        + tokens.cache_written * written
        + tokens.completion * price.output_cost_per_token
    )


def _or_else(value: float | None, other: float) -> float:
    return other if value is None else value
