"""Kafka's CSV of offsets."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.progress.offset_csv import read_offsets, write_offsets
from penstock.errors import ConfigError

TOPICS = st.text("abc.-_", min_size=1, max_size=8)
OFFSETS = st.dictionaries(st.tuples(TOPICS, st.integers(0, 99)), st.integers(0, 2**63 - 1), min_size=1, max_size=5)


def test_one_group_has_three_columns_and_several_have_four() -> None:
    assert write_offsets({"g": {("orders", 1): 5, ("orders", 0): 3}}) == "orders,0,3\norders,1,5\n"
    assert write_offsets({"g": {("orders", 0): 3}, "h": {("orders", 0): 4}}) == "g,orders,0,3\nh,orders,0,4\n"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-orders", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''", "'plain"])
def test_no_cell_is_a_formula_and_every_name_comes_back(name: str) -> None:
    plan = {name: {("-orders", 0): 3}, "g": {("orders", 0): 4}}
    text = write_offsets(plan)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert not [cell for row in rows for cell in row[:2] if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))]
    assert read_offsets(text, groups=list(plan), name="f.csv") == plan


def test_files_of_kafkas_tool_are_read_as_they_are() -> None:
    text = "'g,-orders,0,3\n=h, orders , 1, 4\n"
    assert read_offsets(text, groups=["'g"], name="f.csv") == {"'g": {("-orders", 0): 3}, "=h": {("orders", 1): 4}}


@given(st.dictionaries(st.text(min_size=1, max_size=9).filter(lambda text: text == text.strip()), OFFSETS, min_size=1))
def test_written_offsets_are_read_back(plan: dict[str, dict[tuple[str, int], int]]) -> None:
    # The csv module of Python 3.11 does not read a NUL.
    plan = {name.replace("\0", "0").strip() or "g": each for name, each in plan.items()}
    assert read_offsets(write_offsets(plan), groups=list(plan), name="f.csv") == plan


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "contains no offsets"),
        ("orders,0\n", "line 1 has 2 columns"),
        ("orders,0,5\norders,x,5\n", "line 2: 'x' is not a whole number"),
        ("orders,0,-1\n", "'-1' is not a whole number"),
        ("orders,0,99999999999999999999\n", "is not a whole number"),
        ("orders,0,5\norders,0,6\n", "orders-0 is listed twice"),
    ],
)
def test_a_bad_line_is_named(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_offsets(text, groups=["g"], name="f.csv")


def test_three_columns_need_one_group() -> None:
    with pytest.raises(ConfigError, match="has no group column"):
        read_offsets("orders,0,5\n", groups=["g", "h"], name="f.csv")
