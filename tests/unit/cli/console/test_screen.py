"""Foreign text is harmless in the terminal, in every kind of output."""

import ast
from pathlib import Path

import pytest
from rich.columns import Columns
from rich.live import Live
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text

import penstock.cli
from hostile_text import HOSTILE, SHOWN, Terminal, assert_harmless
from penstock.cli.console.progress_bars import Steps
from penstock.cli.console.screen import Screen, block, print_file, print_json, print_line
from penstock.cli.console.tables import Styled, print_table


def screen() -> tuple[Screen, Terminal]:
    file = Terminal()
    return Screen(file=file, width=200, force_terminal=True), file


def in_table() -> Table:
    table = Table(HOSTILE, title=HOSTILE)
    table.add_row(HOSTILE)
    return table


@pytest.mark.parametrize(
    "made",
    [
        HOSTILE,
        Text(HOSTILE),
        Panel(HOSTILE, title=block(HOSTILE)),
        Columns([HOSTILE, Panel(Text(HOSTILE))]),
        in_table(),
        block(HOSTILE, indent="  "),
    ],
    ids=["str", "text", "panel", "columns", "table", "block"],
)
def test_what_a_screen_prints_is_harmless(made: object) -> None:
    console, file = screen()
    console.print(made)
    console.print(made, style="bold", soft_wrap=True)
    shown = file.getvalue()
    assert "\x1b]" not in shown, "no title is set, and no link is made"
    if not isinstance(made, Text):  # the caller that makes a Text chooses its lines
        assert_harmless(shown)
    assert_harmless(shown.replace("\n", " "))


@pytest.mark.parametrize("made", [Text.from_ansi(HOSTILE), Text.from_markup(HOSTILE)], ids=["ansi", "markup"])
def test_no_link_is_made_even_where_sequences_or_markup_are_read(made: Text) -> None:
    console, file = screen()
    console.print(made)
    console.print(Text.from_ansi("\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\"))
    assert "\x1b]" not in file.getvalue()
    assert "\x1b[2J" not in file.getvalue()
    assert "evil" not in file.getvalue().replace("[link=http://evil.example]", "")


def test_a_str_is_one_line_and_no_markup() -> None:
    console, file = screen()
    console.print("a\nb [red]c[/red] :warning:", style="bold")
    console.out("a\nb [red]c[/red]")
    assert file.getvalue() == "\x1b[1ma\\nb [red]c[/red] :warning:\x1b[0m\na\\nb [red]c[/red]\n"


def test_boxes_are_as_wide_as_what_is_shown_in_them() -> None:
    console, file = screen()
    console.print(Panel("\x1b[2J\x07", width=30))
    assert len({len(line) for line in file.getvalue().splitlines()}) == 1


def test_live_displays_move_the_cursor_and_show_harmless_text() -> None:
    console, file = screen()
    with Live(Text(HOSTILE.replace("\n", " ")), console=console, auto_refresh=False) as live:
        live.update(Text("second"), refresh=True)
    with Progress(TextColumn("{task.description}", markup=False), console=console, auto_refresh=False) as bar:
        bar.add_task(HOSTILE.replace("\n", " "), total=1)
    with Steps(console) as steps:
        steps.step(HOSTILE)
    assert "\x1b[?25l" in file.getvalue(), "Rich's own sequences pass"
    assert_harmless(file.getvalue())


def test_results_are_harmless_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "500")  # in a narrow terminal, a table repeats its names in each row
    print_line(HOSTILE)
    print_table((HOSTILE,), [(HOSTILE,), (Styled(HOSTILE, "red"),)])
    print_json({HOSTILE: [HOSTILE, "\ud800"]})
    print_file(HOSTILE.replace("\nerror", "\n2"))
    assert_harmless(terminal.getvalue())
    assert terminal.getvalue().count(SHOWN) == 5


def test_text_for_a_file_is_not_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_file(HOSTILE)
    assert capsys.readouterr().out == HOSTILE


def test_markup_is_only_read_from_text_that_is_written_out_in_the_code() -> None:
    """Otherwise a topic named [red] would become a colour, and one named [link=...] a link."""
    for path in Path(penstock.cli.__path__[0]).glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        constants = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            marked = [each.value for each in node.keywords if each.arg == "markup"]
            assert all(isinstance(each, ast.Constant) and each.value is False for each in marked), path
            if isinstance(node.func, ast.Attribute) and node.func.attr == "from_markup":
                (given,) = node.args
                written_out = isinstance(given, ast.Constant) or (isinstance(given, ast.Name) and given.id in constants)
                assert written_out, f"{path.name}:{node.lineno}"
            if isinstance(node.func, ast.Name) and node.func.id == "Panel":  # Rich always reads markup in titles
                titles = [each.value for each in node.keywords if each.arg in ("title", "subtitle")]
                assert all(isinstance(each, ast.Call) for each in titles), f"{path.name}:{node.lineno}"
