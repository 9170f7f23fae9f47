"""A recommendation of ``penstock lag --recommend`` as a table, in words, and as JSON."""

from collections.abc import Sequence
from typing import Any

from penstock.cli.console.screen import shown_line
from penstock.cli.console.tables import rate, table_lines
from penstock.core.scheduling.recommended_members import HIGH, needed_without_limit
from penstock.core.text.plurals import counted
from penstock.ops.member_recommendation import Recommendation

_COLUMNS = ("TOPICS", "MEMBERS", "RECOMMENDED", "IN", "LAG", "PER-MEMBER", "BUSY", "PARTITIONS")


def recommendation_lines(group: str, found: Sequence[Recommendation]) -> list[str]:
    """Return the table, and two or three sentences for each of its rows, with foreign text escaped."""
    rows = [_row(each) for each in found]
    lines = table_lines(_COLUMNS, rows, right=_COLUMNS[1:])
    for each in found:
        who = group if len(found) == 1 else f"{group} on {_topics(each)}"
        lines += ["", shown_line(_sentences(who, each))]
    return lines


def recommendation_json(group: str, found: Sequence[Recommendation]) -> dict[str, Any]:
    numbers = [each.recommended for each in found]
    return {
        "group": group,
        "members": sum(each.load.members for each in found),
        "recommended": None if None in numbers else sum(each for each in numbers if each is not None),
        "handlers": [_one_as_json(each) for each in found],
    }


def _row(each: Recommendation) -> tuple[object, ...]:
    load, busy = each.load, _busy_share(each)
    return (
        _topics(each),
        load.members,
        each.recommended,
        rate(load.rate_in),
        f"{load.lag:,}",
        rate(each.rate_of_a_member),
        None if busy is None else f"{busy:.0%}",
        load.partitions,
    )


def _topics(each: Recommendation) -> str:
    return ", ".join(each.topics)


def _busy_share(each: Recommendation) -> float | None:
    return None if each.recommended is None else each.load.busy_share


def _sentences(who: str, each: Recommendation) -> str:
    if each.recommended is None:
        return f"How much a member of {who} can handle is not known."
    return f"{_advice(who, each.load.members, each.recommended)} {_reason(each)}{_limit(each)}"


def _advice(who: str, now: int, wanted: int) -> str:
    if now == wanted:
        return f"{who} should have {counted(wanted, 'member')}, as it has."
    if now < wanted:
        return f"{who} should have {counted(wanted, 'member')}; it has {now}."
    return f"{counted(wanted, 'member')} {'is' if wanted == 1 else 'are'} enough for {who}; it has {now}."


def _reason(each: Recommendation) -> str:
    handles = f"A member can handle {rate(each.rate_of_a_member)}"
    if each.measured is None:
        return f"{handles}: so fast the group committed while it had lag."
    members = counted(each.measured.members, "member")
    return (
        f"{handles}: {_short(each.load.service_seconds)} for a record, concurrency {each.load.concurrency}, measured "
        f"by {members} on this machine."
    )


def _limit(each: Recommendation) -> str:
    """Say so if even the largest useful number of members would be too busy."""
    load = each.load
    if needed_without_limit(load) <= load.most or load.busy_workers <= HIGH * load.most * max(1, load.concurrency):
        return ""
    useful = f"but {load.most} is the limit with {counted(load.partitions, 'partition')}"
    if load.one_per_partition:
        useful += " that run one record at a time"
    return f" The work needs {needed_without_limit(load):,}, {useful}."


def _short(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _one_as_json(each: Recommendation) -> dict[str, Any]:
    load, measured = each.load, each.measured
    return {
        "topics": list(each.topics),
        "members": load.members,
        "recommended": each.recommended,
        "most_useful": load.most,
        "rate_in": load.rate_in,
        "lag": load.lag,
        "rate_of_a_member": each.rate_of_a_member,
        "source": None if each.recommended is None else "commits" if measured is None else "apps",
        "seconds_per_record": None if measured is None else load.service_seconds,
        "concurrency": None if measured is None else load.concurrency,
        "busy_share": _busy_share(each),
        "partitions": load.partitions,
    }
