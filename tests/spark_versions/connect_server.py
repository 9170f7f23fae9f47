"""A real Spark Connect server as a process of its own, from the jars that PySpark ships."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.devkit.ports import choose_port

_HOST = "127.0.0.1"
_START_SECONDS = 240.0
_END_SECONDS = 60.0
_LOOK_SECONDS = 0.1


class ConnectServer:
    """``with ConnectServer(home, folder) as server:`` starts it and ends it. ``home`` has its bin and jars."""

    def __init__(self, home: Path, folder: Path) -> None:
        self._home = home
        self._folder = folder
        self._port = choose_port(())
        self._log = folder / "connect-server.log"
        self._server: subprocess.Popen[bytes] | None = None
        self.url = f"sc://{_HOST}:{self._port}"

    def __enter__(self) -> Self:
        conf = {
            "spark.connect.grpc.binding.address": _HOST,
            "spark.connect.grpc.binding.port": self._port,
            "spark.ui.enabled": "false",
        }
        # As sbin/start-connect-server.sh, which would make a daemon of it.
        command = [
            *(self._home / "bin" / "spark-submit", "--master", "local[2]"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *(part for name, value in conf.items() for part in ("--conf", f"{name}={value}")),
            "spark-internal",
        ]
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HOME") if name in os.environ}
        with self._log.open("wb") as log:
            self._server = subprocess.Popen(
                list(map(str, command)),
                cwd=self._folder,
                # Without our Python path: its workers can import the app only because it was sent to them.
                env={
                    **kept,
                    "SPARK_HOME": str(self._home),
                    "SPARK_LOCAL_IP": _HOST,
                    "PYSPARK_PYTHON": sys.executable,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            self._wait()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._server is None:
            return
        self._server.terminate()
        try:
            self._server.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection((_HOST, self._port), timeout=1).close()
            except OSError as error:
                ended = self._server is None or self._server.poll() is not None
                if ended or time.monotonic() > deadline:
                    said = self._log.read_text(errors="replace")[-3000:]
                    raise TimeoutError(f"the Spark Connect server does not answer: {said}") from error
                time.sleep(_LOOK_SECONDS)
            else:
                return
