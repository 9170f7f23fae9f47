"""The runner of these tests, on tiny suites: repeated tests, processes that die, interrupts."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kafka_helpers import wait_for

TESTS = Path(__file__).parents[2]
ONCE = """
from pathlib import Path
import os

def first_time(name):
    try:
        (Path(__file__).parent / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
"""


class Suite:
    """A project whose tests the runner runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tests = folder / "tests" / "integration"
        self._tests.mkdir(parents=True)
        (folder / "pytest.ini").write_text("[pytest]\n")

    def add(self, name: str, text: str) -> None:
        (self._tests / name).write_text(ONCE + text)

    def start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "suite", "--workers", "2", "tests/integration"],
            cwd=self.folder,
            env={
                **os.environ,
                "PYTHONPATH": str(TESTS),
                "TMPDIR": str(self.folder),
                # These tests need no plugins, and plugins take longer to load than the tests to run.
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self) -> tuple[int, str]:
        with self.start() as process:
            output, _ = process.communicate()
        return process.returncode, output


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_a_test_that_fails_and_one_whose_process_dies_pass_alone_and_the_rest_of_the_file_is_run(suite: Suite) -> None:
    suite.add("test_fine.py", "def test_fine(): pass\n")
    suite.add("test_shaky.py", "def test_shaky(): assert not first_time('shaky'), 'too slow'\n")
    suite.add(
        "test_dying.py",
        "def test_before(): assert first_time('before'), 'runs once only'\n"
        "def test_dying():\n    if first_time('dying'): os._exit(1)\n"
        "def test_after(): assert first_time('after'), 'runs once only'\n",
    )
    code, output = suite.run()
    assert code == 0, output
    assert "5 passed, 0 failed, 2 of them flaky, in " in output
    assert output.splitlines()[-1] == "5 passed, 0 failed", output
    assert "FLAKY tests/integration/test_shaky.py::test_shaky: AssertionError: too slow" in output
    assert "FLAKY tests/integration/test_dying.py::test_dying: The process of this test ended with code 1" in output
    assert not list(suite.folder.glob("penstock-tests-*")), "a green run leaves nothing behind"


def test_a_test_that_fails_twice_or_a_file_that_is_not_python_fails_the_run(suite: Suite) -> None:
    suite.add("test_wrong.py", "def test_right(): pass\ndef test_wrong(): assert 1 == 2\n")
    code, output = suite.run()
    assert code == 1, output
    assert output.splitlines()[-1] == "1 passed, 1 failed", output
    assert "FAILED tests/integration/test_wrong.py::test_wrong: assert 1 == 2" in output

    suite.add("test_broken.py", "def test_broken(:\n")
    code, output = suite.run()
    assert code == 1, output
    assert "test_broken.py could not be collected" in output


def test_a_process_with_too_many_open_files_ends_and_another_one_runs_the_rest(suite: Suite) -> None:
    opens = "import os\n\ndef test_it():\n    test_it.files = [os.open(os.devnull, os.O_RDONLY) for _ in range(650)]\n"
    for number in range(8):  # a worker chooses its next file before it runs this one
        suite.add(f"test_{number}.py", opens)
    code, output = suite.run()
    assert code == 0, output
    assert "8 passed, 0 failed" in output
    assert "1-next" in output or "2-next" in output


def test_servers_that_a_dead_process_left_running_are_ended(suite: Suite) -> None:
    suite.add(
        "test_leaving.py",
        "import subprocess, time\n"
        "def test_leaving():\n"
        "    server = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "    if first_time('leaving'):\n"
        "        forked = os.fork()\n"
        "        if not forked:\n"
        "            time.sleep(600)\n"
        "        Path('left').write_text(f'{server.pid} {forked}')\n"
        "        os._exit(1)\n"
        "    server.kill()\n"
        "    server.wait()\n",
    )
    code, output = suite.run()
    assert code == 0, output
    left = [int(each) for each in (suite.folder / "left").read_text().split()]
    assert [each for each in left if psutil.pid_exists(each)] == []


def test_an_interrupt_ends_the_tests_with_their_fixtures(suite: Suite) -> None:
    suite.add(
        "test_long.py",
        "import pytest, time\n"
        "@pytest.fixture\n"
        "def server():\n"
        "    yield\n"
        "    Path('stopped').touch()\n"
        "def test_long(server):\n"
        "    Path('started').touch()\n"
        "    time.sleep(600)\n",
    )
    with suite.start() as process:
        wait_for((suite.folder / "started").exists, "the test's start")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert process.returncode == 130, output
    assert "Interrupted." in output
    assert (suite.folder / "stopped").exists()
