"""The answers to liveness and readiness probes."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

from penstock.cli.runtime.health_server import PATHS, parse_address, serve_health
from penstock.engine import HealthBoard
from penstock.engine.observe.health import Health, InProgress
from penstock.errors import ConfigError, SetupError

FINE = Health(
    handler="ship",
    group="shop",
    member="m-1",
    polled_seconds_ago=0.1,
    finished_seconds_ago=700.0,
    in_flight=3,
    longest=(InProgress("orders", 2, 17, 500.0),),
)


def report(*members: Health) -> dict[str, object]:
    board = HealthBoard()
    for member in members:
        board.add(lambda member=member: member)  # type: ignore[misc]
    return board.report(stuck_after=600)


def test_a_slow_handler_is_no_failure() -> None:
    assert report(FINE)["status"] == "ok"
    assert report()["status"] == "starting"


def test_a_poll_that_is_overdue_is_one_and_so_is_a_record_that_never_ends() -> None:
    late = report(FINE, replace(FINE, polled_seconds_ago=61.0))
    assert (late["status"], late["problems"]) == ("failing", ["ship has not polled for 61 s."])
    stuck = report(replace(FINE, longest=(InProgress("orders", 2, 17, 601.0), InProgress("orders", 1, 5, 10.0))))
    assert (stuck["status"], stuck["problems"]) == ("failing", ["ship has been at orders[2]@17 for 601 s."])


@pytest.fixture
def board() -> HealthBoard:
    return HealthBoard()


@pytest.fixture
def port(board: HealthBoard) -> Iterator[int]:
    with serve_health("0", board, stuck_after=600) as port:
        yield port


def test_a_probe_gets_a_status_and_a_report(board: HealthBoard, port: int) -> None:
    board.add(lambda: FINE)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/live", timeout=10) as answer:
        reported = json.load(answer)
    assert reported["status"] == "ok"
    assert reported["members"][0]["longest"] == [{"topic": "orders", "partition": 2, "offset": 17, "seconds": 500.0}]
    board.add(lambda: replace(FINE, polled_seconds_ago=99.0))
    with pytest.raises(urllib.error.HTTPError, match="503"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/live", timeout=10)


def test_a_port_that_is_taken_is_an_error(board: HealthBoard, port: int) -> None:
    with pytest.raises(SetupError, match="cannot be served"), serve_health(str(port), board, stuck_after=1):
        pass


def test_addresses() -> None:
    assert parse_address("8080") == ("127.0.0.1", 8080)
    assert parse_address("0.0.0.0:8080") == ("0.0.0.0", 8080)
    for wrong in ("x", "host:", "70000", "-1", "é" * 70 + ":80", "a\0b:80"):
        with pytest.raises(ConfigError, match=r"not a port|names no host"):
            parse_address(wrong)


def _asked(port: int, method: str, path: str) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body=b"x" if method == "POST" else None)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("Allow")
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_every_documented_path_answers(path: str, board: HealthBoard, port: int) -> None:
    board.add(lambda: FINE)
    board.set_readiness([lambda: None])
    assert _asked(port, "GET", path)[0] == 200
    assert _asked(port, "GET", f"{path}?verbose=1")[0] == 200
    assert _asked(port, "HEAD", path)[:2] == (200, b"")


@pytest.mark.parametrize("path", ["/nope", "/live/", "/live/../nope", "/%6cive", "/health", "/healthz", "*"])
def test_other_paths_are_not_there(path: str, board: HealthBoard, port: int) -> None:
    board.add(lambda: FINE)
    status, body, _ = _asked(port, "GET", path)
    assert status == 404
    assert json.loads(body)["paths"] == list(PATHS)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"])
def test_other_methods_are_refused(method: str, board: HealthBoard, port: int) -> None:
    board.add(lambda: FINE)
    status, _, allowed = _asked(port, method, "/live")
    assert (status, allowed) == (405, "GET, HEAD")


def test_the_root_lists_the_probes(port: int) -> None:
    status, body, _ = _asked(port, "GET", "/")
    assert status == 200
    assert set(json.loads(body)["paths"]) == {"/live", "/ready"}


def test_the_app_is_ready_when_all_checks_pass(board: HealthBoard, port: int) -> None:
    problems: list[str | None] = ["ship has no assignment yet.", "The database does not answer."]
    answers = [_asked(port, "GET", "/ready")[:2]]
    board.set_readiness([lambda: problems[0], lambda: problems[1]])
    for _ in range(2):
        answers.append(_asked(port, "GET", "/ready")[:2])
        problems[0] = None
    problems[1] = None
    answers.append(_asked(port, "GET", "/ready")[:2])
    assert [(status, json.loads(body)) for status, body in answers] == [
        (503, {"status": "starting", "problems": ["The app is starting."]}),
        (503, {"status": "not ready", "problems": ["ship has no assignment yet.", "The database does not answer."]}),
        (503, {"status": "not ready", "problems": ["The database does not answer."]}),
        (200, {"status": "ready", "problems": []}),
    ]
