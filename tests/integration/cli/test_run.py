"""`penstock run` as users run it: as a process, with signals, files and exit codes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_helpers import WAIT_SECONDS, MakeTopic, committed, lag, produce, read_values, wait_for
from penstock.kafka import Cluster

pytestmark = pytest.mark.long

SHOP = """
import os, time
from penstock import App, Reject

app = App("{group}")

@app.consume("{source}", to="{group}.out", dead_letter="{group}.dlq", commit_every="200ms",
             settings={{"session.timeout.ms": 6000}})
def double(value: int) -> int:
    time.sleep({pause})
    if value < 0:
        raise Reject("negative")
    return value * 2
"""

NEW_PROTOCOL = """
from penstock import App

app = App("{group}")

@app.consume("{source}", protocol="consumer")
def note(value: int) -> None:
    pass
"""

ASKING = """
from penstock import App, Record

app = App("{group}")

@app.consume("{source}", to="{group}.out")
def tell(value: int) -> list[int | None]:
    (progress,) = [each for each in app.progress() if each.handler == "tell" and each.partition == 0]
    return [progress.position, progress.end, progress.in_flight]

@app.consume("{source}", group="{group}-hand", commit="manual", commit_every="1h")
def finish(value: int, record: Record) -> None:
    app.commit({{(record.topic, record.partition): record.offset}})
