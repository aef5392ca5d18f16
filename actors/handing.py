"""Files over the border of an action: what people sent, put in its workspace before its model is told; and what its
code offers, taken out after a check and stored before anybody hears of it.
"""

from typing import TYPE_CHECKING

from actors.entries import Offered
from actors.sandbox.handover import Refused
from actors.sandbox.zygote import SandboxFailed
from actors.words import FileTaken
from actors.workshop import PrimitiveError
from gateway.broker.protocol import Deposed, Unconfirmed
from gateway.events import Answer, Interject, Start
from gateway.files import LARGEST_BYTES, Attachment, attachment, size_text
from gateway.kinds import kind_of

if TYPE_CHECKING:
    from actors.actor import Actor

FOLDERS = 9  # tries for a new one: a crash may have left one behind
BEGINNING_BYTES, BEGINNING_LINES, BEGINNING_WIDTH = 1_000, 3, 120  # of a file that was sent
OFFERED_MAX = 50  # of one action


async def put(actor: "Actor", command: Start | Interject | Answer) -> tuple[str, ...]:
    """A line for each file, for the model: where it is, or why it is not there."""
    lines: list[str] = []
    here: list[tuple[Attachment, bytes]] = []
    for file in command.files:
        try:
            here.append((file, await actor.work.blob(file.digest)))
        except (LookupError, Unconfirmed):
            lines.append(f"{file.name} is not there: it is not in the store any more")
    if here:
        lines += await _placed(actor, here)
    return tuple(lines)


async def _placed(actor: "Actor", files: list[tuple[Attachment, bytes]]) -> list[str]:
    contents = [(file.name, data) for file, data in files]
    why = "there is no room for it"
    for number in range(actor.state.commands_taken + 1, actor.state.commands_taken + 1 + FOLDERS):
        try:
            paths = await actor.box.put_files(f"received-{number}", contents)
        except SandboxFailed as error:
            why = str(error)
            break
        except Refused as error:
            why = str(error)
            if not isinstance(error.__cause__, FileExistsError):
                break
        else:
            return [
                f"{path} ({file.kind}, {size_text(file.size)}){beginning(data)}"
                for path, (file, data) in zip(paths, files, strict=True)
            ]
    return [f"{file.name} is not there: {why}" for file, _ in files]


def beginning(data: bytes) -> str:
    """The first lines of a text, below its name: whoever writes code for a table must know its columns. "" for what is
    no text."""
    text = data[:BEGINNING_BYTES].decode("utf-8-sig", "replace").rstrip("\ufffd")  # perhaps cut in a letter
    if "\ufffd" in text or any(not (letter.isprintable() or letter.isspace()) for letter in text):
        return ""
    lines = [line for line in text.splitlines() if line.strip()]
    shown = [line[:BEGINNING_WIDTH] for line in lines[:BEGINNING_LINES]]
    more = ["…"] if shown != lines or len(data) > BEGINNING_BYTES else []
    return "".join(f"\n    | {line}" for line in [*shown, *more])


async def take(actor: "Actor", rpc: str, path: str, name: str) -> None:
    """Beside the loop; ends in a happening."""
    if len(actor.state.offered) >= OFFERED_MAX:
        why = f"{OFFERED_MAX} files were handed over already: put them together in one"
        actor.happened(FileTaken(rpc=rpc, error=why))
        return
    try:
        data = await actor.box.take_file(path, LARGEST_BYTES)
        shown = name or path.rpartition("/")[2]
        file = attachment(shown, kind_of(shown), len(data), await actor.work.keep(data))
    except (Refused, PrimitiveError) as error:
        actor.happened(FileTaken(rpc=rpc, error=str(error)))
    except Deposed:
        return  # the action stops; the call is told again to whoever has it next
    else:
        actor.happened(FileTaken(rpc=rpc, file=file))


async def offer(actor: "Actor", taken: FileTaken) -> None:
    """Once: told again after a restart, it is known."""
    if taken.file is None:
        actor.box.reply(taken.rpc, error=taken.error)
        return
    await pass_up(actor, (taken.file,))
    actor.box.reply(taken.rpc, f"{taken.file.name} ({size_text(taken.file.size)}) is handed over.")


async def pass_up(actor: "Actor", files: tuple[Attachment, ...]) -> None:
    for file in files:
        if file not in actor.state.offered:
            await actor.append(Offered(file=file))
