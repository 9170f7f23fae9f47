"""Pipelines with `penstock run`: a session with the jars of the sinks, and ranges as flags."""

import json
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from kafka_helpers import WAIT_SECONDS, MakeTopic, produce
from tables import rows

MODULE = """
from penstock import App, Table
app = App("{group}")

@app.pipeline("{topic}", value="id bigint NOT NULL", key=str, to=Table("ids", path="{lake}", format="iceberg"))
def ids(records):
    return records.select("id", "_key", "_offset")
"""


def test_a_range_on_the_command_line_is_read_once_and_reported(
    brokers: str, group: str, make_topic: MakeTopic, spark: SparkSession, tmp_path: Path
) -> None:
    topic = make_topic()
    produce(brokers, topic, [json.dumps({"id": number}) for number in range(10)], key=b"k")
    (tmp_path / "lake.py").write_text(MODULE.format(group=group, topic=topic, lake=tmp_path))
    command = [sys.executable, "-m", "penstock", "run", "lake:app", "--engine", "spark", "-b", brokers]
    done = subprocess.run(
        [*command, "--from", f"{topic}:0=3", "--to", "latest"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"ids: {topic}[0] from 3 up to 10: up to 7 records" in done.stderr
    assert "ids: writing to iceberg table ids, all of the range or none" in done.stderr
    assert "7 read, 7 written" in done.stderr
    found = rows(spark.read.format("iceberg").load(f"{tmp_path}/ids"))
    assert sorted((row["id"], row["_key"], row["_offset"]) for row in found) == [(n, "k", n) for n in range(3, 10)]
    refused = subprocess.run(
        [*command[:-4], "--from", "earliest"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "--engine spark" in refused.stderr
