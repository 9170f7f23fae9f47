"""The entry point, the health check and the stop of the image in deploy/docker, as a container runs them."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import yaml

from kafka_helpers import WAIT_SECONDS, lag, produce, read_values, wait_for
from penstock.kafka import Cluster

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_the_command_of_the_image_works_answers_its_health_check_and_stops_cleanly(
    brokers: str, cluster: Cluster, tmp_path: Path
) -> None:
    text = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
    check, command = (yaml.safe_load(found) for found in re.findall(r"^ *CMD (\[.+\])$", text, re.MULTILINE)[-2:])
    (entry_point,) = re.findall(r'^ENTRYPOINT (\["penstock".+\])$', text, re.MULTILINE)
    with socket.create_server(("127.0.0.1", 0)) as free, socket.create_server(("127.0.0.1", 0)) as second:
        health, metrics = str(free.getsockname()[1]), str(second.getsockname()[1])
    command = [each.replace("0.0.0.0:8080", health).replace("0.0.0.0:9400", metrics) for each in command]
    check = [sys.executable, *(each.replace(":8080/", f":{health}/") for each in check[1:])]

    cluster.create_topics(["orders"], partitions=3)
    produce(
        brokers, "orders", ['{"id": 1, "quantity": 2, "unit_cents": 250}', '{"id": 2, "quantity": -1, "unit_cents": 1}']
    )
    app = subprocess.Popen(
        [sys.executable, "-m", *yaml.safe_load(entry_point), *command],
        cwd=DEPLOY / "app",
        env={"PATH": os.environ["PATH"], "PENSTOCK_BROKERS": brokers, "PENSTOCK_HOME": str(tmp_path / "state")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(lambda: subprocess.run(check, check=False, capture_output=True).returncode == 0, "a good health check")
        wait_for(lambda: lag(cluster, "shop", "orders") == 0, "all orders")
        app.send_signal(signal.SIGTERM)
        _, said = app.communicate(timeout=WAIT_SECONDS)
    finally:
        app.kill()
    assert app.returncode == 0, said
    assert subprocess.run(check, check=False, capture_output=True).returncode != 0  # it checks something
    assert read_values(brokers, "invoices") == [b'{"order":1,"total":500}']
    assert len(read_values(brokers, "orders.dlq")) == 1
