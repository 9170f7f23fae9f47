import signal
from pathlib import Path

import pytest

from penstock.devkit.crash_reasons import death, find_cause, tail


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("org.apache.kafka.common.KafkaException: Socket server failed to bind: Address already in use.", "port"),
        ("java.net.BindException: Address already in use", "port"),
        ("java.io.IOException: No space left on device", "disk is full"),
        ("java.lang.OutOfMemoryError: Java heap space", "memory"),
        ("Error occurred during initialization of VM\nCould not reserve enough space for object heap", "memory"),
        ("KafkaException: Failed to acquire lock on file .lock in /data/node-1.", "same data folder"),
        (
            "RuntimeException: Invalid cluster.id in: /data/meta.properties. Expected a, but read b does not match",
            "data",
        ),
        ("InconsistentClusterIdException: The Cluster ID a doesn't match stored", "another cluster"),
        ("RuntimeException: No readable meta.properties files found.", "damaged"),
        ("java.nio.file.AccessDeniedException: /data/node-1/x", "no permission to write"),
    ],
)
def test_common_causes_are_recognised(line: str, what: str) -> None:
    cause = find_cause(f"INFO starting\n{line}\nINFO shut down")
    assert cause is not None
    assert what in cause.what
    assert cause.advice


def test_an_ordinary_log_names_no_cause() -> None:
    assert find_cause("INFO [BrokerServer id=1] Transition from STARTING to STARTED") is None


def test_a_death_shows_the_cause_the_advice_and_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "broker-1.log"
    log.write_text("INFO hello\nERROR java.io.IOException: No space left on device\n\tat kafka.Log.append(Log.java)\n")
    error = death("broker-1", 1, [log, tmp_path / "missing.out"])
    assert error.problem == "broker-1 ended during its start: the disk is full."
    assert "--data DIR" in error.hint
    assert "ERROR java.io.IOException" in error.hint
    assert "at kafka.Log" not in error.hint


def test_a_server_killed_from_outside_says_so(tmp_path: Path) -> None:
    assert "killed from outside" in death("broker-1", -signal.SIGKILL, [tmp_path / "x"]).problem


def test_the_tail_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number}\n" for number in range(100_000)))
    lines = tail(log).splitlines()
    assert len(lines) == 12
    assert lines[-1] == "  line 99999"
