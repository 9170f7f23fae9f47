"""Clean stops and kill -9 during a run: a table has each record once."""

import signal
import subprocess
import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from kafka_helpers import WAIT_SECONDS, CatchUp, MakeTopic, committed, of_kind, produce, wait_for
from penstock import App, Table
from penstock import spark as engine
from penstock.core.reports import events
from penstock.kafka import Cluster
from tables import rows

RECORDS = 100

# The driver is lost when its second batch is in the table, but not in the checkpoint.
PROGRAM = """
import os, signal, sys, threading
from penstock import App, Table
from penstock.spark import run
from penstock.spark.pipelines.output_batches import OutputWriter

brokers, group, topic, lake = sys.argv[1:]
app = App(group)

@app.pipeline(topic, value=str, to=Table("texts", path=lake), max_micro_batch=40)
def copy(texts):
    return texts.select("value")

write = OutputWriter._write_rows

def write_and_die(self, rows, batch):
    write(self, rows, batch)
    if batch.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)

OutputWriter._write_rows = write_and_die
conf = {"spark.databricks.delta.snapshotPartitions": "2"}
run(app, brokers=brokers, emit=lambda event: None, stop=threading.Event(), conf=conf)
"""


def copying(group: str, source: str, lake: Path) -> App:
    """The pipeline of the program, for a restart inside the test."""
    app = App(group)

    @app.pipeline(source, value=str, to=Table("texts", path=str(lake)), max_micro_batch=40)
    def copy(texts: DataFrame) -> DataFrame:
        return texts.select("value")

    return app


def test_after_kill_9_between_the_table_s_commit_and_spark_s_each_record_is_there_once(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    source = make_topic(2)
    for partition in range(2):
        produce(brokers, source, range(partition, RECORDS, 2), partition=partition)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, program, brokers, group, source, str(tmp_path)], capture_output=True, timeout=350, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    table = spark.read.format("delta").load(f"{tmp_path}/texts")
    assert table.count() == 80
    assert sum(committed(cluster, group, source).values()) == 40
    catch_up(copying(group, source, tmp_path))
    table = spark.read.format("delta").load(f"{tmp_path}/texts")
    assert sorted(int(row["value"]) for row in rows(table)) == list(range(RECORDS))
    assert sum(committed(cluster, group, source).values()) == RECORDS


def test_a_stop_in_the_middle_finishes_the_batch_and_a_restart_repeats_nothing(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    source = make_topic()
    produce(brokers, source, range(RECORDS))
    app, stop = copying(group, source, tmp_path), threading.Event()
    seen: list[events.Event] = []
    thread = threading.Thread(
        target=lambda: engine.run(app, brokers=brokers, emit=seen.append, stop=stop, session=spark), daemon=True
    )
    thread.start()
    wait_for(lambda: of_kind(seen, events.BatchFinished), "a batch")
    stop.set()
    thread.join(WAIT_SECONDS)
    assert not thread.is_alive(), "the engine did not stop"
    (stopped,) = of_kind(seen, events.Stopped)
    assert stopped.read == sum(committed(cluster, group, source).values()) < RECORDS
    catch_up(app)
    table = spark.read.format("delta").load(f"{tmp_path}/texts")
    assert sorted(int(row["value"]) for row in rows(table)) == list(range(RECORDS))
