"""The fetcher's own book-keeping, without a broker."""

from queue import SimpleQueue

from penstock import App
from penstock.core.lease import FOREVER
from penstock.engine.fetcher import Fetcher
from penstock.engine.messages import Inbox, Pause, Rewound


def test_a_pause_that_comes_after_the_revoke_is_not_remembered() -> None:
    app = App("shop")
    app.consume("orders")(print_nothing)
    inbox: Inbox = SimpleQueue()
    fetcher = Fetcher(app.handlers[0], inbox, brokers="localhost:1", in_flight_room=lambda _: 1, lease=FOREVER)
    try:
        fetcher._pause(Pause({("orders", 0): 5}))
        assert fetcher._slow == set(), "or it would be paused for good when it is ours again"
        assert inbox.get_nowait() == Rewound([])
    finally:
        fetcher._consumer.close()


def print_nothing(value: bytes) -> None: ...
