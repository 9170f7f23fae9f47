"""Random histories of a whole app on a bench: many options at once, while its partitions move and its process dies."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import App, Breaker, Later, Rate, Record, Reject, Retry, Skip, by
from penstock.testing import Bench

RETRY_TOPIC = "orders.retry.1m"
DOES = ["done", "done", "output", "output", "skip", "reject", "once", "always", "away", "later", "long", "slow"]
RECORDS = st.lists(st.tuples(st.sampled_from("abcd-"), st.sampled_from(DOES)), min_size=1, max_size=12)
MOVES = ("rebalance", "lose", "crash", "stop")
COMMANDS = ("pause", "resume", "rate", "no rate")
ACTIONS = st.one_of(
    RECORDS,
    RECORDS,
    st.sampled_from(["0.3s", "1s", "7s", "70s"]),
    st.sampled_from(
        ["rebalance", "lose", "crash", "stop", "outage", "works again", "pause", "resume", "rate", "no rate"]
    ),
    st.sampled_from([1, 2, 5]),
)


class Story:
    """The app, and what its handler was called with."""

    def __init__(self, options: dict[str, Any], *, in_batches: bool, is_async: bool) -> None:
        self.app = App("shop")
        self.calls: Counter[int] = Counter()
        self.does: list[str] = []
        self.is_away = False
        self.repeats = False  # a crash or a loss may repeat what was finished
        kinds: dict[tuple[bool, bool], Callable[..., Any]] = {
            (False, False): self._handle,
            (True, False): self._handle_all,
            (False, True): self._handle_async,
            (True, True): self._handle_all_async,
        }
        self.app.consume("orders", **options)(kinds[in_batches, is_async])
        self.bench = Bench(self.app, partitions=2)

    def _handle(self, record: Record) -> int | None:
        number, does = json.loads(record.value or b"")
        self.calls[number] += 1
        is_first = self.calls[number] == 1
        match does:
            case "output":
                return int(number)
            case "skip":
                raise Skip
            case "reject":
                raise Reject
            case "once" if is_first:
                raise OSError
            case "always":
                raise ValueError
            case "away" if self.is_away:
                raise OSError
            case "later" if is_first:
                raise Later("2s")
            case "long" if is_first:
                raise Later("90s")
            case "slow":
                self.bench.advance("0.7s")
        return None

    def _result(self, record: Record) -> Any:
        try:
            return self._handle(record)
        except Exception as error:  # noqa: BLE001 - the outcome of one record of a batch
            return error

    def _handle_all(self, records: list[Record]) -> list[Any]:
        return list(map(self._result, records))

    async def _handle_async(self, record: Record) -> int | None:
        return self._handle(record)

    async def _handle_all_async(self, records: list[Record]) -> list[Any]:
        return self._handle_all(records)

    def produce(self, records: list[tuple[str, str]]) -> None:
        for key, does in records:
            self.bench.produce("orders", [len(self.does), does], key=None if key == "-" else key)
            self.does.append(does)

    def act(self, action: Any) -> None:
        if isinstance(action, list):
            self.produce(action)
            self.bench.run_until_idle()
        elif isinstance(action, int) or action in COMMANDS:
            self.bench.run_until_idle()  # after a stop, it starts the app again
            self.command(action)
        elif action in MOVES:
            self.repeats |= action in {"lose", "crash"}
            self.move(action)
        elif action == "outage":
            self.is_away = True
            self.produce([("a", "away"), ("b", "away"), ("-", "away")])
            self.bench.advance("4s")
        elif action == "works again":
            self.is_away = False
        else:
            self.bench.advance(action)

    def command(self, command: str | int) -> None:
        app, name = self.app, self.app.handlers[0].name
        if isinstance(command, int):
            app.set(name, concurrency=command)
        elif command in {"pause", "resume"}:
            app.pause() if command == "pause" else app.resume()
        else:
            app.set(name, rate=None if command == "no rate" else Rate(4, per="1s", burst=2))

    def move(self, move: str) -> None:
        match move:
            case "rebalance":
                self.bench.rebalance()
            case "lose":
                self.bench.rebalance(lose=[("orders", 0)])
            case "crash":
                self.bench.crash()
            case "stop":
                self.bench.stop()

    def finish(self) -> None:
        """What the handler calls works again, and other records arrive: nothing may be left."""
        self.is_away = False
        self.bench.run_until_idle()
        self.app.resume()
        for _ in range(12):
            self.produce([("a", "done"), ("b", "done"), ("-", "done")])
            self.bench.advance("5m")
            if not any(self.bench.lag(topic) for topic in ("orders", *self._retry_topics)):
                return
        raise AssertionError(f"not finished: {self.bench.committed('orders')}")

    @property
    def _retry_topics(self) -> list[str]:
        return [RETRY_TOPIC] if self.app.handlers[0].retry_topics else []

    def numbers(self, *does: str) -> list[int]:
        return [number for number, what in enumerate(self.does) if what in does]


@settings(max_examples=60, deadline=None)
@given(
    actions=st.lists(ACTIONS, min_size=1, max_size=12),
    order=st.sampled_from(["partition", "key", "none"]),
    concurrency=st.sampled_from([1, 3, 8]),
    max_in_flight=st.sampled_from([4, 10, 10_000]),
    batch=st.sampled_from([None, None, 1, 3]),
    limit=st.sampled_from([None, None, "all", "tenant"]),
    is_fair=st.booleans(),
    retry_topics=st.sampled_from([(), ("1m",)]),
    breaker=st.sampled_from([None, Breaker(then="pause", probe="5s", window=20, on=(OSError,))]),
    commit=st.sampled_from(["auto", "record"]),
    is_async=st.booleans(),
)
def test_every_record_is_finished_and_none_twice_without_a_reason(
    actions: list[Any],
    order: str,
    concurrency: int,
    max_in_flight: int,
    batch: int | None,
    limit: str | None,
    is_fair: bool,  # noqa: FBT001
    retry_topics: tuple[str, ...],
    breaker: Breaker | None,
    commit: str,
    is_async: bool,  # noqa: FBT001
) -> None:
    options: dict[str, Any] = {
        "order": order, "concurrency": concurrency, "max_in_flight": max_in_flight, "batch": batch, "to": "out",
        "dead_letter": "dlq", "retry": Retry(attempts=2, first="1s", jitter=0), "retry_topics": retry_topics,
        "breaker": breaker, "commit": commit,
    }  # fmt: skip
    if limit is not None:
        options["rate"] = Rate(5, per="1s", burst=2, by=by.key() if limit == "tenant" and batch is None else None)
    if is_fair and order != "partition":
        options |= {"fair_by": by.key(), "priority": lambda record: record.offset % 3 - 1}
    story = Story(options, in_batches=batch is not None, is_async=is_async)
    story.bench.run_until_idle()
    for action in actions:
        story.act(action)
    story.finish()

    bench = story.bench
    assert all(story.calls[number] for number in range(len(story.does))), "each was handled"
    outputs = Counter(bench.outputs("out", int))
    assert set(outputs) == set(story.numbers("output"))
    letters = Counter(json.loads(each.value or b"")[0] for each in bench.dead_letters("dlq"))
    assert set(story.numbers("reject", "always")) <= set(letters)
    assert set(letters) <= set(story.numbers("reject", "always", "away"))
    if not story.repeats:
        assert max([*outputs.values(), *letters.values()], default=1) == 1, "a clean end repeats nothing"
