"""Blobs beside an SQLite file: one file each, named by its digest. Written whole, or not at all."""

import hashlib
import os
import tempfile
from pathlib import Path

DIGEST_CHARACTERS = 64


def blobs_of(store: Path) -> Path:
    return Path(f"{store}.blobs")


class BlobFolder:
    """Its methods wait for the disk: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        path = self._path(digest)
        if path.exists():
            return digest
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
        for folder in (path.parent, self._folder, self._folder.parent):
            _sync(folder)
        return digest

    def get(self, digest: str) -> bytes:
        """Raises LookupError."""
        try:
            return self._path(digest).read_bytes()
        except FileNotFoundError:
            raise LookupError(f"there is no blob {digest}") from None

    def all(self) -> list[str]:
        return [path.name for path in self._folder.glob("??/*") if len(path.name) == DIGEST_CHARACTERS]

    def forget(self, digest: str) -> None:
        path = self._path(digest)
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            _sync(path.parent)

    def _path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest


def _sync(folder: Path) -> None:
    """A file is there after a crash only when its folder is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
