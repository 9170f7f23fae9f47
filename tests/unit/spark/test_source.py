"""What Spark's source is told."""

from penstock import App
from penstock.spark.pipelines.resume_offsets import EARLIEST
from penstock.spark.pipelines.kafka_options import reading_options, source_options


def test_no_option_splits_a_partition_over_tasks() -> None:
    # Order by key and exactly-once stand on one task for each partition.
    app = App("shop")

    @app.consume("orders", "returns", delivery="exactly-once")
    def handle(value: int) -> None: ...

    options = source_options(app.handlers[0], {"kafka.bootstrap.servers": "x"}, {("orders", 0): EARLIEST}, size=10)
    assert not {"minPartitions", "maxRecordsPerPartition"} & options.keys()
    assert options["kafka.isolation.level"] == "read_committed"


def test_what_the_user_sets_comes_before_our_defaults() -> None:
    ours = reading_options({})
    theirs = reading_options({"kafka.fetch.max.wait.ms": "500", "kafka.isolation.level": "read_uncommitted"})
    assert (ours["kafka.fetch.max.wait.ms"], theirs["kafka.fetch.max.wait.ms"]) == ("10", "500")
    assert theirs["kafka.isolation.level"] == "read_uncommitted"
