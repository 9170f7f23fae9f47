"""One run of a handler on the Spark that is on the Python path: with its own session, or through Spark Connect."""

import sys
import threading
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from penstock import App
from penstock import spark as engine
from penstock.core.reports.events import Event, Stopped


def main(brokers: str, source: str, out: str, kind: str, delivery: Any) -> None:
    app = App(out)

    @app.consume(source, to=out, order="key", delivery=delivery)
    def handle(value: int) -> int:
        return value + 1

    seen: list[Event] = []
    options: dict[str, Any] = {"master": "local[2]"}
    if kind == "connect":
        options = {"session": SparkSession.builder.remote("local[2]").getOrCreate()}
    engine.run(app, brokers=brokers, emit=seen.append, stop=threading.Event(), until_caught_up=True, **options)
    written = sum(event.written for event in seen if isinstance(event, Stopped))
    sys.stdout.write(f"Spark {pyspark.__version__}, {kind}, {delivery}: {written} written\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
