"""The entry point of ``penstock``: it runs a command and turns errors into one line and an exit code."""

import errno
import gc
import signal
import sys
import traceback
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import TracebackType
from typing import Annotated, NoReturn

import typer
from typer.main import get_command

from penstock import __version__
from penstock.cli.console.help_layout import lay_out_help
from penstock.cli.console.screen import block, err, out, print_json, print_line
from penstock.cli.runtime.json_logs import log_error, wants_json
from penstock.errors import PenstockError, SetupError

_INTERRUPTED = 130

# The commands of each module. Only the module of the given command is imported: importing all of them takes longer than
# most commands.
_COMMANDS = {
    "demo": ("demo",),
    "learn": ("learn",),
    "up": ("up", "down", "status"),
    "assignment_plan": ("plan",),
    "run": ("run",),
    "debug": ("debug",),
    "ship": ("ship",),
    "groups": ("groups",),
    "ui": ("ui",),
    "top": ("top",),
    "lag": ("lag",),
    "offsets": ("offsets",),
    "dlq": ("dlq",),
    "topics": ("topics",),
    "tail_produce": ("tail", "produce"),
    "stop": ("stop",),
    "live": ("pause", "resume", "set"),
}


def _show_version(wanted: bool) -> None:
    if wanted:
        print_line(__version__)
        raise typer.Exit


def _root(
    *,
    # Eager, with a callback: otherwise Typer would first complain about the missing command.
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None: ...


@cache
def command_line(command: str = "") -> typer.Typer:
    """Return the command line with only this command, or with all commands if none has this name."""
    app = typer.Typer(
        name="penstock",
        help="Reliable, massively parallel Kafka consumption for Python, from one process to a Spark cluster.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog="Start with [bold]penstock demo[/]: a real Kafka and a real Spark pipeline in one command.")(
        _root
    )
    wanted = [module for module, commands in _COMMANDS.items() if command in commands]
    for module in wanted or _COMMANDS:
        import_module(f"penstock.cli.commands.{module}").register(app)
    return app


def _imported(named: str) -> typer.Typer:
    """Return the command line, without garbage collections while its modules are imported (``cli/__init__.py``)."""
    gc.disable()
    try:
        return command_line(named)
    finally:
        _freeze()
        gc.enable()


@cache
def _freeze() -> None:
    """Exempt what was imported from later collections: once, because garbage that is frozen is never collected.

    A program that calls ``main`` for several commands would keep the Kafka clients of all of them.
    """
    gc.freeze()


def main() -> NoReturn:
    """Run the command line. An error becomes one line and an exit code."""
    sys.excepthook = _show_bug
    # SIGTERM raises SystemExit, as Ctrl+C raises KeyboardInterrupt, so that commands clean up on their way out.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        command = get_command(_imported(sys.argv[1] if len(sys.argv) > 1 else ""))
        lay_out_help(command, out.width)
        result = command(standalone_mode=False, prog_name="penstock")
    except PenstockError as error:
        _show(error.problem, error.hint, kind=type(error).__name__, raised=error.traceback)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        result = _INTERRUPTED
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _show(
            "The disk is full, so the output was not written.", "Free some space, or write elsewhere.", kind="OSError"
        )
        sys.exit(SetupError.exit_code)
    except Exception as error:
        # Typer raises click's UsageError or, in some versions, its own copy of it, so we recognise it by a method.
        format_message = getattr(error, "format_message", None)
        if format_message is None:
            raise
        context = getattr(error, "ctx", None)
        # Pydantic begins a message that Typer shows with "Value error, ".
        # Empty without a command: then Typer has printed the help.
        if problem := format_message().replace(": Value error, ", ": "):
            path = context.command_path if context else "penstock"
            hint = _handler_option(path, getattr(error, "option_name", "")) or f"See `{path} --help`."
            _show(problem, hint, kind="UsageError")
        sys.exit(getattr(error, "exit_code", 2))
    if result == _INTERRUPTED:  # Typer 0.29 returns 130 for Ctrl+C; other versions raise
        _show("Interrupted.", "", kind="Interrupted")
    sys.exit(result if isinstance(result, int) else 0)


def _handler_option(path: str, unknown: str) -> str:
    """The hint for an option of handlers, such as ``--concurrency``, that was given to ``penstock run`` itself."""
    options = import_module("penstock.app.options").HANDLER_OPTIONS if path == "penstock run" else ()
    nearest = get_close_matches(unknown.lstrip("-").replace("-", "_"), options, n=1, cutoff=0.8)
    if not nearest:
        return ""
    name = nearest[0]
    return f"{name!r} is an option of handlers: --set {name}=VALUE, or for one handler --set HANDLER.{name}=VALUE."


def _show_bug(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback of a bug in Penstock. Its message may contain foreign text, so it is escaped."""
    err.print(block("".join(traceback.format_exception(kind, error, trace))), soft_wrap=True)


def _show(problem: str, hint: str, *, kind: str, raised: str = "") -> None:
    if wants_json(sys.argv):
        log_error(problem, hint, kind=kind, traceback=raised)
        if "--json" not in sys.argv:
            return
    if "--json" in sys.argv:
        shown = {"type": kind, "problem": problem, "hint": hint}
        print_json({"error": {**shown, "traceback": raised} if raised else shown}, indent=None)
        return
    first, *more = problem.split("\n")
    err.print("error:", style="bold red", end=" ")
    err.print(first, soft_wrap=True)
    if more:
        err.print(block("\n".join(more), indent="  "), soft_wrap=True)
    if hint:
        err.print(hint, soft_wrap=True)
