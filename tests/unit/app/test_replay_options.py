"""``Replay``: what it accepts, what it refuses, and what it means."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from penstock import Replay
from penstock.app.pipelines import Span
from penstock.errors import ConfigError

TP = ("orders", 0)


def test_without_arguments_it_is_everything() -> None:
    assert Replay().span == Span("earliest", "latest")
    assert Replay().names == ()


@pytest.mark.parametrize(
    ("given", "position"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31, tzinfo=UTC)),
        ("orders:0=42", {TP: 42}),
        ({TP: 42}, {TP: 42}),
        ("latest", "latest"),
    ],
)
def test_a_position_is_what_the_command_line_has_or_what_handlers_have(given: Any, position: Any) -> None:
    assert Replay(from_=given).span.start == position
    assert Replay(to=given).span.end == position


def test_it_names_one_handler_or_several() -> None:
    assert Replay(handler="invoice").names == ("invoice",)
    assert Replay(handler=["invoice", "book"]).names == ("invoice", "book")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"from_": "noon"}, r"Replay\.from_ 'noon' is not a position in a log"),
        ({"to": datetime(2026, 1, 31)}, r"Replay\.to=.* has no time zone"),  # noqa: DTZ001 - that is the error
        ({"to": date(2026, 1, 31)}, r"Replay\.to=.* is not a position in a log"),
        ({"from_": {"orders": 0}}, r"Replay\.from_=.* is not a position in a log"),
        ({"start": "earliest"}, "Replay has no option 'start'"),
        ({"handlers": "invoice"}, "no option 'handlers'. Did you mean 'handler'"),
        ({"from": "earliest"}, "no option 'from'. Did you mean 'from_'"),
        ({"handler": ""}, r"Replay\.handler='' does not name a handler"),
        ({"handler": ["invoice", 3]}, "does not name a handler"),
        ({"handler": print}, "does not name a handler"),
        ({"to_topic": "two words"}, r"Replay\.to_topic='two words' is not the name of a topic"),
        ({"dry_run": "yes"}, r"Replay\.dry_run='yes' is not a bool"),
        ({"to_topic": "new", "dry_run": True}, r"Replay\.to_topic has no effect with dry_run=True"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        Replay(**given)
    assert refused.value.hint
