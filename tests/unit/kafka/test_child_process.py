"""A child process carries out calls; its parent survives its death, and it does not survive its parent's."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from penstock.errors import ConfigError, PenstockError, ServerError, StateError, TopicError
from penstock.kafka.child_process import ChildProcess, Say

_WAIT = 60


class Odd(Exception):  # noqa: N818 - it is made wrongly on purpose
    """It cannot be made again from what it was pickled as."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"odd {one + two}")


class Service:
    """Lives in the child."""

    def __init__(self, name: str, say: Say) -> None:
        self._name = name
        self._say = say

    def greet(self, whom: str) -> str:
        return f"{self._name} greets {whom}"

    def count(self, to: int, *, part: Say) -> str:
        for number in range(to):
            part(number)
        return "counted"

    def tell(self, what: object) -> None:
        self._say(what)

    def fail(self, how: str) -> None:
        raise {"topic": TopicError("no topic", hint="make one"), "odd": Odd(1, 2), "key": KeyError("x")}[how]

    def wait(self, path: str) -> None:
        Path(path).write_text(str(os.getpid()), "utf-8")
        time.sleep(10 * _WAIT)

    def abort(self) -> None:
        os.abort()

    def pid(self) -> int:
        return os.getpid()

    def print(self) -> str:
        sys.stdout.write("to nobody")
        return "printed"


def fails_to_start(_say: Say) -> Service:
    raise ConfigError("no such setting", hint="set it")


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    process = ChildProcess(partial(Service, "child"), name="The child")
    yield process
    process.close()


def test_calls_are_carried_out_elsewhere_and_answered(child: ChildProcess) -> None:
    assert child.pid is None, "nothing was called yet"
    assert child.call("greet", "you") == "child greets you"
    assert child.pid == child.call("pid") != os.getpid()
    assert child.call("print") == "printed"
    parts: list[int] = []
    assert child.call("count", 3, part=parts.append) == "counted"
    assert parts == [0, 1, 2]


def test_several_threads_call_it_at_the_same_time(child: ChildProcess, tmp_path: Path) -> None:
    waiting = threading.Thread(target=pytest.raises, args=(ServerError, child.call, "wait", str(tmp_path / "pid")))
    waiting.start()
    assert child.call("greet", "all") == "child greets all", "although a call waits"
    child.close()
    waiting.join(_WAIT)
    assert not waiting.is_alive()


@pytest.mark.parametrize(
    ("how", "kind", "text"), [("topic", TopicError, "no topic make one"), ("odd", RuntimeError, "Odd: odd 3")]
)
def test_what_it_raises_is_raised_here(child: ChildProcess, how: str, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        child.call("fail", how)
    with pytest.raises(KeyError):
        child.call("fail", "key")
    assert child.call("greet", "you"), "it goes on"


def test_what_it_says_is_heard() -> None:
    heard, said = threading.Event(), []

    def hear(what: object) -> None:
        said.append(what)
        heard.set()

    child = ChildProcess(partial(Service, "child"), name="The child", hear=hear)
    child.call("tell", ("brokers", 1))
    assert heard.wait(_WAIT)
    assert said == [("brokers", 1)]
    child.close()


def test_an_abort_is_an_error_of_the_call_and_the_next_call_starts_another_child(child: ChildProcess) -> None:
    first = child.call("pid")
    with pytest.raises(ServerError, match=r"The child has died \(killed by SIGABRT\)"):
        child.call("abort")
    second = child.call("pid")
    assert second != first
    assert not psutil.pid_exists(first)


def test_a_death_between_two_calls_is_noticed(child: ChildProcess) -> None:
    first = child.call("pid")
    os.kill(first, signal.SIGABRT)
    deadline = time.monotonic() + _WAIT
    while child.pid is not None:
        assert time.monotonic() < deadline, "the death was not noticed"
        time.sleep(0.01)
    assert child.call("pid") != first


def test_a_call_that_takes_too_long_is_an_error_and_ends_with_the_child(child: ChildProcess, tmp_path: Path) -> None:
    with pytest.raises(ServerError, match=r"has not answered within 0\.2 s"):
        child.call("wait", str(tmp_path / "pid"), seconds=0.2)
    pid = child.pid
    child.close()
    assert pid is not None
    assert not psutil.pid_exists(pid)
    with pytest.raises(StateError):
        child.call("greet", "you")


def test_what_cannot_be_pickled_is_an_error_that_says_so() -> None:
    child = ChildProcess(lambda _say: None, name="The child")
    with pytest.raises(ConfigError, match="cannot get its settings"):
        child.call("greet")
    child.close()


def test_why_it_could_not_start_is_the_error_of_the_call() -> None:
    child = ChildProcess(fails_to_start, name="The child")
    with pytest.raises(ConfigError, match="no such setting set it"):
        child.call("greet")
    child.close()


def test_a_module_that_is_not_there_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone.py").write_text("def make(say): ...\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    import gone  # type: ignore[import-not-found]  # noqa: PLC0415

    (tmp_path / "gone.py").unlink()
    child = ChildProcess(gone.make, name="The child")
    with pytest.raises(PenstockError, match="No module named 'gone'"):
        child.call("greet")
    child.close()
    del sys.modules["gone"]


def test_it_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    """A parent that gets kill -9 closes nothing."""
    program = (
        f"import sys; from functools import partial; import {__name__} as tests;"
        "from penstock.kafka.child_process import ChildProcess;"
        "ChildProcess(partial(tests.Service, 'x'), name='x').call('wait', sys.argv[1])"
    )
    found = tmp_path / "pid"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program, str(found)], env=environment) as parent:
        deadline = time.monotonic() + _WAIT
        while not (found.exists() and found.read_text("utf-8")):
            assert time.monotonic() < deadline, "the child did not start"
            assert parent.poll() is None
            time.sleep(0.05)
        child = psutil.Process(int(found.read_text("utf-8")))
        parent.kill()
    child.wait(_WAIT)


def test_settings_are_not_on_the_command_line() -> None:
    child = ChildProcess(partial(Service, "secret-of-the-client"), name="The child")
    pid = child.call("pid")
    assert "secret-of-the-client" not in " ".join(psutil.Process(pid).cmdline())
    assert b"secret-of-the-client" in pickle.dumps(partial(Service, "secret-of-the-client"))
    child.close()
