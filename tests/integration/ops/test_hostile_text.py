"""Foreign text cannot harm a terminal: every command, with hostile groups, clients, records and errors."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer
from confluent_kafka import Consumer, Producer

from hostile_text import HOSTILE, SHOWN, SHOWN_IN_JSON, Terminal, assert_harmless
from kafka_helpers import wait_for
from penstock.cli.entry_point import command_line, main
from penstock.core.reports.record_counts import Counts
from penstock.demo.demo_report import DemoReport
from penstock.devkit import ClusterStatus
from penstock.kafka import Cluster
from penstock.ops.runs import registered

_APP = """
from penstock import App, Reject

app = App({group!r}, brokers={brokers!r})

@app.consume({topic!r}, dead_letter={dlq!r})
def refuse(value: bytes) -> None:
    raise Reject({reason!r})
"""


@dataclass(frozen=True)
class Scene:
    """A topic of hostile records and their dead letters; a group with a hostile member, and one without members."""

    brokers: str
    topic: str
    dlq: str
    live: str
    idle: str
    folder: Path
    patch: pytest.MonkeyPatch

    def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command; returns its exit code and everything that the terminal got."""
        terminal = Terminal()
        with self.patch.context() as patch:
            patch.setattr("sys.argv", ["penstock", *arguments])
            patch.setattr("sys.stdout", terminal)
            patch.setattr("sys.stderr", terminal)
            patch.setenv("COLUMNS", "400")
            with pytest.raises(SystemExit) as ended:
                main()
        return int(str(ended.value.code)), terminal.getvalue()


@pytest.fixture(scope="module")
def scene(brokers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    name, folder = f"hostile-{uuid4().hex[:8]}", tmp_path_factory.mktemp("hostile")
    with pytest.MonkeyPatch.context() as patch:
        made = Scene(brokers, name, f"{name}.dlq", f"live {name} {HOSTILE}", f"idle {name} {HOSTILE}", folder, patch)
        patch.setenv("PENSTOCK_BROKERS", brokers)
        patch.setenv("PENSTOCK_HOME", str(folder / "home"))
        patch.syspath_prepend(folder)
        Cluster(brokers).create_topics([name, made.dlq], partitions=1)
        producer = Producer({"bootstrap.servers": brokers})
        for value in (HOSTILE, json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False), "[" + HOSTILE):
            producer.produce(name, value.encode(), key=HOSTILE.encode(), headers=[(HOSTILE, HOSTILE.encode())])
        assert producer.flush(60) == 0
        module = _APP.format(group=made.idle, brokers=brokers, topic=name, dlq=made.dlq, reason=HOSTILE)
        (folder / "hostile_app.py").write_text(module, "utf-8")
        member = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": made.live,
                "client.id": HOSTILE,
                "auto.offset.reset": "earliest",
                "max.poll.interval.ms": 3_600_000,  # it stays, without another poll
                "log_level": 0,
            }
        )
        member.subscribe([name])
        wait_for(lambda: member.poll(0.1) is not None, "the member has its partition and a record")
        member.commit(asynchronous=False)
        try:
            yield made
        finally:
            member.close()
            for group in (made.live, made.idle):
                Cluster(brokers).delete_group(group)  # other tests list all groups, and read the columns


def _run(scene: Scene) -> Iterator[tuple[str, ...]]:
    yield "run", "hostile_app:app", "--until-caught-up"
    yield "run", "hostile_app:app", "--print-config"
    yield "run", HOSTILE


def _import(scene: Scene) -> Iterator[tuple[str, ...]]:
    file = scene.folder / "offsets.csv"
    file.write_text(f"{scene.topic},0,{HOSTILE}", "utf-8", newline="")
    yield "offsets", "import", scene.idle, str(file)
    file.write_text(f"{scene.topic},0,1\n", "utf-8")
    yield "offsets", "import", scene.idle, str(file), "--execute", "--yes"


def _produce(scene: Scene) -> Iterator[tuple[str, ...]]:
    file = scene.folder / "records.jsonl"
    file.write_text(json.dumps({"key": 1, HOSTILE: HOSTILE}) + "\n", "utf-8")
    yield "produce", scene.topic, str(file), "--json-lines"
    yield "produce", HOSTILE, str(file)


def _stop(scene: Scene) -> Iterator[tuple[str, ...]]:
    with registered(HOSTILE, engine="local", groups=[HOSTILE], warn=lambda _line: None):
        yield ("stop",)
        yield "stop", HOSTILE + "?"


