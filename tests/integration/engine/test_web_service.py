"""The example of a web service: FastAPI and Penstock in one process, over real HTTP, with a real broker."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_helpers import WAIT_SECONDS, read_values, wait_for
from penstock.core.failures.outcome import ProducerRecord
from penstock.kafka import Cluster
from penstock.ops.produce_records import produce

EXAMPLE = Path(__file__).parents[3] / "examples" / "web"
RECORDS, CUSTOMERS = 10_000, 10


class Service:
    def __init__(self, brokers: str, log: Path) -> None:
        self._log = log
        with log.open("w", encoding="utf-8") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "uvicorn", "service:service", "--port", "0", "--log-level", "info"],
                cwd=EXAMPLE,
                env={**os.environ, "PENSTOCK_BROKERS": brokers},
                stderr=file,
                stdout=file,
            )
        self._url = wait_for(self._find_url, f"the service, which wrote to {log}")

    def _find_url(self) -> str | None:
        text = self._log.read_text("utf-8")
        assert self._process.poll() is None, text
        found = re.search(r"running on (http://[\d.:]+)", text)
        return found[1] if found else None

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}{path}", timeout=WAIT_SECONDS) as answer:
            return json.load(answer)

    def stop(self) -> str:
        """Stop it by uvicorn's signal; returns what it wrote."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(WAIT_SECONDS)
        return self._log.read_text("utf-8")

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(WAIT_SECONDS)


@contextmanager
def started(brokers: str, log: Path) -> Iterator[Service]:
    service = Service(brokers, log)
    try:
        yield service
    finally:
        service.kill()


def orders() -> Iterator[ProducerRecord]:
    for number in range(RECORDS):
        yield ProducerRecord("web-orders", f"c{number % CUSTOMERS}".encode(), b'{"id":%d,"cents":5}' % number, ())


def test_records_are_handled_while_requests_are_answered_and_a_clean_stop_repeats_nothing(
    brokers: str, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create_topics(["web-orders"], partitions=3)
    produce(cluster, orders(), progress=lambda _done: None)
    with started(brokers, tmp_path / "first.log") as service:
        wait_for(lambda: service.get("/progress")["partitions"] == 3, "the partitions")
        wait_for(lambda: service.get("/progress")["lag"] < RECORDS, "some progress")
        assert service.get("/customers/c0")["cents"] > 0
        assert "Application shutdown complete." in service.stop()
    with started(brokers, tmp_path / "second.log") as service:
        wait_for(lambda: service.get("/progress") == {"partitions": 3, "lag": 0}, "the end")
        service.stop()
    receipts = [json.loads(value)["order"] for value in read_values(brokers, "web-receipts") if value]
    assert sorted(receipts) == list(range(RECORDS))


def test_the_service_does_not_start_if_the_app_cannot(brokers: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uvicorn", "service:service", "--port", "0"],
        cwd=EXAMPLE,
        env={**os.environ, "PENSTOCK_BROKERS": "127.0.0.1:1"},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 3
    assert "penstock.errors.ServerError" in done.stderr
    assert "Application startup failed. Exiting." in done.stderr
