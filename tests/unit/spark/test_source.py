"""What Spark's source is told."""

from penstock import App
from penstock.spark.offsets import EARLIEST
from penstock.spark.source import source_options


def test_no_option_splits_a_partition_over_tasks() -> None:
    # Order by key and exactly-once stand on one task for each partition.
    app = App("shop")

    @app.consume("orders", "returns", delivery="exactly-once")
    def handle(value: int) -> None: ...

    options = source_options(app.handlers[0], {"kafka.bootstrap.servers": "x"}, {("orders", 0): EARLIEST}, size=10)
    assert not {"minPartitions", "maxRecordsPerPartition"} & options.keys()
    assert options["kafka.isolation.level"] == "read_committed"
