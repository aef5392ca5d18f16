"""One call on its way in the helper: what was asked, what has come so far, and what that costs.

Here: the account of a call, whichever way it is made. Not here: bytes and sockets. It outlives the task that makes the
call, so that a cancelled one can still say what it had cost.
"""

import msgspec

from gateway.llm.assembly import Assembler
from gateway.llm.history import estimated_tokens
from gateway.llm.model import Endpoint, Generation, ModelError, Request, Usage
from gateway.llm.prices import Tokens, usd
from gateway.llm.quirks import OWN_FIELDS, provider_of
from gateway.llm.refusals import model_error


class Attempt:
    """`asked` once the provider may have the request; `counted` once it said what it has counted."""

    def __init__(self, endpoint: Endpoint, request: Request) -> None:
        self.endpoint = endpoint
        self.request = request
        self.provider = provider_of(endpoint.name)
        self.assembler = Assembler()
        self.asked = False
        self.counted: Tokens | None = None

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
        """The answer that has come. Raises ModelError (content_filtered) if the provider withheld it."""
        if self.assembler.finish == "content_filter":
            raise model_error(self.endpoint, "content_filtered", "finish reason content_filter", usage=self.spent())
        return self.assembler.generation(
            usage=self.usage(),
            model=self.endpoint.name,
            keeps_reasoning="reasoning_content" in OWN_FIELDS.get(self.provider, ()),
        )

    def cut(self, said: str) -> ModelError:
        """The error for a connection that broke while the answer was coming."""
        return model_error(self.endpoint, "stream_cut", said, usage=self.spent())


def estimated_prompt_tokens(request: Request) -> int:
    tools = len(msgspec.json.encode(request.tools)) // 4 if request.tools else 0
    return tools + sum(estimated_tokens(message) for message in request.messages)
