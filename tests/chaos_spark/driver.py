"""The driver of a run: one `penstock run` on the cluster. It signals only processes that it started, by their ids."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil

_TESTS = Path(__file__).parents[1]
_END_SECONDS = 240.0


class Driver:
    """A `penstock run` until it is stopped or killed; ``folder`` is its home."""

    def __init__(self, name: str, folder: Path, *, master: str, brokers: str, variables: Mapping[str, str]) -> None:
        self._errors, self._events = folder / f"{name}.err", folder / f"{name}.events.jsonl"
        conf = {
            "spark.executor.memory": "512m",
            **{f"spark.executorEnv.{key}": each for key, each in variables.items()},
        }
        path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "penstock", "run", "chaos_spark.app:app", "--engine", "spark"),
                    *("--master", master, "--events", self._events),
                    *(part for key, value in conf.items() for part in ("--spark-conf", f"{key}={value}")),
                ],
                cwd=folder,
                env={
                    **os.environ,
                    **variables,
                    "PYTHONPATH": path,
                    "PENSTOCK_BROKERS": brokers,
                    "PENSTOCK_HOME": str(folder / "home"),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def kill(self) -> None:
        """Kill Python and its JVM with SIGKILL, as if their machine had failed."""
        family = [psutil.Process(self._process.pid)]
        family += family[0].children(recursive=True)
        for process in family:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._process.wait()

    def stop(self) -> int:
        """Stop it cleanly; returns its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(_END_SECONDS)

    def require_alive(self) -> None:
        if self._process.poll() is not None:
            raise RuntimeError(f"the driver ended with {self._process.returncode}: {self.said()}")

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()

    def said(self) -> str:
        """The last lines of its output, and its last event."""
        words = self._errors.read_text(errors="replace")[-1500:]
        events = self._events.read_text(errors="replace").splitlines() if self._events.exists() else []
        return f"{words}{events[-1] if events else 'no event'}"
