"""How the records of a topic are distributed over keys and partitions, and what to do if a few keys have most of them.

One member processes a partition, and one lane processes a key. So the share of the fullest partition and the share of
the hottest key limit the parallelism, however many members and workers there are.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from penstock.core.records.partitioner import partition_for

# A topic counts as even if its fullest partition has at most this many times the mean.
_EVEN = 1.25
# A key is hot if it has at least half of a partition's fair share, or at least this share of all records.
_HOT_SHARE = 0.1
_MAX_SALTS = 64
_MAX_WORKERS = 256
_MIN_WORKERS = 8
_WORKERS_PER_LANE = 4  # more than one, because lanes have different lengths
# More partitions are worth it if the fullest one then has at most this much of its share today.
_WORTH_IT = 0.75
_ALMOST_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class KeyCount:
    """A key, the lower and upper bound of its number of records, and the partitions that contain them."""

    key: bytes
    least: int
    most: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeySurvey:
    """The keys of a sample of a topic.

    ``counts`` is the number of sampled records in each partition, ``keys`` are the most frequent keys, the hottest
    first. ``unkeyed`` is the number of records without a key, ``distinct`` the approximate number of keys.
    """

    topic: str
    counts: tuple[int, ...]
    keys: tuple[KeyCount, ...]
    unkeyed: int = 0
    distinct: int = 0

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def fullest(self) -> float:
        """The share of the fullest partition."""
        return max(self.counts) / self.total

    @property
    def hottest(self) -> float:
        """The share of the hottest key (its lower bound)."""
        return self.keys[0].least / self.total if self.keys else 0.0

    @property
    def is_even(self) -> bool:
        return self.fullest * len(self.counts) <= _EVEN

    @property
    def hot_from(self) -> float:
        """A key with at least this share is hot."""
        return min(0.5 / len(self.counts), _HOT_SHARE)

    @property
    def has_hot_key(self) -> bool:
        return self.hottest >= self.hot_from

    @property
    def strays(self) -> tuple[bytes, ...]:
        """Keys with records in other partitions than the one that Kafka's default partitioner chooses."""
        expected = ((each, (partition_for(each.key, len(self.counts)),)) for each in self.keys)
        return tuple(each.key for each, partition in expected if each.partitions and each.partitions != partition)


Name = Literal["order by key", "more partitions", "no order, or a share group", "salted keys"]


@dataclass(frozen=True, slots=True)
class Remedy:
    """``fits`` says whether it helps with this topic, ``why`` gives the reason, ``costs`` the disadvantage."""

    name: Name
    fits: bool
    why: str
    costs: str
    commands: tuple[str, ...]


def fullest_if(survey: KeySurvey, *, partitions: int, salts: int = 1) -> float:
    """The share of the fullest partition if the topic had ``partitions`` partitions.

    ``salts`` is how many keys replace each hot key. Known keys go to the partition that the partitioner chooses; all
    other records are assumed to be spread evenly.
    """
    loads: defaultdict[int, float] = defaultdict(float)
    for each in survey.keys:
        if salts > 1 and each.least >= survey.hot_from * survey.total:
            for salt in range(salts):
                loads[partition_for(salted(each.key, salt), partitions)] += each.least / salts
        else:
            loads[partition_for(each.key, partitions)] += each.least
    rest = survey.total - sum(each.least for each in survey.keys)
    return (max(loads.values(), default=0) + rest / partitions) / survey.total


def salted(key: bytes, salt: int) -> bytes:
    return b"%s#%d" % (key, salt)


def salts_for(survey: KeySurvey) -> int:
    """How many keys should replace a hot key: each then has at most a quarter of a partition's fair share.

    A quarter, because several of them will fall into the same partition.
    """
    return max(2, min(_MAX_SALTS, math.ceil(4 * survey.hottest * len(survey.counts))))


def remedies(survey: KeySurvey) -> tuple[Remedy, ...]:
    """All remedies, each with whether it fits; try the first that fits first."""
    skewed = survey.has_hot_key or not survey.is_even
    return (
        _by_key(survey, skewed=skewed),
        _more_partitions(survey, skewed=skewed),
        _unordered(survey, skewed=skewed),
        _salted(survey),
    )


def _by_key(survey: KeySurvey, *, skewed: bool) -> Remedy:
    now, then = 1 / survey.fullest, 1 / max(survey.hottest, _ALMOST_ZERO)
    workers = max(_MIN_WORKERS, min(_MAX_WORKERS, math.ceil(_WORKERS_PER_LANE * then)))
    if not survey.keys:
        fits, why = False, "No record has a key, so there is no order by key to keep."
    elif survey.hottest >= survey.fullest / 2:
        fits = False
        why = f"One key has {survey.hottest:.0%} and stays one lane: at most {then:.1f} lanes would be busy at once."
    else:
        fits = skewed
        why = f"The hottest key has {survey.hottest:.1%}: {_lanes(then)} lanes can be busy, not {now:.1f} partitions."
    return Remedy(
        "order by key",
        fits,
        why,
        "Only the order between different keys.",
        (f"penstock run APP --set order=key --set concurrency={workers}",),
    )


def _lanes(count: float) -> str:
    return "any number of" if count > 1 / _ALMOST_ZERO / 2 else f"about {count:,.0f}"


def _more_partitions(survey: KeySurvey, *, skewed: bool) -> Remedy:
    wanted = 2 * len(survey.counts)
    then = fullest_if(survey, partitions=wanted)
    if not survey.keys:
        fits, why = False, "No record has a key: producers choose the partitions."
    elif survey.strays:
        fits, why = False, "Producers do not use Kafka's default partitioner, so the new partitions are unpredictable."
    elif survey.hottest >= survey.fullest / 2:
        fits, why = False, f"One key has {survey.hottest:.0%} and stays in one partition."
    else:
        fits = skewed and then <= _WORTH_IT * survey.fullest
        why = f"With {wanted}, the fullest would have {then:.0%} instead of {survey.fullest:.0%}."
    return Remedy(
        "more partitions",
        fits,
        why,
        "Keys move to other partitions, so a key's records from before and after may be processed out of order.",
        (
            f"penstock topics keys {survey.topic} --partitions {wanted}",
            f"penstock topics grow {survey.topic} --partitions {wanted}",
        ),
    )


def _unordered(survey: KeySurvey, *, skewed: bool) -> Remedy:
    return Remedy(
        "no order, or a share group",
        skewed,
        "Every record has its own lane, so no key and no partition delays other records."
        if survey.keys
        else "No record has a key, so no order is lost.",
        "The order of records with the same key.",
        (
            "penstock run APP --set order=none --set concurrency=64",
            "penstock run APP --set mode=share --set order=none --set concurrency=64",
        ),
    )


def _salted(survey: KeySurvey) -> Remedy:
    salts = salts_for(survey)
    then = fullest_if(survey, partitions=len(survey.counts), salts=salts)
    if not survey.has_hot_key:
        why = "No single key is hot."
    elif survey.strays:
        why = f"Split into {salts} keys, each would have {survey.hottest / salts:.1%} of all records."
    else:
        why = f"Split into {salts} keys, the fullest partition would have {then:.0%}, not {survey.fullest:.0%}."
    return Remedy(
        "salted keys",
        survey.has_hot_key,
        why,
        f"Producers must write KEY#0 to KEY#{salts - 1}; only records of the same one of these stay in order.",
        (f"penstock topics keys {survey.topic} --salt {salts}",),
    )
