"""The same TLS settings on Spark: its Java clients and Python workers get certificates as text."""

import threading

from pyspark.sql import SparkSession

from kafka_helpers import produce, read_values
from penstock import App
from penstock import spark as engine
from penstock.kafka import Cluster
from tls_servers import SecureBroker


def test_records_go_in_and_out_with_certificates(secure: SecureBroker, spark: SparkSession, group: str) -> None:
    by_java, by_workers = f"{group}.java", f"{group}.workers"
    Cluster(secure.plain).create_topics([by_java, by_workers], partitions=1)
    settings = secure.by_certificate()
    app = App(group, settings=settings)

    @app.consume(by_java, to=f"{by_java}.out")
    def double(value: int) -> int:
        return 2 * value

    @app.consume(by_workers, to=f"{by_workers}.out", delivery="exactly-once")
    def triple(value: int) -> int:
        return 3 * value

    for source in (by_java, by_workers):
        produce(secure.plain, source, range(10))
    engine.run(
        app,
        brokers=secure.mutual,
        emit=lambda _: None,
        stop=threading.Event(),
        until_caught_up=True,
        session=spark,
    )
    for source, factor in ((by_java, 2), (by_workers, 3)):
        outputs = read_values(secure.plain, f"{source}.out")
        assert sorted(int(value or b"") for value in outputs) == [factor * n for n in range(10)]
    assert Cluster(secure.mutual, settings).lag(group, [by_java, by_workers]) == 0
