"""What everybody would write first, a loop around poll(): run by benchmarks/peers.py."""

import sys
import time

from confluent_kafka import Consumer


def main(brokers: str, topic: str, group: str, records: int, wait: float) -> None:
    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    )
    consumer.subscribe([topic])
    seen, began = 0, 0.0
    while seen < records:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            began = began or time.perf_counter()
            _ = message.value(), message.key(), message.offset()
            if wait:
                time.sleep(wait)
            seen += 1
    print(time.perf_counter() - began, flush=True)
    consumer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5]))
