"""Lesson 9 of `penstock learn`; the others are in tests/integration/learn."""

from pyspark.sql import SparkSession

from penstock.kafka import Cluster
from penstock.learn.course import find_lesson, run_lesson
from penstock.learn.picture import LessonStep


def test_spark(spark: SparkSession, cluster: Cluster) -> None:
    steps: list[LessonStep] = []
    facts = run_lesson(find_lesson("spark"), cluster, steps.append)
    assert facts["same_invoices"] is True
    assert (facts["local"]["in_this_process"], facts["spark"]["in_this_process"]) == (True, False)
    for engine in ("local", "spark"):
        assert facts[engine]["lag"] == 0
        assert sum(facts[engine]["by_partition"].values()) == facts["records"]
    assert len(steps) == 2
    assert not spark.sparkContext._jsc.sc().isStopped(), "the lesson must leave a session of others running"
    assert [name for name in cluster.topics() if name.startswith("penstock-learn")] == []
