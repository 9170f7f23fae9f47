"""Text that others wrote (records, names, errors, answers of servers), made safe to show.

Terminals obey control characters: a dead letter's reason could clear the screen, set the window's title or write a line
that looks like one of ours. Bidirectional marks reorder what is shown, and invisible characters make two names look
alike. So whatever is not simply visible is shown as its escape, in the form that Python and JSON have for it.

The backslash itself stays as it is, so that paths and JSON remain readable: the result is for eyes, not for parsing.
"""

import json
import unicodedata

# Categories of Unicode: control, format (bidirectional marks, zero-width), surrogate, private use, unassigned, line
# separator and paragraph separator. Other spaces than " " are harmless, and usual in French and Japanese.
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that are drawn as nothing: fillers of Hangul, vowels of Khmer, the grapheme joiner.
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_VARIATION_SELECTORS_SUPPLEMENT = range(0xE0100, 0xE01F0)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TAB_WIDTH = 4


def printable_line(text: str, *, limit: int | None = None) -> str:
    """One line without a character that a terminal obeys or hides; of more than ``limit`` characters, the first."""
    # The usual text takes the short way: all of it is known to be printable.
    shown = text if text.isascii() and text.isprintable() else "".join(map(_shown, text))
    return shown if limit is None or len(shown) <= limit else shown[: limit - 1] + "…"


def printable_block(text: str, *, indent: str = "") -> str:
    """Several lines, such as a traceback: line ends and indentation stay, the rest is as in ``printable_line``.

    With an ``indent``, no line of it can be taken for one of ours.
    """
    lines = (line.removesuffix("\r").expandtabs(_TAB_WIDTH) for line in text.removesuffix("\n").split("\n"))
    return "\n".join((indent + printable_line(line)).rstrip() for line in lines)


def printable_json(text: str) -> str:
    """JSON in one line or in several, of the same meaning: JSON has an escape for every character.

    ``json.dumps(..., ensure_ascii=False)`` alone leaves bidirectional marks and some control characters as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    # A line end in it belongs to the layout: inside of strings it is an escape already.
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
