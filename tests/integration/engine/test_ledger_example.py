"""The example in examples/ledger on PostgreSQL: a kill in the middle books no transfer twice, and leaves none out."""

import json
import os
import subprocess
import sys
from pathlib import Path

from kafka_helpers import WAIT_SECONDS, produce, wait_for
from penstock.kafka import Cluster
from postgres import Postgres

EXAMPLE = Path(__file__).parents[3] / "examples" / "ledger"
TRANSFERS = 3_000


def start(brokers: str, database: str, *options: str) -> "subprocess.Popen[str]":
    # A member that was killed holds its partitions for one session.
    command = [
        sys.executable,
        "-m",
        "penstock",
        "run",
        "ledger:app",
        "--set",
        "settings.session.timeout.ms=6000",
        *options,
    ]
    environment = {**os.environ, "PENSTOCK_BROKERS": brokers, "LEDGER": database}
    return subprocess.Popen(
        command, cwd=EXAMPLE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_a_kill_books_each_transfer_once(brokers: str, cluster: Cluster, postgres: Postgres) -> None:
    database = postgres.database()
    name = database.rpartition("/")[2]
    cluster.create_topics(["transfers"], partitions=3)
    for partition in range(3):
        numbers = range(partition, TRANSFERS, 3)
        values = [json.dumps({"id": number, "source": "anna", "target": "ben", "cents": 100}) for number in numbers]
        produce(brokers, "transfers", values, partition=partition)

    def rows(query: str) -> list[list[str]]:
        return postgres.sql(query, database=name)

    def has_booked() -> bool:
        assert process.poll() is None, process.communicate()[0]
        return (
            rows("SELECT to_regclass('entries') IS NOT NULL") == [["t"]] and rows("SELECT 1 FROM entries LIMIT 1") != []
        )

    process = start(brokers, database)
    wait_for(has_booked, "the first transfers")
    process.kill()
    process.communicate()

    process = start(brokers, database, "--until-caught-up")
    said, _ = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0, said
    counted = "SELECT count(DISTINCT transfer), count(*), sum(cents) FROM entries"
    assert rows(counted) == [[str(TRANSFERS), str(2 * TRANSFERS), "0"]]
