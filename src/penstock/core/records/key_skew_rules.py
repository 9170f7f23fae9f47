"""How a topic's records are spread over keys and partitions, and what to do where a few keys have most of them.

A partition is worked off by one member, and a key by one lane: the share of the fullest partition and of the hottest
key say how much can go on at once, however many members and workers there are.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from penstock.core.records.partitioner import partition_for

# The fullest partition against the mean of all, up to which a topic is even enough.
_EVEN = 1.25
# A key is hot from half of a partition's fair share on, or from a tenth of all: it is felt in any partition it is in.
_HOT_SHARE = 0.1
_MOST_SALTS = 64
_MOST_WORKERS = 256
_FEWEST_WORKERS = 8
_SPARE = 4  # workers for each lane that may be busy: the lanes' lengths differ
_WORTH_IT = 0.75
_NONE = 1e-9


@dataclass(frozen=True, slots=True)
class KeyCount:
    """A key, how many records have it at least and at most, and in which partitions they are."""

    key: bytes
    least: int
    most: int
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeySurvey:
    """``counts`` are the records looked at in each partition, ``keys`` the most frequent ones, hottest first.

    ``unkeyed`` records have no key; ``distinct`` is about how many keys there are.
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
        """The share that the hottest key has at least."""
        return self.keys[0].least / self.total if self.keys else 0.0

    @property
    def is_even(self) -> bool:
        return self.fullest * len(self.counts) <= _EVEN

    @property
    def hot_from(self) -> float:
        """The share from which on a key is hot."""
        return min(0.5 / len(self.counts), _HOT_SHARE)

    @property
    def has_hot_key(self) -> bool:
        return self.hottest >= self.hot_from

    @property
    def strays(self) -> tuple[bytes, ...]:
        """Keys that are not where Kafka's partitioner puts them, or not only there."""
        wanted = ((each, (partition_for(each.key, len(self.counts)),)) for each in self.keys)
        return tuple(each.key for each, home in wanted if each.partitions and each.partitions != home)


Name = Literal["order by key", "more partitions", "no order, or a share group", "salted keys"]


@dataclass(frozen=True, slots=True)
class Remedy:
    """``fits`` says whether it helps with what was found, ``why`` in a sentence, ``costs`` what is given up for it."""

    name: Name
    fits: bool
    why: str
    costs: str
    commands: tuple[str, ...]


def fullest_if(survey: KeySurvey, *, partitions: int, salts: int = 1) -> float:
    """The share of the fullest partition, if there were so many, and so many keys in place of each hot one.

    Of the keys that are known, each goes where the partitioner would put it; all other records are spread evenly.
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
    """So many that each part of the hottest key has a quarter of a partition's fair share: some will meet in one."""
    return max(2, min(_MOST_SALTS, math.ceil(4 * survey.hottest * len(survey.counts))))


def remedies(survey: KeySurvey) -> tuple[Remedy, ...]:
    """All that may be done, each with whether it fits; the first that fits is the one to begin with."""
    skewed = survey.has_hot_key or not survey.is_even
    return (
        _by_key(survey, skewed=skewed),
        _more_partitions(survey, skewed=skewed),
        _unordered(survey, skewed=skewed),
        _salted(survey),
    )


def _by_key(survey: KeySurvey, *, skewed: bool) -> Remedy:
    now, then = 1 / survey.fullest, 1 / max(survey.hottest, _NONE)
    workers = max(_FEWEST_WORKERS, min(_MOST_WORKERS, math.ceil(_SPARE * then)))
    if not survey.keys:
        fits, why = False, "No record has a key, so there is no order by key to keep."
    elif survey.hottest >= survey.fullest / 2:
        fits = False
        why = f"One key has {survey.hottest:.0%}, and stays one lane: no more than {then:.1f} would be busy at once."
    else:
        fits = skewed
        why = f"The hottest key has {survey.hottest:.1%}: {_lanes(then)} lanes may be busy, not {now:.1f} partitions."
    return Remedy(
        "order by key",
        fits,
        why,
        "Nothing but the order between different keys.",
        (f"penstock run APP --set order=key --set concurrency={workers}",),
    )


def _lanes(count: float) -> str:
    return "any number of" if count > 1 / _NONE / 2 else f"about {count:,.0f}"


def _more_partitions(survey: KeySurvey, *, skewed: bool) -> Remedy:
    wanted = 2 * len(survey.counts)
    then = fullest_if(survey, partitions=wanted)
    if not survey.keys:
        fits, why = False, "No record has a key: the producers put them where they are."
    elif survey.strays:
        fits, why = False, "Keys are not where Kafka's partitioner puts them, so nobody can say where they would go."
    elif survey.hottest >= survey.fullest / 2:
        fits, why = False, f"One key has {survey.hottest:.0%}, and stays whole wherever it goes."
    else:
        fits = skewed and then <= _WORTH_IT * survey.fullest
        why = f"With {wanted}, the fullest would have {then:.0%} instead of {survey.fullest:.0%}."
    return Remedy(
        "more partitions",
        fits,
        why,
        "Keys move to other partitions, so records from before and after may be handled out of order.",
        (
            f"penstock topics keys {survey.topic} --partitions {wanted}",
            f"penstock topics grow {survey.topic} --partitions {wanted}",
        ),
    )


def _unordered(survey: KeySurvey, *, skewed: bool) -> Remedy:
    return Remedy(
        "no order, or a share group",
        skewed,
        "Every record is a lane of its own, so neither a key nor a partition holds up others."
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
        why = f"With {salts} keys in its place, each would have {survey.hottest / salts:.1%} of all records."
    else:
        why = f"With {salts} keys in its place, the fullest partition would have {then:.0%}, not {survey.fullest:.0%}."
    return Remedy(
        "salted keys",
        survey.has_hot_key,
        why,
        f"Producers write KEY#0 to KEY#{salts - 1}; order holds within each of these only.",
        (f"penstock topics keys {survey.topic} --salt {salts}",),
    )
