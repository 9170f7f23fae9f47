"""Penstock on one topic, as anybody would use it: run by benchmarks/peers.py."""

import itertools
import sys
import threading
import time

from penstock import App, Record
from penstock import engine as local


def main(brokers: str, topic: str, group: str, records: int, wait: float, *, order: str) -> None:
    app = App(group)
    began, ended, number = 0.0, 0.0, itertools.count(1)

    @app.consume(topic, order=order, concurrency=100 if wait else 8)
    def handle(_record: Record) -> None:
        nonlocal began, ended
        began = began or time.perf_counter()
        if wait:
            time.sleep(wait)
        if next(number) == records:
            ended = time.perf_counter()

    local.run(app, brokers=brokers, emit=lambda _: None, stop=threading.Event(), until_caught_up=True)
    print(ended - began, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]), order=sys.argv[6])
