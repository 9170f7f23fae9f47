"""Quix Streams on one topic: run by benchmarks/peers.py, with an interpreter that has quixstreams."""

import sys
import time

from quixstreams import Application


def main(brokers: str, topic: str, group: str, records: int, wait: float) -> None:
    seen, began = 0, 0.0
    app = Application(
        broker_address=brokers,
        consumer_group=group,
        auto_offset_reset="earliest",
        auto_create_topics=False,
        loglevel="ERROR",
    )

    def handle(_value: bytes) -> None:
        nonlocal seen, began
        began = began or time.perf_counter()
        if wait:
            time.sleep(wait)
        seen += 1
        if seen == records:
            print(time.perf_counter() - began, flush=True)

    app.dataframe(app.topic(topic, value_deserializer="bytes")).update(handle)
    app.run(count=records)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
