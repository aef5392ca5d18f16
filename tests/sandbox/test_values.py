"""What a model gets to see of figures, tables and calls: files and text."""

from actors.sandbox.handover import take_out
from tests.sandbox.desk import Desk

# Stand-ins that look like the libraries from outside: the sandbox's interpreter has what the operator gives it.
LIBRARIES = {
    "matplotlib/__init__.py": """
class Figure:
    def savefig(self, name): open(name, "w").write("a picture")
class Axes:
    figure = Figure()
""",
    "matplotlib/pyplot.py": """
from . import Figure
figures = {}
def get_fignums(): return list(figures)
def figure(number=1): return figures.setdefault(number, Figure())
def close(what):
    for number in [number for number, figure in figures.items() if what in ("all", figure)]: del figures[number]
""",
    "pandas.py": """
class DataFrame:
    shape = (1000, 3)
    def to_string(self, max_rows, max_cols): return f"a table of {max_rows} rows"
class Series:
    shape = (9,)
    def to_string(self, max_rows): return "a column"
""",
}


async def prepared(desk: Desk) -> Desk:
    code = "import os\nos.mkdir('matplotlib')\n"
    await desk.run(code + "".join(f"open({name!r}, 'w').write({text!r})\n" for name, text in LIBRARIES.items()))
    return desk


async def test_a_figure_is_saved_and_named(desk: Desk) -> None:
    await prepared(desk)
    assert (await desk.run("import matplotlib\nmatplotlib.Figure()")).value == "<picture saved as figure-1.png>"
    assert (await desk.run("import matplotlib\nmatplotlib.Axes()")).value == "<picture saved as figure-2.png>"
    assert take_out(desk.sandbox.workspace, "figure-2.png") == b"a picture"


async def test_figures_that_were_only_drawn_are_saved_too(desk: Desk) -> None:
    await prepared(desk)
    cell = await desk.begin("import matplotlib.pyplot as plt\nplt.figure(1); plt.figure(2)\nprint('drawn')")
    await desk.end(cell)
    expected = "drawn\n<picture saved as figure-1.png>\n<picture saved as figure-2.png>\n"
    assert desk.sandbox.peek(cell) == expected


async def test_a_figure_that_was_drawn_and_is_the_value_is_saved_once(desk: Desk) -> None:
    await prepared(desk)
    cell = await desk.begin("import matplotlib.pyplot as plt\nplt.figure(2)\nplt.figure(1)")
    assert getattr(await desk.end(cell), "value", "") == "<picture saved as figure-1.png>"
    assert desk.sandbox.peek(cell) == "<picture saved as figure-2.png>\n"


async def test_a_table_is_text_with_its_size(desk: Desk) -> None:
    await prepared(desk)
    assert (await desk.run("import pandas\npandas.DataFrame()")).value == "a table of 40 rows\n[1000 × 3]"
    assert (await desk.run("import pandas\npandas.Series()")).value == "a column\n[9]"


async def test_help_knows_the_primitives(desk: Desk) -> None:
    cell = await desk.begin("help(primitives.mail.send)\nhelp(len)\nhelp()\nhelp(primitives.nothing)\ndir(primitives)")
    ended = await desk.end(cell)
    text = desk.sandbox.peek(cell)
    assert text.startswith("primitives.mail.send(to: str, subject: str, text: str) -> str\n    Send a mail.")
    assert "Return the number of items" in text
    assert "there is no primitives.nothing; there are: request_clarification, act" in text
    assert getattr(ended, "value", "") == "['act', 'mail', 'notify', 'request_clarification']"


async def test_a_call_without_a_known_end_raises_by_name(desk: Desk) -> None:
    cell = await desk.begin("try: await primitives.act('x')\nexcept OutcomeUnknown as error: print(error)")
    call = await desk.call()
    desk.sandbox.reply(call.rpc, error="outcome unknown: look first")
    await desk.end(cell)
    assert desk.sandbox.peek(cell) == "outcome unknown: look first\n"
