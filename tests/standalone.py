"""A real Spark cluster on this machine: a master and workers as processes, started from the pip package.

They run in a separate folder and without this process's environment. So executors can import only what is installed in
their Python and what was shipped to them.
"""

import json
import os
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from jvms import QUICK_OPTIONS
from penstock.devkit.ports import choose_port
from penstock.jvm.installed_spark import pyspark_jars

_HOST = "127.0.0.1"
_START_SECONDS = 240.0
_END_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_EXECUTOR = "CoarseGrainedExecutorBackend"


class StandaloneCluster:
    """``with StandaloneCluster(folder) as cluster:`` starts it and ends it; ``cluster.master`` is its URL."""

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self._folder = folder
        self._count = workers
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        port = choose_port(())
        self._ui_port = choose_port((), taken={port})
        self.master = f"spark://{_HOST}:{port}"

    def __enter__(self) -> Self:
        port = self.master.rpartition(":")[2]
        address = ("--host", _HOST, "--port", port, "--webui-port", str(self._ui_port))
        try:
            self._master = self._launch("master", "org.apache.spark.deploy.master.Master", *address)
            self._wait(lambda: self._state() is not None, "the master to answer")
            self._workers = [self._launch_worker(number) for number in range(1, self._count + 1)]
            self._wait(self._has_all_workers, "the workers to register")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def executors(self) -> list[psutil.Process]:
        """The executors that run now: each is a child of its worker."""
        found = []
        for child in (child for worker in self._workers for child in _children(worker)):
            # A process that has ended, or is a zombie, has no command line. The others may still be executors.
            with suppress(psutil.NoSuchProcess):
                if any(_EXECUTOR in part for part in child.cmdline()):
                    found.append(child)
        return found

    def close(self) -> None:
        """End the workers, which end their executors, and then the master.

        It signals only processes that it started.
        """
        started = [process for process in (*self._workers, self._master) if process is not None]
        family = [child for process in started for child in _children(process)]
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _, alive = psutil.wait_procs(family, timeout=_END_SECONDS)
        for child in alive:
            child.kill()
        self._master, self._workers = None, []

    def said(self) -> str:
        """The end of each log, to see why the cluster did not start."""
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in self._folder.glob("*.log"))

    def _launch_worker(self, number: int) -> "subprocess.Popen[bytes]":
        work = self._folder / f"worker-{number}"
        address = ("--host", _HOST, "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(work))
        return self._launch(f"worker-{number}", "org.apache.spark.deploy.worker.Worker", *address, self.master)

    def _launch(self, name: str, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        home = pyspark_jars().parent
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [home / "bin" / "spark-class", role, *arguments],
                cwd=folder,
                env=_environment(home, folder),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Ctrl+C in the terminal must reach only the test run, which then stops this process.
                start_new_session=True,
            )

    def _has_all_workers(self) -> bool:
        state = self._state() or {}
        return len([worker for worker in state.get("workers", []) if worker["state"] == "ALIVE"]) == self._count

    def _state(self) -> dict[str, Any] | None:
        """The status that the master reports; None if it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._ui_port}/json/", timeout=5) as answer:
                return dict(json.load(answer))
        except (OSError, ValueError):
            return None

    def _wait(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            ended = [
                process.args for process in (self._master, *self._workers) if process and process.poll() is not None
            ]
            if ended or time.monotonic() > deadline:
                raise TimeoutError(f"still waiting for {what}; ended: {ended}\n{self.said()}")
            time.sleep(_LOOK_SECONDS)


def _environment(home: Path, folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    return {
        **kept,
        "LC_ALL": "C.UTF-8",
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        # Java itself reads this variable. Spark has no variable for the Java options of executors.
        "JDK_JAVA_OPTIONS": QUICK_OPTIONS,
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
    }


def _children(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
