"""What stands in a page and is not seen by who reads it: taken out, so that nobody's mail says to the model what its
reader was never shown. Pure.

Of style sheets only plain rules are read (`.x`, `p.x`, `#y`), not those for some screens. A colour counts against what
is known of its background; where that is a picture, text on it is taken as seen.
"""

import re
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

SHEETS_LENGTH = 100_000
VALUE_LENGTH = 60
CACHED, CACHED_LENGTH = 2000, 500  # a page says the same hundreds of times
CLOSE = 24  # of 255: two colours that nobody tells apart
OUTSIDE = -400.0  # pixels: where text is put that is to be found, not read
TINY = {"px": 2.0, "pt": 2.0, "": 2.0, "em": 0.15, "rem": 0.15, "%": 15.0}

Style = dict[str, str]
Colour = tuple[int, int, int] | None  # None: not known

WHITE = (255, 255, 255)

_PLAIN = re.compile(r"[a-z0-9]*(?:[.#][\w-]+)?", re.IGNORECASE)
_SIZE = re.compile(r"(-?(?:\d+(?:\.\d+)?|\.\d+))\s*(px|pt|em|rem|%|)(?![\w.])")
_SAME_AS_ABOVE = ("", "transparent", "none", "inherit", "initial", "unset")
_NEVER_SHOWN = ("head", "script", "style", "template", "title", "iframe", "datalist")
_STRUCK = ("del", "s", "strike")


class _Seen(NamedTuple):
    """What an element has from those around it."""

    colour: Colour = (0, 0, 0)
    ground: Colour = WHITE
    shows: bool = True
    tiny: bool = False
    clear: bool = False

    @property
    def seen(self) -> bool:
        near = self.colour is not None and self.ground is not None and _apart(self.colour, self.ground) <= CLOSE
        return self.shows and not (self.tiny or self.clear or near)


def without_unseen(tree: Any, ground: Colour = WHITE) -> None:
    """Changes the tree. What is struck out stays, between `~~`. `ground` is what a page lies on by itself."""
    sheets = "\n".join(one.text or "" for one in tree.iter("style"))
    _walk(tree, _Seen(ground=ground), _rules(sheets))


def _walk(element: Any, above: _Seen, rules: dict[str, Style]) -> None:
    style = _style(element, rules)
    if element.getparent() is not None and _is_gone(element, style):
        element.drop_tree()
        return
    here = _in(element, style, above)
    for child in list(element.iterchildren("*")):
        _walk(child, here, rules)
    if not here.seen:
        element.text = ""
        for child in element:
            child.tail = ""
    elif element.tag in _STRUCK or "line-through" in style.get("text-decoration", ""):
        _strike(element)


def _strike(element: Any) -> None:
    if element.text_content().strip():
        element.text = f"~~{element.text or ''}"
        if len(element):
            element[-1].tail = f"{element[-1].tail or ''}~~"
        else:
            element.text += "~~"


def _in(element: Any, style: Style, above: _Seen) -> _Seen:
    colour, ground = above.colour, above.ground
    named = style.get("color") or str(element.get("color") or "").lower()
    if named not in ("", "inherit"):
        colour = _colour(named)
    laid = style.get("background-color") or style.get("background") or str(element.get("bgcolor") or "").lower()
    if laid not in _SAME_AS_ABOVE:
        ground = _colour(laid)
    if element.get("background") or "url(" in style.get("background", "") + style.get("background-image", ""):
        ground = None
    shown = style.get("visibility", "")
    return _Seen(
        colour=colour,
        ground=ground,
        shows=shown == "visible" if shown in ("visible", "hidden", "collapse") else above.shows,
        tiny=_is_tiny(style, above.tiny),
        clear=_is_clear(named) if named not in ("", "inherit") else above.clear,
    )


def _is_gone(element: Any, style: Style) -> bool:
    """With all that is in it."""
    return (
        element.tag in _NEVER_SHOWN
        or element.get("hidden") is not None
        or style.get("display") == "none"
        or style.get("mso-hide") == "all"
        or style.get("content-visibility") == "hidden"
        or _number(style.get("opacity", "1"), 1.0) < 0.1
        or _number(style.get("max-height", "9"), 9.0) == 0
        or "scale(0)" in style.get("transform", "").replace(" ", "")
        or _is_outside(style)
        or _has_no_room(style)
    )


def _is_outside(style: Style) -> bool:
    moved = ["text-indent", "margin-left", "margin-top", "margin"]
    moved += ["left", "right", "top", "bottom"] if style.get("position") in ("absolute", "fixed") else []
    return any(_number(style.get(name, "0"), 0.0) < OUTSIDE for name in moved)