def _live(scene: Scene, command: str, *more: str) -> Iterator[tuple[str, ...]]:
    with registered(HOSTILE, engine="local", groups=[HOSTILE], warn=lambda _line: None):
        yield command, HOSTILE, *more
        yield command, HOSTILE, *more, "--json"
        yield command, HOSTILE + "?", *more
        yield command, HOSTILE, HOSTILE, *more


def _servers(scene: Scene, *arguments: str) -> Iterator[tuple[str, ...]]:
    """The names of servers and folders for the commands."""
    status = ClusterStatus(
        home=HOSTILE, bootstrap=HOSTILE, cluster_id=HOSTILE, data=HOSTILE, logs=HOSTILE, notes=(HOSTILE,)
    )

    class Fake:
        def up(self, _options: object, progress: Callable[[str], None]) -> ClusterStatus:
            progress(HOSTILE)
            return status

        def status(self) -> ClusterStatus:
            return status

        def down(self, *, progress: Callable[[str], None], **_: bool) -> Any:
            progress(HOSTILE)
            return type("Stopped", (), {"roles": [HOSTILE], "wiped": HOSTILE})()

    scene.patch.setattr("penstock.cli.commands.up.Embedded", Fake)
    yield arguments
    yield *arguments, "--json"


def _demo(scene: Scene) -> Iterator[tuple[str, ...]]:
    report = DemoReport(HOSTILE, HOSTILE, Counts(), (), HOSTILE, (HOSTILE,))
    scene.patch.setattr("penstock.cli.commands.demo.run_demo", lambda *_: replace(report, problems=()))
    yield "demo", "--keep"
    scene.patch.setattr("penstock.cli.commands.demo.run_demo", lambda *_: report)
    yield ("demo",)
    yield "demo", "--json"


def _calls(*calls: Callable[[Scene], tuple[str, ...]]) -> Callable[[Scene], Iterator[tuple[str, ...]]]:
    return lambda scene: (call(scene) for call in calls)


