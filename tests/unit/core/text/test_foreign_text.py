"""Foreign text: characters that a terminal would execute, reorder or hide are shown as escapes."""

import json
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.core.text.foreign_text import printable_block, printable_json, printable_line

# Any text at all, lone surrogates too.
# A busy machine is slow to make examples and to run them.
_ON_ANY_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
_ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("\x1b[2J\x1b[1;1H", "\\x1b[2J\\x1b[1;1H"),
        ("\x9b2J", "\\x9b2J"),  # the same in one byte of C1
        ("first\nerror: forged", "first\\nerror: forged"),
        ("real\rfalse", "real\\rfalse"),
        ("a\tb\x08\x00\x7f", "a\\tb\\x08\\x00\\x7f"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066\u2069\u200b\u200d\ufeff\u00ad", "\\u2066\\u2069\\u200b\\u200d\\ufeff\\xad"),
        ("\u2028\u2029\x85", "\\u2028\\u2029\\x85"),
        ("\ud800", "\\ud800"),
        ("\ue000\U000f0000", "\\ue000\\U000f0000"),
        ("\u3164\u115f\u034f", "\\u3164\\u115f\\u034f"),
        ("\U000e0041\U000e0100", "\\U000e0041\\U000e0100"),  # a hidden message in tags
        ("\u0378", "\\u0378"),  # not assigned
    ],
)
def test_characters_that_control_a_terminal_are_shown_as_escapes(hostile: str, shown: str) -> None:
    assert printable_line(hostile) == shown


@pytest.mark.parametrize(
    "plain", ["", "order 7", "Grüße", "東京\u3000都", "1\u00a0000 €", "שלום", "❤️ 🎉", "C:\\temp", '{"a": "b"}']
)
def test_ordinary_text_is_not_escaped(plain: str) -> None:
    assert printable_line(plain) == plain


def test_a_limit_counts_what_is_shown() -> None:
    assert printable_line("abcdef", limit=6) == "abcdef"
    assert printable_line("abcdefg", limit=6) == "abcde…"
    assert printable_line("\x1b\x1b", limit=6) == "\\x1b\\…"


def test_a_block_keeps_its_lines_and_their_indentation() -> None:
    traceback = 'Traceback:\n  File "a.py"\r\n\tat b\x1b[2J\n\n    raise X\u202e\n'
    assert printable_block(traceback) == 'Traceback:\n  File "a.py"\n    at b\\x1b[2J\n\n    raise X\\u202e'


def test_an_indented_block_has_no_line_that_looks_like_penstocks() -> None:
    shown = printable_block("KeyError: 'a'\nerror: forged\x0berror: forged\u2028error: forged", indent="  | ")
    assert shown.split("\n") == ["  | KeyError: 'a'", "  | error: forged\\x0berror: forged\\u2028error: forged"]


@_ON_ANY_MACHINE
@given(_ANY_TEXT)
def test_no_line_has_a_character_that_is_not_plainly_visible(text: str) -> None:
    shown = printable_line(text)
    assert not {unicodedata.category(each) for each in shown} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    shown.encode()
    assert printable_line(shown) == shown, "safe text is not escaped a second time"


@_ON_ANY_MACHINE
@given(_ANY_TEXT, st.sampled_from(["", "  "]))
def test_every_line_of_a_block_is_as_safe_as_a_line(text: str, indent: str) -> None:
    shown = printable_block(text, indent=indent)
    assert len(shown.splitlines()) <= text.count("\n") + 1
    for line in shown.split("\n"):
        assert printable_line(line) == line
        assert line.startswith(indent) or not line


@_ON_ANY_MACHINE
@given(_ANY_TEXT, st.sampled_from([None, 2]))
def test_json_keeps_its_meaning_and_layout_and_loses_what_is_not_visible(text: str, indent: int | None) -> None:
    value = {text: [text, 1]}
    shown = printable_json(json.dumps(value, indent=indent, ensure_ascii=False))
    assert json.loads(shown) == value
    assert all(printable_line(line) == line for line in shown.split("\n"))