def _has_no_room(style: Style) -> bool:
    sizes = (style.get(name, "9") for name in ("height", "width", "max-height", "max-width"))
    flat = style.get("overflow", "").startswith("hidden") and any(_number(size, 9.0) <= 1 for size in sizes)
    clip = re.sub(r"[\s,]|px", "", style.get("clip", ""))
    return (
        flat or clip in ("rect(0000)", "rect(1111)") or bool(re.match(r"inset\((50|100)%", style.get("clip-path", "")))
    )


def _is_tiny(style: Style, above: bool) -> bool:
    size = style.get("font-size") or style.get("font", "")
    found = _SIZE.search(size)
    if found is None:
        return above and not size
    small = float(found[1]) <= TINY[found[2]]
    return small or (above and found[2] in ("em", "%"))


def _number(value: str, otherwise: float) -> float:
    found = _SIZE.match(value)
    return float(found[1]) if found and found[2] in ("px", "pt", "", "%") else otherwise


# --- colours ---------------------------------------------------------------------------------------------------------


def _colour(value: str) -> Colour:
    """The first that stands there."""
    found = _found_colour(value)
    return None if found is None else found[:3]


def _is_clear(value: str) -> bool:
    found = _found_colour(value)
    return found is not None and found[3] == 0


@lru_cache(maxsize=CACHED)
def _found_colour(value: str) -> tuple[int, int, int, float] | None:
    """Red, green and blue of 255, and how opaque of 1."""
    from tinycss2 import parse_component_value_list  # type: ignore[import-untyped]
    from tinycss2.color4 import Color, parse_color  # type: ignore[import-untyped]

    for token in parse_component_value_list(value):
        if isinstance(colour := parse_color(token), Color):
            red, green, blue = (round(255 * max(0.0, min(1.0, one or 0.0))) for one in colour.to("srgb").coordinates)
            return red, green, blue, colour.alpha
    return None


def _apart(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


# --- styles ----------------------------------------------------------------------------------------------------------


def _style(element: Any, rules: dict[str, Style]) -> Style:
    tag, number = str(element.tag), element.get("id")
    names = ["*", tag]
    for one in (element.get("class") or "").split()[:20]:
        names += [f".{one}", f"{tag}.{one}"]
    names += [f"#{number}", f"{tag}#{number}"] if number else []
    style: Style = {}
    for name in names if rules else []:
        style |= rules.get(name.lower(), {})
    own = _declared(element.get("style") or "")
    return {key: value for key, value in {**style, **own, **_important(style)}.items() if not key.startswith("!")}


def _important(style: Style) -> Style:
    return {key[1:]: value for key, value in style.items() if key.startswith("!")}


def _rules(sheets: str) -> dict[str, Style]:
    """By selector; of one that depends on what is around an element only that it may lay a ground."""
    from tinycss2 import parse_stylesheet, serialize

    found: dict[str, Style] = {}
    with suppress(RecursionError):  # braces in braces
        for rule in parse_stylesheet(sheets[:SHEETS_LENGTH], skip_comments=True, skip_whitespace=True):
            if rule.type == "qualified-rule":
                _add(found, serialize(rule.prelude).lower().split(","), _declared(serialize(rule.content)))
    return found


def _add(found: dict[str, Style], selectors: list[str], style: Style) -> None:
    for selector in selectors:
        name = (selector.split() or [""])[-1].lstrip(">+~")
        if _PLAIN.fullmatch(selector.strip()) or selector.strip() == "*":
            found.setdefault(name, {}).update(style)
        elif any(key.lstrip("!").startswith("background") for key in style):
            found.setdefault(name, {}).update({"background-image": "url()"})


def _declared(text: str) -> Style:
    """What is `!important` stands there twice."""
    return {} if not text else _parsed(text) if len(text) <= CACHED_LENGTH else _parsed.__wrapped__(text)


@lru_cache(maxsize=CACHED)
def _parsed(text: str) -> Style:
    from tinycss2 import parse_blocks_contents, serialize

    style: Style = {}
    with suppress(RecursionError):
        for one in parse_blocks_contents(text[:SHEETS_LENGTH], skip_comments=True, skip_whitespace=True):
            if one.type == "declaration":
                value = serialize(one.value).strip().lower()[:VALUE_LENGTH]
                style |= {one.lower_name: value} | ({f"!{one.lower_name}": value} if one.important else {})
    return style
