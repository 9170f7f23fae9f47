"""The lag of groups and partitions as rows of the feed. Figures are rounded: noise is no change."""

from penstock.dashboard.feed.feed_source import Row
from penstock.errors import PenstockError
from penstock.ops.group_lag import GroupLag, PartitionLag


def group_figures(each: GroupLag | PenstockError, *, judged: bool) -> Row:
    """Return what the overview shows of a group; without ``judged``, only what positions tell."""
    if isinstance(each, PenstockError):
        return {"error": each.problem}
    group = each.group
    row: Row = {
        "error": None,
        "type": group.type,
        "state": group.state,
        "lag": each.lag,
        "lost": each.lost,
        "members": len(group.members),
        "partitions": len(each.partitions),
    }
    if not judged:
        return row
    rates_in = [part.rate_in for part in each.partitions if part.rate_in is not None]
    rates_out = [part.rate_out for part in each.partitions if part.rate_out is not None]
    drains = [part.drain_seconds for part in each.partitions if part.lag is not None]
    worst = max(each.partitions, key=lambda part: part.verdict.status, default=None)
    return row | {
        "status": each.status.name,
        "severity": int(each.status),
        "reason": "" if worst is None else worst.verdict.reason,
        "lag_seconds": rounded(each.lag_seconds),
        "rate_in": rounded(sum(rates_in)) if rates_in else None,
        "rate_out": rounded(sum(rates_out)) if rates_out else None,
        "drain": None if None in drains else rounded(max((part for part in drains if part is not None), default=None)),
    }


def partition_figures(part: PartitionLag) -> Row:
    return {
        "topic": part.topic,
        "partition": part.partition,
        "committed": part.committed,
        "start": part.start,
        "end": part.end,
        "lag": part.lag,
        "lost": part.lost,
        "above": part.finished_above,
        "lag_seconds": rounded(part.lag_seconds),
        "rate_in": rounded(part.rate_in),
        "rate_out": rounded(part.rate_out),
        "drain": rounded(part.drain_seconds),
        "commit_age": rounded(part.commit_age),
        "member": None if part.member is None else part.member.id,
        "status": part.verdict.status.name,
        "reason": part.verdict.reason,
        "error": part.error or None,
    }


def rounded(value: float | None) -> float | None:
    """Round to three digits, and times above ten seconds to whole seconds."""
    if value is None:
        return None
    if abs(value) >= 10:  # noqa: PLR2004 - a matter of taste
        return round(value)
    return round(value, 1 if abs(value) >= 1 else 3)
