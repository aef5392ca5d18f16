"""Bytes as text, by labels as senders really write them. Pure; nothing here raises on any bytes under any label.

A label means what the world takes it for (https://encoding.spec.whatwg.org/#names-and-labels), and is believed as far
as the bytes are what it says.
"""

import codecs
import re

from gateway.record import whole_text

# What a label means in practice.
_MEANT = {
    "gb2312": "gb18030", "gbk": "gb18030", "gb_2312-80": "gb18030", "cp936": "gb18030", "hz-gb-2312": "hz",
    "iso-8859-1": "cp1252", "latin1": "cp1252", "latin-1": "cp1252", "iso8859-1": "cp1252", "iso_8859-1": "cp1252",
    "iso-8859-9": "cp1254", "latin5": "cp1254", "iso-8859-11": "cp874", "tis-620": "cp874", "dos-874": "cp874",
    "iso-8859-8-i": "iso-8859-8", "iso-8859-8-e": "iso-8859-8", "iso-8859-6-i": "iso-8859-6", "logical": "iso-8859-8",
    "ks_c_5601-1987": "cp949", "ks_c_5601-1989": "cp949", "euc-kr": "cp949", "ksc5601": "cp949", "korean": "cp949",
    "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "csshiftjis": "cp932", "windows-31j": "cp932",
    "iso-2022-jp-ms": "iso-2022-jp", "cp50220": "iso-2022-jp", "cp50221": "iso-2022-jp", "cp50222": "iso-2022-jp",
    "big5": "cp950", "koi": "koi8-r", "koi8": "koi8-r", "koi8-ru": "koi8-u", "mac": "mac-roman",
    "utf8": "utf-8", "utf8mb4": "utf-8", "unicode-1-1-utf-8": "utf-8", "unicode-1-1-utf-7": "utf-7",
}  # fmt: skip
_WIDER = {"cp950": "big5hkscs", "euc_jp": "euc_jis_2004"}  # tried next, where the bytes are not what the label says
_NOT_TEXT = {
    "us-ascii", "ascii", "ansi_x3.4-1968", "iso646-us", "unknown-8bit", "unknown", "8bit", "binary", "default", ""
}  # fmt: skip
_NOT_FOR_MAIL = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"}
_NUMBERED = re.compile(r"(?:windows|win|cp|ms|ibm)[-_]?(\d{3,5})")
_SEVEN_BITS = ("hz", "utf-7", "iso2022_kr")  # garbage under such a label is ASCII all the same
_TO_JAPANESE = (b"\x1b$B", b"\x1b$@", b"\x1b(I")
_ESCAPE = re.compile(rb"\x1b(\$[@B]|\$\([A-Z]|\([BIJ])")


def decoded(data: bytes, label: str) -> str:
    """Any bytes as text: by the label where it is true, else by what they are (UTF-8, then windows-1252)."""
    return whole_text(_decoded(data, codec(label))).removeprefix("\ufeff")


def codec(label: str) -> str | None:
    """Python's name of what a label means; None for one that says nothing."""
    name = label.strip().strip("\"';").partition("*")[0].casefold()
    while name.startswith("x-"):
        name = name[2:]
    name = _MEANT.get(name, name)
    numbered = _NUMBERED.fullmatch(name)
    name = _MEANT.get(f"cp{numbered[1]}", f"cp{numbered[1]}") if numbered else name
    if name in _NOT_TEXT:
        return None
    try:
        found = codecs.lookup(name)
        "".encode(name)  # not each codec is one of text: rot13, base64
    except (LookupError, ValueError, UnicodeError, TypeError, AssertionError):
        return None
    return None if found.name.replace("-", "_") in _NOT_FOR_MAIL else found.name


def _decoded(data: bytes, name: str | None) -> str:
    if (name or "").startswith("iso2022_jp") or (name in (None, "utf-8") and any(one in data for one in _TO_JAPANESE)):
        return _japanese(data)
    if name is None and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = "utf-16"
    others = () if name in _SEVEN_BITS and data.isascii() else ("utf-8",)
    for tried in (name, _WIDER.get(name or ""), *others):
        try:
            if tried is not None:
                return data.decode(tried)
        except (UnicodeError, LookupError, ValueError):
            continue
    # What is mostly of the labelled kind is shown as that. Where UTF-8 is meant, a few bytes may be broken (a cut text,
    # a NUL that a server wrote over); with more of them it is windows-1252.
    if name not in (None, "utf-8"):
        return data.decode(name or "", "replace")
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    whole = sum(character > "\x7f" for character in text) - broken
    return text if whole > broken else data.decode("cp1252", "replace")


def _japanese(data: bytes) -> str:
    """ISO-2022-JP as it is sent: with the makers' own characters (①, ㈱, 髙) and katakana of half width, for which
    Python's codecs raise. By way of Shift_JIS, which has them at the same places."""
    try:
        return data.decode("iso2022_jp_ext")
    except UnicodeError:
        first, *pieces = _ESCAPE.split(data)
    shown = first.decode("utf-8", "replace")
    for escape, piece in zip(pieces[::2], pieces[1::2], strict=True):
        if escape in (b"$B", b"$@"):
            shown += _shifted(piece)
        elif escape == b"(I":
            shown += bytes(one | 0x80 if 0x20 < one < 0x60 else one for one in piece).decode("cp932", "replace")
        elif escape in (b"(B", b"(J"):
            shown += piece.decode("utf-8", "replace")
        else:
            shown += (b"\x1b" + escape + piece).decode("iso2022_jp_ext", "replace")
    return shown


def _shifted(piece: bytes) -> str:
    """Two bytes are a character; a line's end is a line's end. JIS X 0208 moved to where Shift_JIS has it."""
    moved, at = bytearray(), 0
    while at < len(piece):
        row, cell = piece[at], piece[at + 1] if at + 1 < len(piece) else 0
        if 0x21 <= row <= 0x7E and 0x21 <= cell <= 0x7E:
            lead = ((row - 0x21) >> 1) + 0x81
            trail = cell + (0x7E if not row % 2 else 0x20 if cell >= 0x60 else 0x1F)
            moved += bytes((lead if lead <= 0x9F else lead + 0x40, trail))
            at += 2
        else:
            moved.append(row)
            at += 1
    return moved.decode("cp932", "replace")
