"""Follows a page in an empty folder, one command after the other."""

import json
import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from docs_check.command_server import OWN_PROCESS
from docs_check.empty_kafka import empty
from docs_check.environment import Environment, page_id
from docs_check.pages import Command, File, steps_of

# The limit for one command, for a very slow and busy machine.
_PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 0.05
# Commands without an end, and what they print when they have started.
_READY = {"run": re.compile(r"consuming .* as group "), "ui": re.compile("Dashboard: ")}
_ENDLESS = re.compile(r"\bpenstock (run|ui)\b")
_DURATION = re.compile(r"\b(?:\d+[hm] )?\d+(?:ms|s|m|h)\b")
_ENDS = ("--until-caught-up", "--for", "--print-config", "--from", "--help", " &")


class PageError(AssertionError):
    """A page does not work as printed."""


@dataclass(frozen=True)
class Done:
    code: int
    output: str


class Reader:
    def __init__(self, page: str, folder: Path, environment: Environment) -> None:
        self._page = page
        self.environment = environment
        self.folder = folder / "empty"
        self.folder.mkdir(parents=True)
        self._said = folder / "said"
        self._after = folder / "variables"
        self._in_background: list[int] = []
        hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_")
        self._variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", *hidden))},
            **environment.variables,
            "PATH": f"{environment.scripts}{os.pathsep}{os.environ['PATH']}",
            "PENSTOCK_HOME": str(folder / "home"),
            "COLUMNS": "200",
            "BROWSER": "true",  # the command that opens a page
        }
        self._first_variables = dict(self._variables)

    def begin(self, folder: str) -> None:
        """Go on in another empty folder, with only the wheel, and on an empty Kafka, if one is running."""
        self._end_background()
        self.environment.renew()
        self.folder = self.folder.with_name(folder)
        self.folder.mkdir()
        self._variables = dict(self._first_variables)
        status = self._run("penstock status --json")
        if status.code == 0:
            empty(json.loads(status.output)["bootstrap"])

    def follow(self, page: Path) -> None:
        self._page = page_id(page)
        for step in steps_of(page):
            match step:
                case File(name, text):
                    self.save(name, text)
                case Command():
                    self.type(step)

    def save(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def type(self, command: Command) -> Done:
        """Run the command to its end, or up to Ctrl+C if it has none. Raises if the output differs from the page."""
        done = self._run(command.text)
        if done.code != 0:
            raise self._wrong(command, f"ended with {done.code}", done)
        missing = [line for line in command.prints if not _is_printed(line, done.output)]
        if missing:
            raise self._wrong(command, f"did not print {missing[0]!r}", done)
        return done

    def leave(self) -> None:
        """End everything that the page has left running."""
        self._end_background()
        self._run("penstock down --wipe")

    def _end_background(self) -> None:
        """Kill what is left of the groups. Another program may have got the number of a group that has ended."""
        for process in psutil.process_iter():
            with suppress(psutil.Error, ProcessLookupError):
                ours = process.environ().get("PENSTOCK_HOME") == self._first_variables["PENSTOCK_HOME"]
                if ours and os.getpgid(process.pid) in self._in_background:
                    process.kill()
        self._in_background.clear()

    def _run(self, text: str) -> Done:
        # The next command gets the variables that this one exports.
        script = f'{text}\ncode=$?; env -0 > "{self._after}"; exit $code'
        with self._said.open("w+b") as said:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env={**self._variables, **({OWN_PROCESS: "1"} if "$!" in text else {})},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            if " & " in f"{text} ":
                self._in_background.append(process.pid)
            try:
                code = self._wait(process, ready=_ready_line(text))
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        if self._after.exists():
            pairs = self._after.read_bytes().decode().split("\0")
            self._variables = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
            self._variables.pop(OWN_PROCESS, None)
            self._after.unlink()
        return Done(code, self._output())

    def _wait(self, process: "subprocess.Popen[bytes]", *, ready: re.Pattern[str] | None) -> int:
        """Wait for its end. A command that goes on is interrupted when it has printed that it is ready."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if ready and ready.search(self._output()):
                ready = None
                os.killpg(process.pid, signal.SIGINT)
            time.sleep(_LOOK_SECONDS)
        return -1 if process.returncode is None else process.returncode

    def _output(self) -> str:
        return self._said.read_text("utf-8", errors="replace")

    def _wrong(self, command: Command, what: str, done: Done) -> PageError:
        return PageError(f"{self._page}, line {command.line}: `{command.text}` {what}:\n{done.output[-4_000:]}")


def _ready_line(text: str) -> re.Pattern[str] | None:
    """What the command prints when it has started; nothing for a command that ends."""
    found = _ENDLESS.search(text)
    return _READY[found[1]] if found and not any(each in text for each in _ENDS) else None


def _is_printed(line: str, output: str) -> bool:
    """Whether the output contains the line. Numbers, durations and spaces may differ; ``...`` matches anything."""
    if line.strip() in ("...", "…"):
        return True
    pattern = r"\s+".join(map(_shape, _DURATION.sub("1s", line).split()))
    return re.search(pattern, _DURATION.sub("1s", output)) is not None


def _shape(word: str) -> str:
    parts = re.split(r"(\d[\d,.:]*|\.\.\.|…)", word)
    return "".join(
        r"[\d,.:]+" if re.match(r"\d", part) else r"\S*" if part in ("...", "…") else re.escape(part) for part in parts
    )
