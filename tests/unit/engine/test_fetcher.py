"""The fetcher's own book-keeping, without a broker."""

from penstock.engine.flow import Flow
from penstock.kafka import make_consumer


def test_a_pause_that_comes_after_the_revoke_is_not_remembered() -> None:
    consumer = make_consumer("localhost:1", "shop", settings={})
    flow = Flow(consumer, cooperates=True)
    try:
        flow.slow_down([("orders", 0)])
        assert flow._slow == set(), "or it would be paused for good when it is ours again"
    finally:
        consumer.close()
