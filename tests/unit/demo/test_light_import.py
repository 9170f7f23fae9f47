"""Spark's Python workers import the demo's handler, and must not import Kafka, Spark or the rest of the demo."""

import subprocess
import sys


def test_the_handler_of_the_demo_is_imported_without_kafka_spark_or_the_demo_s_own_runner() -> None:
    heavy = ("confluent_kafka", "pyspark", "rich", "penstock.devkit", "penstock.demo.demo_runner")
    program = f"import sys, penstock.demo.shop; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
