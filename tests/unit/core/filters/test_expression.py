"""Filters that operators write."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.core.filters import evaluation
from penstock.core.filters.evaluation import FUNCTIONS, METHODS, Evaluation
from penstock.core.filters.expression import Expression, checked
from penstock.core.text.readable_bytes import as_plain, as_text, readable
from penstock.errors import ConfigError


def test_an_expression_sees_the_record() -> None:
    values = {"value": {"amount": 5, "tags": ["a"]}, "key": "k", "reason": "BadOrder"}
    assert Expression('value["amount"] > 3 and key == "k"').matches(values)
    assert Expression('any(tag == key for tag in ["k", *value["tags"]])').matches(values)
    assert not Expression('reason.startswith("Good")').matches(values)


def test_an_expression_that_raises_does_not_match_and_is_counted() -> None:
    expression = Expression('value["missing"] == 1')
    assert not expression.matches({"value": {}})
    assert not expression.matches({"value": None})
    assert expression.misses == 2
    assert expression.example == "KeyError: 'missing'"


@pytest.mark.parametrize("text", ["value[", "import os", "", "a" * 3 + " = 1"])
def test_text_that_is_not_an_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not an expression"):
        Expression(text)


@pytest.mark.parametrize("text", ["open('x')", "__import__('os')", "valu == 1", "[eval(x) for x in value]"])
def test_unknown_names_are_refused_before_any_record(text: str) -> None:
    with pytest.raises(ConfigError, match=r"has no (function|variable)"):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('value["amount"] > 100', True),
        ('value["n"] % 3 == 0', True),
        ("not value", False),
        ('100 < value["amount"] <= 250 and key.startswith("c-")', True),
        ('"urgent" in value["tags"] or "x" not in key', True),
        ('any(item["qty"] > 5 for item in value["items"])', True),
        ('sum(item["qty"] * item["price"] for item in value["items"] if item["qty"]) > 30', True),
        ('[name for name, found in headers.items() if found == "t-1"] == ["trace"]', True),
        ('{each.lower() for each in value["tags"]} == {"urgent", "eu"}', True),
        ('{name: len(found) for name, found in headers.items()} == {"trace": 3}', True),
        ('(value["missing"] if "missing" in value else -1) < 0', True),
        ('value.get("missing", 7) == 7 and value.get("amount") is not None', True),
        ('min(value["tags"]) == "EU" and max(1, 2) == 2 and max([], default=0) == 0', True),
        ('sorted(value["tags"], reverse=True)[0] == "urgent" and key[:2] == "c-" and key[-1:] == "7"', True),
        ('int("7") + float("1.5") == 8.5 and str(7) == "7" and abs(-7) == 7 and bool("x")', True),
        ('key.split("-") == ["c", "17"] and key.upper() == "C-17" and " a ".strip() == "a"', True),
        ("value == value and value != [1] and (1, 2) == [1, 2]", True),
        ("timestamp > 0 and partition == 0 and offset // 2 == 2 and offset / 2 == 2.5", True),
        ('any(value == 1 for value in [1]) and value["n"] == 3', True),
        ('value["tags"] + ["x"] == ["urgent", "EU", "x"] and key + "!" == "c-17!"', True),
    ],
)
def test_expressions_mean_what_they_mean_in_python(text: str, *, expected: bool) -> None:
    expression = Expression(text)
    assert expression.matches(_RECORD) is expected, expression.example
    python = eval(text, {**_RECORD})
    # The only exception: a tuple is a list here, because JSON has no tuples.
    assert bool(python) is expected or "(1, 2)" in text


_RECORD: dict[str, Any] = {
    "key": "c-17",
    "value": {
        "amount": 250,
        "n": 3,
        "tags": ["urgent", "EU"],
        "items": [{"qty": 0, "price": 9}, {"qty": 7, "price": 5}],
    },
    "headers": {"trace": "t-1"},
    "topic": "orders",
    "partition": 0,
    "offset": 5,
    "timestamp": 1.5,
}

ATTACKS = [
    "().__class__.__bases__[0].__subclasses__()",
    "value.__class__",
    "key.__len__()",
    "'{0.__class__}'.format(key)",
    "key.format_map(value)",
    "f'{key}'",
    "f'{key!r:>{offset}}'",
    "(lambda: 1)()",
    "(x := 1)",
    "[x := y for y in value]",
    "9**9**9",
    "1 << 1000000000",
    "1 >> 1",
    "1 | 2",
    "~1",
    "value @ value",
    "len.__self__",
    "max(value, key=len)",
    "max(*value)",
    "sorted(value, **headers)",
    "len",
    "[len for len in value]",
    "[__x for __x in value]",
    "[key.x for key.x in value]",
    "[x for x, *y in value]",
    "value[0]()",
    "(key.lower)()()",
    "key.join(value)",
    "key.replace('a', key)",
    "key.ljust(1000000000)",
    "key.zfill(9)",
    "key.encode()",
    "key.translate(value)",
    "value.pop('a')",
    "value.setdefault('a', 1)",
    "value.update(value)",
    "value.clear()",
    "[1].append(2)",
    "range(1000000000)",
    "getattr(key, 'x')",
    "type(key)",
    "vars()",
    "globals()",
    "exec('1')",
    "open('/etc/passwd')",
    "__import__('os').system('id')",
    "__builtins__",
    "...",
    "1j",
    "{**value}",
    "[x async for x in value]",
    "await value",
    "(yield)",
    "(yield from value)",
    "print(1)",
    "bytes(1000000000)",
    "dict(a=1)",
    "iter(value)",
    "[" * 150 + "]" * 150,
    "not " * 300 + "1",
    "-" * 1500 + "1",
    "+".join(["1"] * 500),
    "1" * 2001,
    "(" * 900 + ")" * 900,
    "0" + "x" + "f" * 1500 + "if",
]


@pytest.mark.parametrize("text", ATTACKS, ids=lambda text: text[:40])
def test_a_harmful_expression_is_refused_before_any_record(text: str) -> None:
    with pytest.raises(ConfigError):
        Expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "key * 1000000000",
        "1000000000 * key",
        "[0] * 1000000000",
        "key % 5",
        "'%1000000000d' % 1",
        "*".join(["9" * 300] * 6),
        "int('9' * 5000)",
        'int("' + "9" * 1500 + '") * int("' + "9" * 300 + '")',
        " + ".join(["value"] * 12),
        "[x for x in big for y in big for z in big]".replace("big", "value"),
        "sum(1 for x in value for y in value for z in value)",
        "any(x == 'b' for x in value for y in value for z in value)",
        "len([[x, y] for x in value for y in value]) > 0",
        "sorted([x for x in value for y in value])[0]",
        "all(value in [value] for x in value)",
        "value == value and all(value + 'a' > value for x in value)",
        "all(value.count('ab') == 0 for x in value)",
        "all('ab' not in value for x in value)",
        "all(value[1:] for x in value)",
        "all(x.lower() for x in [value, value] for y in value)",
    ],
)
def test_expressions_that_need_much_time_or_memory_end_soon(text: str) -> None:
    expression = Expression(text)
    assert not expression.matches({**_RECORD, "value": "a" * 1_000_000})
    assert expression.example.startswith(("TooMuchError", "TypeError", "ValueError")), expression.example


@pytest.mark.timeout(60)
def test_lists_that_contain_each_other_many_times_are_not_compared_forever() -> None:
    deep: Any = 1
    other: Any = 1
    for _ in range(60):
        deep, other = [deep, deep], [other, other]
    for text in ("key == value", "key in [value]", "str(key) == 'x'", "{key}", "sorted([key, value])", "key < value"):
        expression = Expression(text)
        assert not expression.matches({"key": deep, "value": other})
        assert expression.misses == 1, text


def test_values_that_are_not_plain_are_not_touched() -> None:
    class Trap:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None  # type: ignore[assignment]

    class Text(str):
        __slots__ = ()

        def startswith(self, *_: Any) -> bool:
            raise AssertionError

    for text in ("value", "value == 1", "value in [1]", "[value] == [1]", "len(value)", "value.startswith('a')"):
        for value in (Trap(), Text("a"), Trap):
            expression = Expression(text)
            assert not expression.matches({"value": value})
            assert expression.example.startswith("TypeError: a "), expression.example


_LEAVES = st.sampled_from(
    [
        "key",
        "value",
        "headers",
        "offset",
        "1",
        "0",
        "-3",
        "2.5",
        "'a'",
        "b'b'",
        "None",
        "True",
        "[]",
        "{}",
        "x",
        "_",
        "os",
    ]
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = [*"+-*/%|&^@<", "//", "**", "<<", ">>", "==", "!=", "<=", "in", "is", "and", "or"]
    names = [*FUNCTIONS, *METHODS, "eval", "getattr", "type", "__class__", "format", "mro", "gi_frame", "join"]
    return st.one_of(
        st.tuples(inner, st.sampled_from(operators), inner).map(lambda each: f"({each[0]} {each[1]} {each[2]})"),
        st.tuples(inner, inner).map(lambda each: f"{each[0]}[{each[1]}]"),
        st.tuples(inner, inner, inner).map(lambda each: f"{each[0]}[{each[1]}:{each[2]}]"),
        st.tuples(inner, st.sampled_from(names)).map(lambda each: f"({each[0]}).{each[1]}"),
        st.tuples(inner, st.sampled_from(names), inner).map(lambda each: f"({each[0]}).{each[1]}({each[2]})"),
        st.tuples(st.sampled_from(names), inner).map(lambda each: f"{each[0]}({each[1]})"),
        st.tuples(inner, inner).map(lambda each: f"[{each[0]} for x in {each[1]}]"),
        st.tuples(inner, inner, inner).map(lambda each: f"({each[0]} if {each[1]} else {each[2]})"),
        st.tuples(inner, inner).map(lambda each: f"{{{each[0]}: {each[1]}}}"),
        inner.map(lambda each: f"(lambda: {each})()"),
        inner.map(lambda each: f"f'{{{each}}}'"),
        inner.map(lambda each: f"[*{each}, not {each}]"),
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.recursive(_LEAVES, _larger, max_leaves=12))
def test_any_expression_is_refused_or_gives_a_plain_answer_and_calls_nothing_else(text: str) -> None:
    try:
        tree = checked(text, option="--where")
    except ConfigError:
        return
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Lambda | ast.NamedExpr | ast.JoinedStr | ast.Pow | ast.LShift | ast.RShift)
        assert not (isinstance(node, ast.Attribute) and node.attr not in METHODS)
        assert not (isinstance(node, ast.Name) and node.id.startswith("_"))
    called: list[object] = []
    record = json.loads(json.dumps(_RECORD))
    try:
        sys.setprofile(lambda _frame, event, what: called.append(what) if event == "c_call" else None)
        try:
            found = Evaluation(record).of(tree)
        finally:
            sys.setprofile(None)
    except Exception:  # noqa: BLE001 - a miss
        found = None
    assert type(found) in (bool, int, float, str, bytes, list, dict, set, type(None))
    assert record == _RECORD, "nothing is changed"
    dangerous = {"open", "eval", "exec", "compile", "__import__", "getattr", "setattr", "format", "system"}
    assert not [each for each in called if getattr(each, "__name__", "") in dangerous]


def test_an_expression_never_reaches_pythons_own_machinery() -> None:
    source = Path(evaluation.__file__).read_text("utf-8")
    used = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    assert not used & {"eval", "exec", "compile", "__import__", "open", "globals", "vars", "setattr", "format"}


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
