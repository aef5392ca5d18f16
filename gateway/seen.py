"""Dedupe for ever in bounded memory: one high-water mark per source of refs."""

from gateway.events import Ref


class Seen:
    def __init__(self) -> None:
        self._marks: dict[str, tuple[int, int]] = {}

    def __contains__(self, ref: Ref) -> bool:
        return (ref.batch, ref.n) <= self._marks.get(ref.source, (-1, -1))

    def add(self, ref: Ref) -> None:
        self._marks[ref.source] = (ref.batch, ref.n)
