"""Commands to the runs on this machine, as ``penstock pause``, the dashboard and ``penstock top`` send them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.ops.run_socket import ask_run
from penstock.ops.runs import RegisteredRun, alive

_INTEGER = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class CommandedRun:
    """A run, and how its handlers stand after the command; or why it refused the command."""

    run: RegisteredRun
    handlers: Sequence[Mapping[str, Any]] = ()
    refused: PenstockError | None = None


def command_runs(name: str, request: Mapping[str, Any]) -> list[CommandedRun]:
    """Send the command to the runs of an app, a group or a process. Raises the first refusal if all of them refuse.

    If it names partitions, the runs that do not own them are left out.
    """
    runs = runs_called(name)
    answers = [_commanded(run, request) for run in runs]
    done = [each for each in answers if each.refused is None]
    if not done:
        raise next(each.refused for each in answers if each.refused is not None)
    return done if request.get("partitions") else answers


def runs_called(name: str) -> list[RegisteredRun]:
    """Return the runs of an app, a group or a process on this machine. Raises if there is none."""
    runs = alive(name)
    if not runs:
        names = sorted({run.app for run in alive()})
        hint = (
            f"These apps are running: {', '.join(names)}." if names else "`penstock run` runs no app on this machine."
        )
        raise StateError(f"No running app, group or process is called {name!r}.", hint=hint)
    return runs


def _commanded(run: RegisteredRun, request: Mapping[str, Any]) -> CommandedRun:
    try:
        return CommandedRun(run, ask_run(run, request)["handlers"])
    except PenstockError as error:
        return CommandedRun(run, refused=error)


def read_partition(text: str) -> TopicPartition:
    """Return the partition that ``orders:3`` names."""
    topic, _, number = text.rpartition(":")
    if not topic or not (number.isascii() and number.isdecimal()):
        raise ConfigError(f"{text!r} is not a partition.", hint="Write TOPIC:PARTITION, such as orders:3.")
    return topic, int(number)


def read_changes(given: Sequence[str]) -> dict[str, int | str]:
    """Return the options that texts such as ``concurrency=8`` name."""
    changes: dict[str, int | str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ConfigError(f"{each!r} is not NAME=VALUE.", hint="Write what to set, such as concurrency=8.")
        text = value.strip()
        changes[name.strip()] = int(text) if _INTEGER.fullmatch(text) else text
    return changes
