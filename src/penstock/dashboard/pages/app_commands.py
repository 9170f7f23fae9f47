"""Commands to an app of this machine: pause, resume and set, each previewed and then confirmed."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.app.runs.live_command import SETTABLE
from penstock.core.text.plurals import counted
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.pages.given_parameters import needed_text, text_of
from penstock.dashboard.pages.page_contract import Endpoint
from penstock.errors import ConfigError, PenstockError, StateError
from penstock.ops.live_runs import read_changes, read_partition
from penstock.ops.reported_runs import SeenRun
from penstock.ops.run_socket import ask_run
from penstock.ops.runs import RegisteredRun

# A page is read each second: an app that hangs must not hold it up.
_READ_SECONDS = 2.0


def control_states(seen: SeenRun) -> dict[tuple[str, str], dict[str, Any]]:
    """Return how the handlers stand by group and name; {} for a run elsewhere, or one that does not answer."""
    if not seen.is_here or seen.run.socket is None:
        return {}
    with suppress(PenstockError):
        answer = ask_run(seen.run, {"call": "read"}, patience=_READ_SECONDS)
        return {(each["group"], each["handler"]): each for each in answer["handlers"]}
    return {}


def _preview(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    """Return what the command would do, how the handler stands now, and the command line that does the same."""
    run, request = _run_here(context, given), _request(given)
    state = _state(run, request["handler"])
    return {"does": _what(request, state), "state": _summary(state), "command": _command_line(run, request)}


def _carry_out(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    run, request = _run_here(context, given), _request(given)
    if given.get("state") != _summary(_state(run, request["handler"])):
        raise StateError("The preview is old: the handler stands differently now.", hint="Preview it again.")
    answer = ask_run(run, request)
    context.note(f"Carried out in the browser: {_command_line(run, request)}")
    return answer


def _run_here(context: DashboardContext, given: Mapping[str, Any]) -> RegisteredRun:
    name = needed_text(given, "run")
    # Never one that only reports: what it says of its socket comes from another machine.
    for seen in context.runs(only=name):
        if seen.is_here:
            return seen.run
    raise StateError(f"{name} does not run on this machine.", hint="Command it there, with `penstock pause`.")


def _request(given: Mapping[str, Any]) -> dict[str, Any]:
    action, partition = needed_text(given, "action"), text_of(given, "partition")
    if action not in {"pause", "resume", "set"}:
        raise ConfigError(f"{action!r} is not a command.", hint="There are pause, resume and set.")
    request: dict[str, Any] = {"call": action, "via": "dashboard", "handler": needed_text(given, "handler")}
    if action == "set":
        texts = {name: text_of(given, name).strip() for name in SETTABLE}
        request["changes"] = read_changes([f"{name}={text}" for name, text in texts.items() if text])
        if not request["changes"]:
            raise ConfigError("No option is named.", hint="Write a concurrency or a rate.")
    elif partition:
        request["partitions"] = [read_partition(partition)]
    return request


def _state(run: RegisteredRun, handler: str) -> Mapping[str, Any]:
    for each in ask_run(run, {"call": "read"})["handlers"]:
        if each["handler"] == handler:
            found: Mapping[str, Any] = each
            return found
    raise StateError(f"{run.app} has no handler {handler!r} that takes commands.")


def _summary(state: Mapping[str, Any]) -> list[Any]:
    return [state["paused"], state["paused_partitions"], state["concurrency"], state["rate"]]


def _what(request: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    partitions = ", ".join(f"{topic}[{number}]" for topic, number in request.get("partitions", ()))
    what = partitions or f"{counted(len(state['partitions']), 'partition')} of {request['handler']}"
    if request["call"] == "pause":
        return f"No further record of {what} is handed out. What is in progress finishes and is committed."
    if request["call"] == "resume":
        return f"Records of {what} are handed out again."
    changes = ", ".join(
        f"{name} {value} instead of {'none' if state[name] is None else state[name]}"
        for name, value in request["changes"].items()
    )
    return f"{request['handler']} runs with {changes}, until the app ends."


def _command_line(run: RegisteredRun, request: Mapping[str, Any]) -> str:
    words = ["penstock", request["call"], str(run.pid)]
    words += [f"{name}={value}" for name, value in request.get("changes", {}).items()]
    words += ["--handler", request["handler"]]
    for topic, partition in request.get("partitions", ()):
        words += ["--partition", f"{topic}:{partition}"]
    return shlex.join(words)


COMMANDS = (Endpoint("preview", _preview, posts=True), Endpoint("command", _carry_out, writes=True))
