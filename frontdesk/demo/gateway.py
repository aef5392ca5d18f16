"""The demo's gateway process: the product's own, with the demo's files and outbox for its actors.

python -m frontdesk.demo.gateway FOLDER PACE_SECONDS
"""

import asyncio
import os
import sys
from pathlib import Path

from actors.primitives import files
from frontdesk.demo import outbox
from frontdesk.serve import CannotStart, serve
from gateway.config import load


def main(folder: Path, pace_seconds: float) -> None:
    settings = load(folder / "config.toml", os.environ)
    primitives = (*files.shared(folder / "files"), outbox.mail(folder / outbox.NAME))
    try:
        asyncio.run(serve(settings, primitives=lambda _: primitives, pace_seconds=pace_seconds))
    except CannotStart as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
