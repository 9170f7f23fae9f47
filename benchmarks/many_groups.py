"""How long it takes to see ten thousand groups: python benchmarks/many_groups.py.

They are made on a broker of its own, each with a commit. Then `penstock groups ls` and `penstock lag` are timed as a
user has them: as processes, from the start to the last line.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from rich.console import Console

from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster

AT_ONCE = 250


def main(
    groups: Annotated[int, typer.Option(help="How many there are.")] = 10_000,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kafka = Embedded(Path(folder))
        try:
            kafka.up(UpOptions(port=0))
            brokers = str(kafka.bootstrap())
            make_groups(Cluster(brokers), groups)
            found = {name: seconds(brokers, *name.split()) for name in ("groups ls", "lag")}
        finally:
            kafka.down()
    if as_json:
        typer.echo(json.dumps({"groups": groups, "seconds": found}))
        return
    for name, took in found.items():
        Console().print(f"penstock {name}, {groups:,} groups: {took:.1f} s")


def make_groups(cluster: Cluster, count: int) -> None:
    cluster.create_topics(["orders"], partitions=1)
    for start in range(0, count, AT_ONCE):
        asked = [
            cluster.admin.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(f"group-{number:05}", [TopicPartition("orders", 0, 0)])],
                request_timeout=180,
            )
            for number in range(start, min(count, start + AT_ONCE))
        ]
        for futures in asked:
            for future in futures.values():
                future.result(timeout=200)


def seconds(brokers: str, *command: str) -> float:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *command, "-b", brokers, "--json"], capture_output=True, check=True
    )
    took = time.monotonic() - began
    assert len(json.loads(done.stdout)["groups"]) > 0  # noqa: S101 - a benchmark that did nothing is none
    return round(took, 2)


if __name__ == "__main__":
    typer.run(main)
