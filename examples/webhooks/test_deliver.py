"""Tests of the handler, without Kafka, HTTP and waiting."""

import deliver
import pytest
from deliver import Hook

from penstock.testing import Bench


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """What each URL answers, one after the other; then 200."""
    answers: dict[str, list[int]] = {}

    async def post(url: str, _body: bytes, _headers: dict[str, str]) -> int:
        return answers[url].pop(0) if answers.get(url) else 200

    monkeypatch.setattr(deliver, "post", post)
    return answers


def test_a_receiver_that_is_down_delays_only_its_own_records(answers: dict[str, list[int]]) -> None:
    answers["http://a"] = [503]
    bench = Bench(deliver.app)
    for name in ("a", "a", "b"):
        bench.produce("webhooks", Hook(f"http://{name}", {}), key=name)
    bench.run_until_idle()
    assert bench.lag("webhooks") == 3  # the record of b is finished, and nothing is committed yet
    bench.advance("2s")
    assert (bench.lag("webhooks"), bench.dead_letters("webhooks.dlq")) == (0, [])


def test_what_a_receiver_will_never_accept_is_a_dead_letter_at_once(answers: dict[str, list[int]]) -> None:
    answers["http://a"] = [410]
    bench = Bench(deliver.app)
    bench.produce("webhooks", Hook("http://a", {}), key="a")
    bench.run_until_idle()
    assert [each.reason for each in bench.dead_letters("webhooks.dlq")] == ["Reject: http://a answered 410"]


def test_a_receiver_that_stays_down_costs_six_attempts(answers: dict[str, list[int]]) -> None:
    answers["http://a"] = [503] * 9
    bench = Bench(deliver.app)
    bench.produce("webhooks", Hook("http://a", {}), key="a")
    bench.advance("10m")
    assert [each.attempts for each in bench.dead_letters("webhooks.dlq")] == [6]
