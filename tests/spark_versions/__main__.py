"""Runs one handler on the oldest and the newest Spark for handlers, and through Spark Connect: the outputs must agree.

Each PySpark is installed into a folder of its own, which stays for the next run: python -m spark_versions FOLDER.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.devkit import Embedded, UpOptions
from penstock.kafka import Cluster, make_producer
from penstock.kafka.read.read_records import read_topic

VERSIONS = ("4.0.0", "4.3.0")
CONNECT = ("grpcio>=1.76", "grpcio-status>=1.76", "googleapis-common-protos", "zstandard")
RECORDS = 2_000
RUNS = (
    ("4.0.0", "classic", "at-least-once"),
    ("4.3.0", "classic", "exactly-once"),
    ("4.3.0", "connect", "at-least-once"),
)


def install(folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target"]
    for version in VERSIONS:
        if not (folder / version).exists():
            subprocess.run([*pip, folder / version, "--no-deps", f"pyspark=={version}", "py4j"], check=True)
    if not (folder / "connect").exists():
        subprocess.run([*pip, folder / "connect", *CONNECT], check=True)


def main(folder: Path) -> None:
    install(folder)
    with tempfile.TemporaryDirectory(prefix="penstock-versions-") as home:
        kafka = Embedded(Path(home))
        try:
            kafka.up(UpOptions(port=0))
            check(str(kafka.bootstrap()), folder)
        finally:
            kafka.down()


def check(brokers: str, folder: Path) -> None:
    Cluster(brokers).create_topics(["source"], partitions=4)
    producer = make_producer(brokers, settings={})
    for number in range(RECORDS):
        producer.produce("source", b"%d" % number, key=b"%d" % (number % 100))
    producer.flush()
    for version, kind, delivery in RUNS:
        path = [folder / version, *([folder / "connect"] if kind == "connect" else []), Path(__file__).parents[1]]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "PYSPARK_PYTHON": sys.executable}
        out = f"out-{version}-{kind}"
        program = [sys.executable, "-m", "spark_versions.program", brokers, "source", out, kind, delivery]
        subprocess.run(program, env=environment, check=True)
        outputs = sorted(int(record.value or b"") for record in read_topic(brokers, out))
        if outputs != list(range(1, RECORDS + 1)):
            raise SystemExit(f"Spark {version}, {kind}: {len(outputs)} outputs, {len(set(outputs))} different ones")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