"""


class Command:
    """A `penstock` process in a folder with a shop."""

    def __init__(self, folder: Path, brokers: str, *arguments: str) -> None:
        self.events_file = folder / "events.jsonl"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *arguments],
            cwd=folder,
            env={**os.environ, "PENSTOCK_BROKERS": brokers},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, timeout: float = WAIT_SECONDS) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err

    def events(self, kind: str) -> list[dict[str, Any]]:
        if not self.events_file.exists():
            return []
        lines = self.events_file.read_text().splitlines(keepends=True)
        # The process may still write the last line, or may have been killed while it wrote it.
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in found if event["event"] == kind]


class Shop:
    def __init__(self, folder: Path, brokers: str, group: str, source: str) -> None:
        self.folder, self.brokers, self.group, self.source = folder, brokers, group, source

    def write(self, *, pause: float = 0) -> None:
        (self.folder / "shop.py").write_text(SHOP.format(group=self.group, source=self.source, pause=pause))

    def run(self, *arguments: str) -> Command:
        return Command(self.folder, self.brokers, "run", "shop:app", "--events", "events.jsonl", *arguments)

    def outputs(self) -> list[int]:
        return [int(value or 0) for value in read_values(self.brokers, f"{self.group}.out")]


@pytest.fixture
def shop(tmp_path: Path, brokers: str, group: str, make_topic: MakeTopic) -> Shop:
    return Shop(tmp_path, brokers, group, make_topic(2))


def test_until_caught_up_handles_what_is_there_and_exits_with_0(shop: Shop, cluster: Cluster) -> None:
    shop.write()
    produce(shop.brokers, shop.source, [1, 2, -3, "x", 5])
    code, out, err = shop.run("--until-caught-up").finish()
    assert code == 0, err
    assert out == ""
    assert "stopped: 5 read, 3 written, 2 dead-lettered, 0 skipped" in err
    assert "dead letter to" in err
    assert sorted(shop.outputs()) == [2, 4, 10]
    assert lag(cluster, shop.group, shop.source) == 0


def test_handlers_ask_the_app_of_their_own_module(shop: Shop, cluster: Cluster) -> None:
    """Also if the module is in a package, and options do not come from the code."""
    package = shop.folder / "warehouse"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "shipping.py").write_text(ASKING.format(group=shop.group, source=shop.source))
    produce(shop.brokers, shop.source, [1, 2, 3])
    command = Command(
        shop.folder, shop.brokers, "run", "warehouse.shipping:app", "--for", "1h", "--set", "tell.max_in_flight=3"
    )
    by_hand = f"{shop.group}-hand"
    wait_for(
        lambda: (
            command.process.poll() is not None
            or (lag(cluster, shop.group, shop.source) == 0 and committed(cluster, by_hand, shop.source).get(0) == 2)
        ),
        "everything handled, and a commit by hand",
    )
    command.process.send_signal(signal.SIGTERM)
    code, _, err = command.finish()
    assert code == 0, err
    outputs = [json.loads(value or "") for value in read_values(shop.brokers, f"{shop.group}.out")]
    assert len(outputs) == 3
    assert all(end == 3 and 1 <= in_flight <= 3 for _, end, in_flight in outputs)


def test_for_a_while_means_a_clean_stop_after_it(shop: Shop, cluster: Cluster) -> None:
    shop.write(pause=0.02)
    produce(shop.brokers, shop.source, range(20_000))
    command = shop.run("--for", "4s")
    code, _, err = command.finish()
    assert code == 0, err
    handled = len(command.events("finished"))
    assert handled < 20_000
    assert lag(cluster, shop.group, shop.source) == 20_000 - handled


def test_json_goes_to_standard_output_and_events_to_their_file(shop: Shop) -> None:
    shop.write()
    produce(shop.brokers, shop.source, [1, -2])
    command = shop.run("--until-caught-up", "--json")
    code, out, err = command.finish()
    assert (code, err) == (0, "")
    (stopped,) = json.loads(out)["stopped"]
    assert (stopped["read"], stopped["written"], stopped["dead_lettered"]) == (2, 1, 1)
    (letter,) = command.events("dead_lettered")
    assert (letter["topic"], letter["offset"], letter["reason"]) == (shop.source, 1, "Reject: negative")
    assert [event["offset"] for event in command.events("finished")] == [0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_drains_commits_and_leaves_so_that_the_next_start_repeats_nothing(
    shop: Shop, cluster: Cluster, number: signal.Signals
) -> None:
    shop.write(pause=0.002)
    produce(shop.brokers, shop.source, range(1_000))
    command = shop.run()
    wait_for(lambda: len(command.events("finished")) > 50, "some work")
    # A terminal sends the signal to the whole process group.
    os.killpg(command.process.pid, number)
    code, _, err = command.finish()
    assert code == 0, err
    assert "Stopping cleanly" in err
    handled = len(command.events("finished"))
    assert 50 < handled < 1_000
    assert lag(cluster, shop.group, shop.source) == 1_000 - handled
    assert shop.run("--until-caught-up").finish()[0] == 0
    assert sorted(shop.outputs()) == [2 * n for n in range(1_000)]


def test_a_second_signal_stops_at_once(shop: Shop) -> None:
    shop.write(pause=600)
    produce(shop.brokers, shop.source, [1])
    command = shop.run()
    wait_for(lambda: command.events("assigned"), "an assignment")
    command.process.send_signal(signal.SIGTERM)
    wait_for(lambda: command.events("stopping"), "the clean stop to begin")
    command.process.send_signal(signal.SIGTERM)
    assert command.finish(timeout=WAIT_SECONDS)[0] == 128 + signal.SIGTERM


def test_after_kill_9_nothing_is_lost_and_only_the_uncommitted_is_repeated(shop: Shop, cluster: Cluster) -> None:
    shop.write(pause=0.002)
    produce(shop.brokers, shop.source, range(1_000))
    command = shop.run()
    wait_for(lambda: len(command.events("committed")) > 2, "some commits")
    command.process.kill()
    command.finish()
    committed = max(event["offset"] for event in command.events("committed"))
    # The dead member holds its partitions until its session times out.
    assert shop.run("--until-caught-up").finish()[0] == 0
    outputs = shop.outputs()
    assert set(outputs) == {2 * n for n in range(1_000)}
    assert all(output >= 2 * committed for output in outputs if outputs.count(output) > 1)
    assert lag(cluster, shop.group, shop.source) == 0


def test_a_member_that_waits_for_a_killed_one_says_so(shop: Shop) -> None:
    shop.write()
    patient = ("--set", "settings.session.timeout.ms=45000")
    command = shop.run(*patient)
    wait_for(lambda: command.events("assigned"), "an assignment")
    command.process.kill()
    command.finish()
    restarted = shop.run(*patient)
    (first, *_) = wait_for(lambda: restarted.events("joining"), "the reason for the wait")
    restarted.process.kill()
    _, _, err = restarted.finish()
    assert first["reason"].startswith(f"Joining group '{shop.group}': the broker counts 1 other member.")
    assert "(session.timeout.ms, 45 s), at most" in first["reason"]
    assert first["reason"] in err


def test_with_the_new_protocol_a_member_says_that_a_killed_one_still_holds_its_partitions(shop: Shop) -> None:
    (shop.folder / "shop.py").write_text(NEW_PROTOCOL.format(group=shop.group, source=shop.source))
    command = shop.run()
    wait_for(lambda: len(command.events("assigned")) == 2, "both partitions")
    command.process.kill()
    command.finish()
    command.events_file.unlink()  # the next run writes to the same
    restarted = shop.run()
    # After 45 s the broker removes the killed member, and then there is nothing to explain.
    wait_for(lambda: restarted.events("joining") or restarted.events("assigned"), "the reason for the wait, or its end")
    restarted.process.kill()
    _, _, err = restarted.finish()
    (first, *_) = restarted.events("joining")
    held = "1 partition that the broker assigned to this member is still held by 1 other member."
    assert first["reason"].startswith(f"Joining group '{shop.group}': {held}")
    assert "(consumer.session.timeout.ms of the group, 45 s), at most" in first["reason"]
    assert first["reason"] in err


def run(folder: Path, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *arguments],
        cwd=folder,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "problem", "next_step"),
    [
        (["run", "nothing_here:app"], 2, "There is no module 'nothing_here'", "Check the spelling"),
        (["run", "shop:appp"], 2, "nothing called 'appp'", "Did you mean shop:app?"),
        (["run", "bad:app"], 2, "Handler f takes (nothing)", "Write it as f(value)"),
        (["run", "shop:app", "-b", "127.0.0.1:1"], 3, "No Kafka broker answers at 127.0.0.1:1", "penstock up"),
        (["run", "shop:app", "-b", "nonsense:port"], 2, "is not a valid address", "host:port"),
        (["run", "shop:app"], 3, "No brokers are configured, and the embedded Kafka is not running", "penstock up"),
        (
            ["run", "shop:app", "--master", "local[1]"],
            2,
            "--spark-conf and --checkpoint need --engine spark",
            "--engine spark",
        ),
        (["run", "shop:app", "--for", "soon"], 2, "--for='soon' is not a duration", "such as"),
        (["run", "shop:app", "--for", "1s", "--until-caught-up"], 2, "--for cannot be combined with", "Leave out"),
        (["run", "shop:app", "--engine", "flink"], 2, "'flink' is not one of", "penstock run --help"),
        (["run", "shop:app", "-b", "{brokers}"], 4, "does not exist at", "Create it with `penstock topics create"),
        (["run", "shop:app", "-b", "{brokers}", "--events", "no/such/folder"], 2, "cannot be written", "--events"),
        (["run", "set:app", "-b", "{brokers}"], 2, "'fetch.mni.bytes' is not known", "fetch.min.bytes"),
        (["run", "own:app", "-b", "{brokers}"], 2, "'enable.auto.commit' is reserved for Penstock", "commit_every"),
        (["run"], 2, "Missing argument 'MODULE:APP'", "penstock run --help"),
        (["fly"], 2, "No such command 'fly'", "penstock --help"),
    ],
)
def test_bad_input_gets_one_clear_sentence_and_an_exit_code(
    tmp_path: Path, brokers: str, arguments: Sequence[str], code: int, problem: str, next_step: str
) -> None:
    start = "from penstock import App\napp = App('x', settings={settings})\n"
    handler = "@app.consume('no-such-topic-at-all')\ndef f({parameters}) -> None: ...\n"
    for name, settings, parameters in (
        ("shop", "{}", "value"),
        ("bad", "{}", ""),
        ("set", "{'fetch.mni.bytes': 5}", "value"),
        ("own", "{'enable.auto.commit': True}", "value"),
    ):
        text = start.format(settings=settings) + handler.format(parameters=parameters)
        (tmp_path / f"{name}.py").write_text(text)
    filled = [argument.format(brokers=brokers) for argument in arguments]
    got, out, err = run(tmp_path, *filled)
    assert problem in err
    assert next_step in err
    assert (got, out) == (code, "")
    assert "Traceback" not in err
    got, out, _ = run(tmp_path, *filled, "--json")
    assert got == code
    assert problem in json.loads(out)["error"]["problem"]


def test_help_has_examples(tmp_path: Path) -> None:
    for command in ("run", "demo", "up", "down", "status"):
        code, out, _ = run(tmp_path, command, "--help")
        assert code == 0
        assert "Examples" in out
        assert f"penstock {command}" in out
