"""FastStream on one topic: run by benchmarks/peers.py, with an interpreter that has faststream[confluent].

With workers it commits records before they are handled, and only with workers can it wait for several records at once.
"""

import asyncio
import logging
import sys
import time

from faststream.confluent import KafkaBroker


async def main(brokers: str, topic: str, group: str, records: int, wait: float) -> None:
    seen, began, done = 0, 0.0, asyncio.Event()
    broker = KafkaBroker(brokers, logger=logging.getLogger("quiet"))
    logging.getLogger("quiet").setLevel(logging.CRITICAL)

    @broker.subscriber(topic, group_id=group, auto_offset_reset="earliest", max_workers=100 if wait else 1)
    async def handle(_value: bytes) -> None:
        nonlocal seen, began
        began = began or time.perf_counter()
        if wait:
            await asyncio.sleep(wait)
        seen += 1
        if seen == records:
            print(time.perf_counter() - began, flush=True)
            done.set()

    async with broker:
        await broker.start()
        await done.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
