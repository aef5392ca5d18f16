"""The whole conversations that a small real model is measured with: a task, a correction in the middle, and what must
then be said. What is asked for differs (sums, dates, lists, texts, files), and so does what is corrected.
"""

import re

from gateway.record import Record

SALES = """\
month,region,total
January,north,310
January,south,205
February,north,412
February,south,198
March,north,377
March,south,264
"""
FERRY = """\
The ferry leaves at nine from the old harbour.
Bring warm clothes, water and a torch.
Dinner is at the lighthouse, which closes early on Sundays.
"""


class Task(Record, frozen=True, kw_only=True):
    """`wanted` is the answer in each way of writing it that counts; `file` is sent along under its name."""

    name: str
    asked: str
    corrected: str
    wanted: tuple[str, ...]
    file: tuple[str, str] | None = None

    def is_answered(self, said: str) -> bool:
        """Whatever stands between the numbers or words of a list, and between thousands; 641.0 is 641."""
        plain = f" {_plain(said)} "
        return any(f" {_plain(one)} " in plain for one in self.wanted)


def _plain(text: str) -> str:
    whole = re.sub(r"(?<=\d)(,(?=\d{3}\b)|\.0+\b(?!\.\d))", "", text.lower())
    return " ".join(re.findall(r"\w+(?:\.\w+)*", whole))


TASKS = (
    Task(
        name="sum",
        asked="Please compute the sum of the squares of the numbers from 1 to 137 with Python.",
        corrected="Sorry, only the even numbers.",
        wanted=(str(sum(n * n for n in range(2, 138, 2))),),
    ),
    Task(
        name="calendar",
        asked="How many Fridays the 13th are there in the years 2020 to 2029? Please work it out with Python.",
        corrected="Sorry, I meant the years 2000 to 2029.",
        wanted=("51",),
    ),
    Task(
        name="days",
        asked="How many days is it from 3 March 2026 to 29 November 2026? Use Python.",
        corrected="No, from 3 March 2025.",
        wanted=("636",),
    ),
    Task(
        name="table",
        asked="What is the total of February in this file?",
        corrected="Sorry, March, not February.",
        wanted=("641",),
        file=("sales.csv", SALES),
    ),
    Task(
        name="text",
        asked="Count how often the letter e stands in this text.",
        corrected="I meant the letter r.",
        wanted=(str(FERRY.lower().count("r")),),
        file=("ferry.txt", FERRY),
    ),
    Task(
        name="average",
        asked="Please compute the average of these with Python: 12, 7, 41, 33, 8, 19, 56, 3, 27, 90",
        corrected="The median instead, please.",
        wanted=("23",),
    ),
    Task(
        name="primes",
        asked="List the primes between 100 and 150, computed with Python.",
        corrected="The largest first, please.",
        wanted=("149, 139, 137, 131, 127, 113, 109, 107, 103, 101",),
    ),
    Task(
        name="digits",
        asked="What is the sum of the digits of 2 to the power of 100? Compute it.",
        corrected="Sorry, to the power of 150.",
        wanted=("235",),
    ),
    Task(
        name="names",
        asked="Sort these names with Python: Zoe, Adam, Mia, Benjamin, Al",
        corrected="By their length, the shortest first.",
        wanted=("Al, Zoe, Mia, Adam, Benjamin",),
    ),
    Task(
        name="date",
        asked="Which date is 100 days after 24 December 2026? Compute it with Python.",
        corrected="And write the date like 31.12.2026, please.",
        wanted=("03.04.2027", "3.4.2027"),
    ),
)
