"""A report fits into one record, whatever is in it, and the page can still read it."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.reports.report_size import fitted


def size(value: Any) -> int:
    return len(json.dumps(value).encode())


def picture(errors: int, traceback: int, *, partitions: int = 10) -> dict[str, Any]:
    handler = {
        "group": "g" * 250,
        "name": "ship",
        "points": [[float(n), n, n, 0] for n in range(120)],
        "errors": [{"reason": "r", "traceback": "t" * traceback, "count": 1} for _ in range(errors)],
        **{f"field {number}": number for number in range(40)},
    }
    member = {
        "group": "g" * 250,
        "handler": "ship",
        "latency": list(range(30)),
        "latency_bounds": [0.1] * 29,
        "partitions": [{"topic": "orders", "partition": n, "position": n} for n in range(partitions)],
    }
    return {"run": {"groups": ["g"]}, "picture": {"handlers": [handler], "members": [member]}}


def test_what_fits_stays_as_it_is() -> None:
    content = picture(1, 100)
    assert fitted(content, limit=100_000, size=size) == content


def test_what_is_too_large_keeps_the_newest_and_all_that_a_page_needs() -> None:
    found = fitted(picture(40, 6_000, partitions=5_000), limit=60_000, size=size)
    assert found is not None
    assert size(found) <= 60_000
    assert found["shortened"]
    (handler,), (member,) = found["picture"]["handlers"], found["picture"]["members"]
    assert handler["group"] == "g" * 250, "part of an address"
    assert handler["points"][-1] == [119.0, 119, 119, 0]
    assert handler["errors"][0]["traceback"].startswith("ttt")
    assert {f"field {number}" for number in range(40)} <= handler.keys()
    assert (len(member["latency"]), len(member["latency_bounds"])) == (30, 29)
    assert member["partitions"][0]["partition"] == 0


def test_partitions_of_a_work_on_spark_are_left_out_before_nothing_is_reported() -> None:
    work = {"group": "g", "name": "score", "partitions": {f"orders/{n}": [n, 1] for n in range(5_000)}, "late_rows": 0}
    found = fitted({"spark": {"works": [work]}}, limit=20_000, size=size)
    assert found is not None
    (kept,) = found["spark"]["works"]
    assert 0 < len(kept["partitions"]) < 5_000
    assert kept.keys() == work.keys()


def test_what_can_not_fit_is_not_reported() -> None:
    names = [{"group": "g" * 250, "name": "n" * 250} for _ in range(1_000)]
    assert fitted({"picture": {"handlers": names, "members": []}}, limit=50_000, size=size) is None


_texts = st.text(max_size=40)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(0, 10**6) | _texts,
    lambda children: st.lists(children, max_size=30) | st.dictionaries(_texts, children, max_size=20),
    max_leaves=60,
)


@given(_json, st.integers(10, 2_000))
def test_the_limit_is_never_exceeded(value: Any, limit: int) -> None:
    found = fitted({"picture": value}, limit=limit, size=size)
    assert found is None or size(found) <= limit
