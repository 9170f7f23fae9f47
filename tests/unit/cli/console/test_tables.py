"""The layout of results."""

import pytest

from penstock.cli.console.tables import Styled, duration, moment, rate, sparkline, table_lines


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_are_on_the_right() -> None:
    rows = [("orders", 5, Styled("OK", "green")), ("日本", None, "STOP")]
    assert table_lines(("TOPIC", "LAG", "STATUS"), rows, right=("LAG",)) == [
        "TOPIC  LAG STATUS",
        "orders   5 OK",
        "日本     - STOP",
    ]


def test_in_a_narrow_terminal_a_row_becomes_names_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ("GROUP", "TOPIC", "LAG", "CONSUMER-ID", "STATUS")
    rows = [("shipping", "orders", 5, "rdkafka-0f6c", Styled("OK", "green")), ("shipping", "returns", 0, None, "OK")]
    monkeypatch.setenv("COLUMNS", "39")
    lines = table_lines(columns, rows, right=("LAG",))
    assert lines == [
        "GROUP shipping  TOPIC orders  LAG 5",
        "  CONSUMER-ID rdkafka-0f6c  STATUS OK",
        "GROUP shipping  TOPIC returns  LAG 0",
        "  STATUS OK",
    ]
    assert max(map(len, lines)) <= 39
    monkeypatch.setenv("COLUMNS", "60")
    assert len(table_lines(columns, rows)) == 3, "a line for each row, if there is room"


def test_in_a_narrow_terminal_columns_without_a_value_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ("GROUP", "CONSUMER-ID", "LAG", "HOST")
    rows = [("shipping", None, 5, ""), ("shop", None, 12, None)]
    monkeypatch.setenv("COLUMNS", "20")
    assert table_lines(columns, rows, right=("LAG",)) == ["GROUP    LAG", "shipping   5", "shop      12"]
    monkeypatch.setenv("COLUMNS", "80")
    assert table_lines(columns, rows)[0] == "GROUP    CONSUMER-ID LAG HOST"


def test_a_table_in_a_pipe_has_whole_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(table_lines(("GROUP", "TOPIC"), [("g" * 300, "t")])) == 2


def test_control_characters_of_others_do_not_reach_the_terminal() -> None:
    assert table_lines(("GROUP",), [("a\x1b[2Jb\nc",)])[1] == "a\\x1b[2Jb\\nc"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.4, "0s"), (59, "59s"), (65, "1m 05s"), (3600, "1h 00m"), (90000, "1d 1h")],
)
def test_durations_have_two_units_at_most(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_rates_times_and_sparklines() -> None:
    assert [rate(each) for each in (None, 0.25, 12345.6)] == ["-", "0.2/s", "12,346/s"]
    assert moment(0) == "1970-01-01T00:00:00.000Z"
    assert sparkline([0, 5, 10]) == "▁▅█"
    assert sparkline([0, 0]) == "▁▁"
    assert len(sparkline(range(100), width=20)) == 20
