"""The Python that the rehearsal worker writes, in the session that keeps its variables. Pure."""

from frontdesk.rehearsal.words import MONTHS, Spec, title

LOAD = """\
import csv, io, time
from decimal import Decimal

if "rows" in globals():
    print(f"(with the {len(rows)} rows of sales.csv that were in memory already)")
else:
    primitives.status("reading sales.csv")
    rows = list(csv.DictReader(io.StringIO(await primitives.files.read("sales.csv"))))
"""

COMPUTE = """\
month = {month}
wanted = [row for row in rows if month is None or int(row["date"][5:7]) == month]
groups = sorted({{row["{group}"] for row in wanted}})
figures = {{}}
for n, group in enumerate(groups, 1):
    primitives.status(f"{{group}}: {{n}} of {{len(groups)}} (paced, interrupt it)")
    time.sleep({pace})
    amounts = [Decimal(row["{measure}"]) for row in wanted if row["{group}"] == group]
    figures[group] = sum(amounts) / {divisor}

lines = [f"- {{group}}: {{amount:,.2f}}" for group, amount in figures.items()]
if "{stat}" == "total":
    lines.append(f"- all: {{sum(figures.values()):,.2f}}")
summary = "\\n".join(["{heading}:", *lines]) if figures else "There are no rows for {month_name} in sales.csv."
print(summary)
"""

MAIL = """\
# Sending it to {name}
if "summary" not in globals():
    raise RuntimeError("there is nothing to send yet: ask for a figure first")
mails = {{}}
for person in await primitives.contacts.find("{name}"):
    for address in person["addresses"]:
        if address.startswith("email:"):
            mails[person["name"]] = address.removeprefix("email:")
if not mails:
    raise RuntimeError("there is nobody called {name} with a mail address")

def chosen_by(answer):
    said = answer.lower().replace("(", " ").replace(")", " ").replace(",", " ").split()
    places = {{"first": 0, "second": 1, "third": 2, "last": -1}}
    for word in said:
        if word in places:
            return [list(mails)[places[word]]]
    own = [word for word in said if word != "{lower}"]
    return [name for name in mails if any(word in (name + " " + mails[name]).lower().split() for word in own)]

chosen = list(mails)
for hint in {hints}:
    chosen = chosen_by(hint) or chosen
while len(chosen) != 1:
    options = [f"{{name}} ({{mail}})" for name, mail in mails.items()]
    chosen = chosen_by(await primitives.request_clarification("Which {name}?", options=options))
subject = summary.splitlines()[0].rstrip(":")
print(await primitives.mail.send(to=mails[chosen[0]], subject=subject, text=summary))
print(f"Sent to {{chosen[0]}}.")
"""


def compute(spec: Spec, pace_seconds: float) -> str:
    body = COMPUTE.format(
        month=spec.month,
        month_name=MONTHS[spec.month - 1].capitalize() if spec.month else "any month",
        group=spec.group,
        measure=spec.measure,
        stat=spec.stat,
        divisor="len(amounts)" if spec.stat == "average" else "1",
        heading=_heading(spec),
        pace=pace_seconds,
    )
    return f"# {_heading(spec)}\n{LOAD}\n{body}"


def mail(name: str, hints: list[str]) -> str:
    """`hints` is what was said about the person since, before the code could ask."""
    first = name.split(maxsplit=1)[0].lower()
    return MAIL.format(name=name.title() if name.islower() else name, lower=first, hints=hints)


def _heading(spec: Spec) -> str:
    text = title(spec)
    return text[0].upper() + text[1:]
