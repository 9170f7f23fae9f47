"""Makes untrusted text (records, names, errors, responses of servers) safe to print.

Terminals execute control characters: the reason in a dead letter could clear the screen, set the window title or print
a line that looks like Penstock's. Bidirectional marks reorder text, and invisible characters make two names look alike.
So every character that is not simply visible is shown as its escape sequence, as in Python and JSON.

A backslash stays as it is, so that paths and JSON remain readable: the result is for people, not for parsers.
"""

import json
import unicodedata

# Categories of Unicode: control, format (bidirectional marks, zero-width), surrogate, private use, unassigned, line
# separator and paragraph separator. Other spaces than " " are harmless, and usual in French and Japanese.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that are invisible: Hangul fillers, Khmer vowels, the grapheme joiner.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_VARIATION_SELECTORS_SUPPLEMENT = range(0xE0100, 0xE01F0)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TAB_WIDTH = 4


def printable_line(text: str, *, limit: int | None = None) -> str:
    """The text as one line, with control and invisible characters escaped; cut after ``limit`` characters."""
    # The fast path: most texts are printable ASCII.
    shown = text if text.isascii() and text.isprintable() else "".join(map(_shown, text))
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def printable_block(text: str, *, indent: str = "") -> str:
    """Several lines, such as a traceback: line ends and indentation stay, the rest is as in ``printable_line``.

    With an ``indent``, no line can be mistaken for output of Penstock.
    """
    lines = (line.removesuffix("\r").expandtabs(_TAB_WIDTH) for line in text.removesuffix("\n").split("\n"))
    return "\n".join((indent + printable_line(line)).rstrip() for line in lines)


def printable_json(text: str) -> str:
    """The same JSON, with control and invisible characters escaped; it may have several lines.

    ``json.dumps(..., ensure_ascii=False)`` alone leaves bidirectional marks and some control characters as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    # A line end is always part of the layout: inside strings, JSON has escaped it already.
    return "".join(each if each == "\n" or _is_visible(each) else json.dumps(each)[1:-1] for each in text)


def _is_visible(character: str) -> bool:
    return (
        unicodedata.category(character) not in _ESCAPED_CATEGORIES
        and character not in _INVISIBLE
        and ord(character) not in _VARIATION_SELECTORS_SUPPLEMENT
    )


def _shown(character: str) -> str:
    if _is_visible(character):
        return character
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code <= 0xFF:  # noqa: PLR2004 - what two digits can say
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - what four digits can say
