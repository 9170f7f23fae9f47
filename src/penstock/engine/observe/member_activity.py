"""What one member does now, as data for the dashboard. Lists are cut: a picture is for people."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordAtWork:
    """A record that a worker handles now, and the attempt; ``seconds`` is how long it has been at it."""

    topic: str
    partition: int
    offset: int
    key: str | None
    attempt: int
    seconds: float


@dataclass(frozen=True)
class WaitingLane:
    """A lane with records: how many wait in it, and whether its first record is with a worker or waits for a retry."""

    topic: str
    partition: int
    name: str
    waiting: int
    held: bool


@dataclass(frozen=True)
class WaitingRetry:
    """A record whose next attempt is due in ``seconds``; its lane waits with ``behind`` records."""

    topic: str
    partition: int
    offset: int
    key: str | None
    attempt: int
    seconds: float
    behind: int


@dataclass(frozen=True)
class TenantShare:
    """One tenant of ``fair_by=``: what its records have of the workers, and how many of the looked-at ones wait."""

    name: str
    weight: float
    busy: int
    waiting: int


@dataclass(frozen=True)
class OwnedPartition:
    """A partition that the member owns."""

    topic: str
    partition: int
    committed: int | None
    commit_point: int | None
    position: int | None
    in_flight: int
    lanes: int
    paused: bool


@dataclass(frozen=True)
class MemberActivity:
    """The picture of a member. Lists are cut; ``lanes``, ``waiting`` and ``retrying`` count everything."""

    handler: str
    group: str
    concurrency: int
    is_auto: bool
    busy: int
    in_flight: int
    max_in_flight: int
    bytes: int
    max_bytes: int
    small_bytes: int
    lanes: int
    waiting: int
    sending: int
    retrying: int
    oldest_ms: int | None
    breaker: str | None
    at_work: tuple[RecordAtWork, ...]
    longest_lanes: tuple[WaitingLane, ...]
    retries: tuple[WaitingRetry, ...]
    partitions: tuple[OwnedPartition, ...]
    tenants: tuple[TenantShare, ...]
    latency_bounds: tuple[float, ...]
    latency: tuple[int, ...]
