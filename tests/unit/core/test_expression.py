"""Filters that operators write."""

import pytest

from penstock.core.expression import Expression
from penstock.core.readable import as_plain, as_text, readable
from penstock.errors import ConfigError


def test_an_expression_sees_the_record() -> None:
    values = {"value": {"amount": 5, "tags": ["a"]}, "key": "k", "reason": "BadOrder"}
    assert Expression('value["amount"] > 3 and key == "k"').matches(values)
    assert Expression('any(tag == key for tag in ["k", *value["tags"]])').matches(values)
    assert not Expression('reason.startswith("Good")').matches(values)


def test_what_it_raises_is_no_match_and_is_counted() -> None:
    expression = Expression('value["missing"] == 1')
    assert not expression.matches({"value": {}})
    assert not expression.matches({"value": None})
    assert expression.misses == 2
    assert expression.example == "KeyError: 'missing'"


@pytest.mark.parametrize("text", ["value[", "import os", "", "a" * 3 + " = 1"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an expression"):
        Expression(text)


@pytest.mark.parametrize("text", ["open('x')", "__import__('os')", "valu == 1", "[eval(x) for x in value]"])
def test_unknown_names_are_refused_before_any_record(text: str) -> None:
    with pytest.raises(ConfigError, match="knows no"):
        Expression(text)


def test_bytes_are_shown_as_what_they_are_and_never_as_escapes() -> None:
    assert readable(b'{"a": 1}') == {"a": 1}
    assert readable(b"{broken") == "{broken"
    assert readable(b"plain") == "plain"
    assert readable(None) is None
    assert as_plain(readable(b"\xff\x00")) == {"hex": "ff00"}
    assert as_text(b"\xff\x00") == "0xff00"
    assert as_text(b"a\x1b[31mred\n") == "a\\x1b[31mred\\n"
    assert as_text(b"x" * 50, limit=5) == "xxxx…"
    assert as_text(None) == "null"
    assert readable(b"[" * 100_000) == "[" * 100_000
