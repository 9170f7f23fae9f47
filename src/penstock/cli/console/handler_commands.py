"""Pauses and resumes of one handler, as ``penstock top`` sends them; and how a handler stands, in words."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.text.plurals import counted
from penstock.errors import PenstockError, StateError
from penstock.ops.run_socket import ask_run
from penstock.ops.runs import alive


@dataclass(frozen=True)
class HandlerCommand:
    """What to do with a handler of a process on this machine. ``since`` is when the process began, in whole seconds."""

    action: Literal["pause", "resume"]
    app: str
    pid: int
    since: int
    handler: str


@dataclass(frozen=True)
class CommandAnswer:
    """One line about the last command. It is not ``final`` while the app has not answered."""

    text: str
    is_error: bool = False
    final: bool = True


def carry_out(command: HandlerCommand) -> str:
    """Send the command to the socket of the run, wait for the answer, and return it as a sentence."""
    # Not by name: an app or a group could be called as the process id.
    found = [run for run in alive(str(command.pid)) if (run.pid, round(run.born)) == (command.pid, command.since)]
    if not found:
        raise StateError(f"{command.app} (process {command.pid}) has ended.")
    request = {"call": command.action, "via": "penstock top", "handler": command.handler}
    states = ask_run(found[0], request)["handlers"]
    return "; ".join(f"{each['handler']} of {command.app} {stands(each)}" for each in states)


class CommandSender:
    """Sends one command at a time, on a thread of its own, and keeps the answer. ``changed`` is called on that thread.

    The screen reads ``answer`` whenever it draws, so it never waits for an app.
    """

    def __init__(self, changed: Callable[[], None], *, carry_out: Callable[[HandlerCommand], str] = carry_out) -> None:
        self._changed = changed
        self._carry_out = carry_out
        self.answer: CommandAnswer | None = None

    @property
    def waits(self) -> bool:
        """Whether the last command has no answer yet."""
        return self.answer is not None and not self.answer.final

    def send(self, command: HandlerCommand) -> None:
        """Begin to send it. Without effect while another one has no answer yet."""
        if self.waits:
            return
        doing = {"pause": "Pausing", "resume": "Resuming"}[command.action]
        self.answer = CommandAnswer(f"{doing} {command.handler} of {command.app} …", final=False)
        threading.Thread(target=self._send, args=(command,), name="command", daemon=True).start()

    def refuse(self, reason: str) -> None:
        """Keep this as the answer to a command that cannot be sent."""
        if not self.waits:
            self.answer = CommandAnswer(reason, is_error=True)

    def forget(self) -> None:
        """Forget the answer, once there is one."""
        if not self.waits:
            self.answer = None

    def _send(self, command: HandlerCommand) -> None:
        try:
            self.answer = CommandAnswer(self._carry_out(command))
        except PenstockError as error:
            self.answer = CommandAnswer(str(error), is_error=True)
        except Exception as error:  # noqa: BLE001 - an answer of another version must not leave the screen waiting
            self.answer = CommandAnswer(f"The answer cannot be read: {type(error).__name__}: {error}", is_error=True)
        self._changed()


def stands(state: Mapping[str, Any]) -> str:
    """Return how a handler stands, in words."""
    owned = counted(len(state["partitions"]), "partition")
    if state["paused"]:
        return f"is paused; it keeps {owned}"
    some = f", except {', '.join(state['paused_partitions'])}, paused" if state["paused_partitions"] else ""
    rate = f" and rate {state['rate']}" if state["rate"] else ""
    return f"runs with concurrency {state['concurrency']}{rate} on {owned}{some}"
