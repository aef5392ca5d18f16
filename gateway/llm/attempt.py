"""One call on its way in the helper: what was asked, what has come so far, and what that costs.

Here: the account of a call, whichever way it is made. Not here: bytes and sockets. It outlives the task that makes the
call, so that a cancelled one can still say what it had cost.
"""

import re
import time
from collections.abc import Callable, Sequence

import msgspec

from gateway.llm.assembly import FAILED, FILTERED, Assembler
from gateway.llm.history import estimated_tokens
from gateway.llm.model import Endpoint, Generation, ModelError, Request, Usage
from gateway.llm.prices import Tokens, usd
from gateway.llm.quirks import OWN_FIELDS, provider_of
from gateway.llm.refusals import model_error

ANSWER_CHARACTERS_MAX = 1_000_000  # more than any is allowed to say: one that repeats itself stops nowhere
ANSWER_SECONDS_MAX = 1800.0  # the same, for one that is slow
COUNT_MAX = 1 << 40  # of tokens: what is beyond was not counted

_PREFIX = re.compile(r"^.*[.:/]")


class Attempt:
    """`asked` once the provider may have the request; `counted` once it said what it has counted. `thinks`: it wants
    its reasoning back with its calls."""

    def __init__(self, endpoint: Endpoint, request: Request, clock: Callable[[], float] = time.monotonic) -> None:
        self.endpoint = endpoint
        self.request = request
        self.provider = provider_of(endpoint.name)
        self.assembler = Assembler()
        self._clock, self._began = clock, clock()
        self.asked = False
        self.thinks = False
        self.counted: Tokens | None = None

    def count(self, *, prompt: int, completion: int, cache_read: int = 0, cache_written: int = 0) -> None:
        """As the provider has counted. Nothing where it did not, or not tokens."""
        counts = (prompt, completion, cache_read, cache_written)
        if prompt > 0 and all(0 <= one <= COUNT_MAX for one in counts):
            self.counted = Tokens(
                prompt=prompt, completion=completion, cache_read=cache_read, cache_written=cache_written
            )

    def ends_here(self) -> bool:
        """True when it goes on as if for ever: it counts as one that was cut at its length."""
        length, seconds = self.assembler.characters, self._clock() - self._began
        if length <= ANSWER_CHARACTERS_MAX and seconds <= ANSWER_SECONDS_MAX:
            return False
        self.assembler.end("length")
        return True

    def usage(self) -> Usage:
        """What it cost so far: the provider's count, else an estimate of the prompt and of what has arrived."""
        tokens = self.counted or Tokens(
            prompt=estimated_prompt_tokens(self.request), completion=-(-self.assembler.characters // 4)
        )
        return Usage(
            prompt_tokens=tokens.prompt,
            completion_tokens=tokens.completion,
            usd=usd(self.endpoint.name, tokens),
            estimated=self.counted is None,
        )

    def spent(self) -> Usage | None:
        """`usage`, or None if the provider was never asked."""
        return self.usage() if self.asked else None

    def generation(self) -> Generation:
        """The answer that has come. Raises ModelError: content_filtered if the provider withheld it, stream_cut if it
        says that it failed."""
        finish = self.assembler.finish
        if finish.lower() in FILTERED:
            raise model_error(self.endpoint, "content_filtered", f"finish reason {finish}", usage=self.spent())
        if finish.lower() in FAILED:
            raise self.cut(f"finish reason {finish}")
        generation = self.assembler.generation(
            usage=self.usage(),
            model=self.endpoint.name,
            keeps_reasoning=self.thinks or "reasoning_content" in OWN_FIELDS.get(self.provider, ()),
        )
        names = [tool["function"]["name"] for tool in self.request.tools]
        calls = tuple(msgspec.structs.replace(call, name=meant(call.name, names)) for call in generation.calls)
        return msgspec.structs.replace(generation, calls=calls)

    def cut(self, said: str) -> ModelError:
        """The error for a connection that broke while the answer was coming."""
        return model_error(self.endpoint, "stream_cut", said, usage=self.spent())


def estimated_prompt_tokens(request: Request) -> int:
    tools = len(msgspec.json.encode(request.tools)) // 4 if request.tools else 0
    return tools + sum(estimated_tokens(message) for message in request.messages)


def meant(name: str, names: Sequence[str]) -> str:
    """The tool that a call is of: models put a module before its name, marks of their own behind it, or write it in
    another case. As it is, where none or several could be meant."""
    if name in names:
        return name
    bare = _PREFIX.sub("", name.partition("<|")[0].strip()).replace("-", "_").casefold()
    alike = [one for one in names if one.replace("-", "_").casefold() == bare]
    return alike[0] if len(alike) == 1 else name
