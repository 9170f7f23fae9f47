"""How the grids of lessons are drawn."""

from penstock.cli.console.lesson_pictures import grid_lines
from penstock.learn.picture import Grid, GridRow, Mark, offset_columns, offsets_row, ownership_rows, pointer_row


def drawn(grid: Grid, width: int = 80) -> list[str]:
    return [line.plain for line in grid_lines(grid, width)]


def test_marks_stand_below_their_offsets_and_a_pointer_below_its_own() -> None:
    rows = (offsets_row("log", 4, {0: Mark.DONE, 1: Mark.FAILED}), pointer_row("committed", 1, width=4))
    assert drawn(Grid("orders", offset_columns(4), rows, {Mark.DONE: "done", Mark.FAILED: "failed"})) == [
        "  orders",
        "            0 1 2 3",
        "  log       ■ ✗ □ □",
        "  committed   ↑",
        "  ■ done  ✗ failed  ",
    ]


def test_a_grid_that_is_too_wide_continues_below() -> None:
    assert drawn(Grid("g", ("p0", "p1", "p2"), ownership_rows({"a": [0], "b": [2]}, 3)), width=9) == [
        "  g",
        "    p0 p1",
        "  a  ■  ·",
        "  b  ·  ·",
        "    p2",
        "  a  ·",
        "  b  ■",
    ]


def test_slices_of_time_have_no_heads_and_no_gaps() -> None:
    assert drawn(Grid("time", ("",) * 4, (GridRow("p0", ("A", "·", "·", "B")),))) == ["  time", "  p0 A··B"]


def test_a_long_legend_takes_several_lines() -> None:
    legend = {Mark.DONE: "handled before the kill", Mark.AGAIN: "handled twice"}
    *_, one, two = drawn(Grid("g", ("0",), (GridRow("a", (Mark.DONE,)),), legend), width=40)
    assert (one, two) == ("  ■ handled before the kill  ", "  ● handled twice  ")
