"""Every command has help with an example and ``--json``; shells complete them."""

import gc
import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from penstock import __version__
from penstock.cli.console.help_layout import lay_out_help
from penstock.cli.entry_point import command_line, main
from penstock.devkit import Embedded

BIN = Path(sys.executable).parent


def _walk(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _walk(inner, (*path, name))


EVERYTHING = dict(_walk(get_command(command_line())))
COMMANDS = {path: command for path, command in EVERYTHING.items() if not hasattr(command, "commands")}


def name_of(path: tuple[str, ...]) -> str:
    return " ".join(path)


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 25
    assert ("groups", "describe") in COMMANDS


@pytest.mark.parametrize("name", sorted({path[0] for path in EVERYTHING if path}))
def test_a_command_is_the_same_where_only_its_module_is_imported(name: str) -> None:
    alone = dict(_walk(get_command(command_line(name))))
    expected = {path for path in EVERYTHING if path[:1] == (name,)}
    assert {path for path in alone if path[:1] == (name,)} == expected
    assert len(alone) < len(EVERYTHING)


@pytest.mark.parametrize("path", COMMANDS, ids=name_of)
def test_a_command_says_what_it_does_with_an_example_of_itself(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    examples = [line.strip() for line in (command.epilog or "").splitlines()]
    assert any(line.startswith(f"penstock {' '.join(path)}") for line in examples)


@pytest.mark.parametrize("path", COMMANDS, ids=name_of)
def test_a_command_answers_in_json_and_explains_each_option(path: tuple[str, ...]) -> None:
    options = {name: each for each in COMMANDS[path].params for name in each.opts if name.startswith("-")}
    assert "--json" in options
    assert [name for name, each in options.items() if not each.help] == []


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_an_example_names_only_options_that_there_are(path: tuple[str, ...]) -> None:
    for line in (EVERYTHING[path].epilog or "").splitlines():
        words = line.strip().split()
        if words[:1] != ["penstock"]:
            continue
        # Only the part before the shell's own words, without the comment at the end of the line.
        mine = line.strip().split(" | ")[0].split("   ")[0].split()[1:]
        length = max(size for size in range(len(mine) + 1) if tuple(mine[:size]) in EVERYTHING)
        command = EVERYTHING[tuple(mine[:length])]
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        flags = {word.split("=")[0] for word in mine[length:] if word.startswith("--")}
        assert flags <= known, line


def penstock(*arguments: str, **variables: str) -> str:
    # Typer finds the shell in the list of processes, which is different in a test.
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1", **variables}
    command = [str(BIN / "penstock"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.stdout


def test_bash_completes_commands_and_options_once_it_is_installed(tmp_path: Path) -> None:
    assert "bash completion installed" in penstock("--install-completion", "bash", HOME=str(tmp_path))
    program = """
        source ~/.bashrc
        reply() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock_completion penstock; echo "${COMPREPLY[@]}"; }
        reply penstock dlq re
        reply penstock lag --wat
    """
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.splitlines() == ["replay", "--watch"]


def test_zsh_gets_a_function_and_for_it_commands_with_what_they_do(tmp_path: Path) -> None:
    assert "zsh completion installed" in penstock("--install-completion", "zsh", HOME=str(tmp_path))
    assert "#compdef penstock" in (tmp_path / ".zfunc" / "_penstock").read_text()
    reported = penstock(_PENSTOCK_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="penstock groups ")
    assert '"describe"' in reported


def test_completion_can_be_shown_instead() -> None:
    assert "_penstock_completion()" in penstock("--show-completion", "bash")


def test_the_version_is_printed_without_a_command() -> None:
    done = subprocess.run([BIN / "penstock", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_the_help_fits_a_terminal_of_80_columns(path: tuple[str, ...]) -> None:
    command = get_command(command_line())
    lay_out_help(command, 80)
    shown = dict(_walk(command))[path]
    assert [line for line in (shown.epilog or "").splitlines() if line.startswith(" ") and len(line) > 78] == []
    assert [each.name for each in shown.params if getattr(each, "is_flag", False) and each.metavar] == []


def test_flags_have_no_type_and_arguments_no_brackets_of_their_own() -> None:
    done = penstock("stop", "--help", COLUMNS="80")
    assert "Usage: penstock stop [OPTIONS] [NAME]" in done
    assert "<bool>" not in done


def test_a_full_disk_is_no_bug(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [BIN / "penstock", "topics", "ls", "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        3,
        "error: The disk is full, so the output was not written.",
    )


@pytest.mark.parametrize("words", [[], ["groups"]])
def test_without_a_command_the_help_says_it_all(words: list[str]) -> None:
    done = subprocess.run([BIN / "penstock", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Usage: penstock" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ["run", "shop:app", "--concurency", "5"],
            "'concurrency' is an option of handlers: --set concurrency=VALUE,",
        ),
        (["run", "shop:app", "--retry-attempts"], "See `penstock run --help`."),
        (["lag", "shop", "--concurrency", "5"], "See `penstock lag --help`."),
        (["lag", "--recommend"], "Write `penstock lag GROUP --recommend`."),
        (["lag", "shop", "bills", "--recommend"], "--recommend needs exactly one group, and 2 are named."),
        (["lag", "shop", "--recommend", "--watch"], "--recommend and --watch do not go together."),
        (["lag", "shop", "--recommend", "-p"], "--recommend and --partitions do not go together."),
        (["demo", "--engine", "lokal"], "error: Invalid value for '--engine': 'lokal' is not one of"),
    ],
)
def test_a_wrong_option_is_explained_also_if_it_is_one_of_handlers(
    arguments: list[str], hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", *arguments])
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_a_second_command_of_a_process_does_not_keep_the_garbage_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        """In a cycle, so that only the collector frees it."""

        def __init__(self) -> None:
            self.itself = self

    monkeypatch.setattr(sys, "argv", ["penstock", "--version"])
    for _ in range(2):
        client = weakref.ref(Client())
        with pytest.raises(SystemExit):
            main()
    gc.collect()
    assert client() is None


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl+C while `penstock status` runs."""

    def look(_: Embedded) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Embedded, "status", look)
    monkeypatch.setattr(signal, "signal", lambda *_: None)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_command_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "status"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "error: Interrupted.\n")


@pytest.mark.usefixtures("interrupted")
def test_an_interrupted_command_says_so_in_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "status", "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, json.loads(capsys.readouterr().out)["error"]["type"]) == (130, "Interrupted")