# The arguments of each command. A new command needs a line here that lets it show hostile text.
PROOFS: dict[str, Callable[[Scene], Iterator[tuple[str, ...]]]] = {
    "run": _run,  # first, because other commands show the files that it writes
    "debug": _calls(
        lambda it: ("debug", "hostile_app:app", "--at", f"{it.topic}:0@0"),
        lambda it: ("debug", "hostile_app:app", "--at", f"{it.topic}:0@0", "--json"),
        lambda it: ("debug", "hostile_app:app", "--at", HOSTILE),
        lambda it: ("debug", "hostile_app:app", "--at", f"{it.topic}:0@0", "--handler", HOSTILE),
    ),
    "tail": _calls(
        lambda it: ("tail", it.topic, "--from-beginning"),
        lambda it: ("tail", it.topic, "--from-beginning", "--json"),
        lambda it: ("tail", it.topic, "--from-beginning", "--where", "value[0] > 1"),
        lambda it: ("tail", HOSTILE),
        lambda it: ("tail", it.topic, "--where", HOSTILE),
    ),
    "produce": _produce,
    "lag": _calls(
        lambda it: ("lag", it.live, it.idle, "--partitions"),
        lambda it: ("lag", it.live, "--watch", "--times", "1"),
        lambda it: ("lag", it.live, "--json"),
        lambda it: ("lag", HOSTILE),
    ),
    "plan": _calls(
        lambda it: ("plan", it.live, "--members", "+1"),
        lambda it: ("plan", it.live, "--json"),
        lambda it: ("plan", it.live, "--members", f"-{HOSTILE}"),
        lambda it: ("plan", HOSTILE),
    ),
    "ship": _calls(lambda it: ("ship", HOSTILE), lambda it: ("ship", "hostile_app:app", "-o", HOSTILE)),
    "stop": _stop,
    "pause": lambda scene: _live(scene, "pause", "--handler", HOSTILE, "--partition", f"{HOSTILE}:1"),
    "resume": lambda scene: _live(scene, "resume", "--partition", HOSTILE),
    "set": lambda scene: _live(scene, "set", f"{HOSTILE}={HOSTILE}"),
    "up": lambda scene: _servers(scene, "up"),
    "status": lambda scene: _servers(scene, "status"),
    "down": lambda scene: _servers(scene, "down", "--wipe"),
    "demo": _demo,
    "learn": _calls(lambda _: ("learn", HOSTILE), lambda _: ("learn", HOSTILE, "--all")),
    "top": _calls(lambda _: ("top", "--once"), lambda _: ("top", "--json"), lambda _: ("top", "--apps", "--once")),
    "ui": _calls(lambda _: ("ui", "--app", HOSTILE), lambda _: ("ui", "--host", HOSTILE)),
    "groups ls": _calls(lambda it: ("groups", "ls"), lambda it: ("groups", "ls", "--json")),
    "groups describe": _calls(
        lambda it: ("groups", "describe", it.live, it.idle),
        lambda it: ("groups", "describe", it.live, "--members"),
        lambda it: ("groups", "describe", it.live, "--members", "--json"),
        lambda it: ("groups", "describe", it.live, "--state"),
        lambda it: ("groups", "describe", HOSTILE),
    ),
    "groups history": _calls(
        lambda it: ("groups", "history", it.idle),
        lambda it: ("groups", "history", it.idle, "--json"),
        lambda it: ("groups", "history", HOSTILE),
    ),
    "offsets export": _calls(
        lambda it: ("offsets", "export", it.idle), lambda it: ("offsets", "export", it.idle, "--json")
    ),
    "offsets reset": _calls(
        lambda it: ("offsets", "reset", it.idle, "--topic", it.topic, "--to-earliest", "--execute", "--yes"),
        lambda it: ("offsets", "reset", it.live, "--topic", HOSTILE, "--to-earliest"),
        lambda it: ("offsets", "reset", it.idle, "--all-topics", "--to-datetime", HOSTILE),
    ),
    "offsets undo": _calls(lambda it: ("offsets", "undo", it.idle), lambda it: ("offsets", "undo", HOSTILE)),
    "offsets import": _import,
    "dlq ls": _calls(
        lambda it: ("dlq", "ls", it.dlq),
        lambda it: ("dlq", "ls", it.dlq, "--json"),
        lambda it: ("dlq", "ls", it.dlq, "--by", "group"),
    ),
    "dlq show": _calls(
        lambda it: ("dlq", "show", it.dlq),
        lambda it: ("dlq", "show", it.dlq, "--json"),
        lambda it: ("dlq", "show", it.dlq, "--at", HOSTILE),
    ),
    "dlq replay": _calls(
        lambda it: ("dlq", "replay", it.dlq),
        lambda it: ("dlq", "replay", it.dlq, "--to", HOSTILE, "--execute", "--yes"),
    ),
    "topics ls": _calls(lambda it: ("topics", "ls"), lambda it: ("topics", "ls", HOSTILE, "--set", HOSTILE)),
    "topics describe": _calls(lambda it: ("topics", "describe", HOSTILE)),
    "topics create": _calls(lambda it: ("topics", "create", HOSTILE)),
    "topics grow": _calls(lambda it: ("topics", "grow", HOSTILE, "--partitions", "9", "--yes")),
    "topics keys": _calls(
        lambda it: ("topics", "keys", it.topic),
        lambda it: ("topics", "keys", it.topic, "--json"),
        lambda it: ("topics", "keys", HOSTILE),
    ),
    "groups rm": _calls(
        lambda it: ("groups", "rm", it.live, "--yes"),
        lambda it: ("groups", "rm", it.idle, "--yes"),
        lambda it: ("groups", "rm", HOSTILE, "--yes"),
    ),
}


def _commands(of: Any, path: str = "") -> Iterator[str]:
    for name, each in getattr(of, "commands", {}).items():
        full = f"{path} {name}".strip()
        yield from _commands(each, full) if hasattr(each, "commands") else [full]


def test_every_command_has_a_proof() -> None:
    assert set(PROOFS) == set(_commands(typer.main.get_command(command_line())))


@pytest.mark.parametrize("command", PROOFS)
def test_a_terminal_gets_nothing_that_it_would_obey(command: str, scene: Scene) -> None:
    shown = ""
    for arguments in PROOFS[command](scene):
        code, text = scene.run(*arguments)
        assert text, f"{arguments}: nothing was said, exit code {code}"
        assert_harmless(text, arguments)
        shown += re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert SHOWN in shown or SHOWN_IN_JSON in shown, f"{command} shows no hostile text at all: {shown}"


def test_logs_and_events_are_json_that_is_harmless_and_means_what_was_written(scene: Scene, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    group = f"json-{uuid4().hex[:8]}"
    flags = ("--until-caught-up", "--log", "json", "--events", str(events), "--set", f"refuse.group={group}")
    code, text = scene.run("run", "hostile_app:app", *flags)
    assert code == 0, text
    assert_harmless(text)
    assert_harmless(events.read_text("utf-8"))
    for lines in (text, events.read_text("utf-8")):
        reasons = [each.get("reason", "") for each in map(json.loads, lines.splitlines())]
        assert any(HOSTILE in reason for reason in reasons)
