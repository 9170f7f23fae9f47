"""Writes records at a steady rate, each with the moment it was written: steady_producer.py BROKERS TOPIC RATE SECONDS.

A process of its own, so that it shares no interpreter with the consumer that is measured.
"""

import sys
import time

from bench import KEYS

from penstock.kafka import make_producer

_PADDING = b"x" * 92


def main(brokers: str, topic: str, rate: float, seconds: float) -> None:
    producer = make_producer(brokers, settings={"linger.ms": 0})
    producer.list_topics(topic, timeout=30)
    print("writes", flush=True)
    began = time.monotonic()
    for number in range(int(rate * seconds)):
        late = time.monotonic() - began - number / rate
        if late < 0:
            time.sleep(-late)
        # The monotonic clock is the same in all processes of a machine.
        producer.produce(topic, time.monotonic_ns().to_bytes(8, "big") + _PADDING, KEYS[number % 1_000])
        producer.poll(0)
    producer.flush(60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
