"""Signals inside one process: told to whoever watches now, and forgotten."""

from collections.abc import Callable


class Signals:
    def __init__(self) -> None:
        self._watchers: dict[str, list[Callable[[bytes], None]]] = {}

    def send(self, subject: str, data: bytes) -> None:
        for heard in list(self._watchers.get(subject, ())):
            heard(data)

    def watch(self, subject: str, heard: Callable[[bytes], None]) -> Callable[[], None]:
        watchers = self._watchers.setdefault(subject, [])
        watchers.append(heard)
        return lambda: watchers.remove(heard)
