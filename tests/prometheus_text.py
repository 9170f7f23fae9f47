"""Checks a scraped text as ``promtool check metrics`` does, and more."""

import re
from collections import Counter

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COUNTED = ("_bucket", "_count", "_sum", "_created", "_info")
# Words for units that are not the base unit, and abbreviations of those that are.
_WRONG_UNITS = {"ms", "millis", "milliseconds", "us", "ns", "minutes", "hours", "kb", "mb", "kilobytes", "sec", "secs"}
_UNITS = {"seconds", "bytes"}


def read_metrics(text: str) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def problems_of(text: str) -> list[str]:
    """The faults of the text, a sentence each."""
    families = list(text_string_to_metric_families(text))
    found = [f"{name} occurs {count} times" for name, count in Counter(f.name for f in families).items() if count > 1]
    for family in families:
        # The Kafka client chooses the names of its own metrics.
        if not family.name.startswith("process_"):
            found += _naming(family)
        found += _samples(family)
    declared = Counter(line.split()[2] for line in text.splitlines() if line.startswith("# TYPE "))
    helped = Counter(line.split()[2] for line in text.splitlines() if line.startswith("# HELP "))
    found += [f"{name} has {count} TYPE lines" for name, count in declared.items() if count > 1]
    found += [f"{name} has a TYPE and no HELP" for name in declared.keys() - helped.keys()]
    return found + ([] if text.endswith("\n") else ["the text does not end with a line break"])


def _naming(family: Metric) -> list[str]:
    name, words = family.name, family.name.split("_")
    found = []
    if not _NAME.fullmatch(name):
        found.append(f"{name} is not in snake case")
    if not family.documentation.strip():
        found.append(f"{name} has no help")
    if family.type not in ("counter", "gauge", "histogram"):
        found.append(f"{name} is of type {family.type}")
    if family.type != "counter" and name.endswith("_total"):
        found.append(f"{name} ends in _total and is no counter")
    if family.type == "counter" and any(not sample.name.endswith("_total") for sample in family.samples):
        found.append(f"{name} is a counter and does not end in _total")
    if name.endswith(_COUNTED) and not name.endswith("_build_info"):
        found.append(f"{name} ends as a part of a histogram does")
    if _WRONG_UNITS & set(words):
        found.append(f"{name} is not in a base unit")
    if _UNITS & set(words[:-1]):
        found.append(f"{name} does not end with its unit")
    return found


def _samples(family: Metric) -> list[str]:
    found = []
    seen = Counter((sample.name, tuple(sorted(sample.labels.items()))) for sample in family.samples)
    found += [f"{name}{dict(labels)} occurs {count} times" for (name, labels), count in seen.items() if count > 1]
    for sample in family.samples:
        if "" in sample.labels.values():
            found.append(f"{sample.name}{sample.labels} has an empty label")
        if family.type == "counter" and sample.value < 0:
            found.append(f"{sample.name} is below zero")
    return found + (_buckets(family) if family.type == "histogram" else [])


def _buckets(family: Metric) -> list[str]:
    found = []
    series: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    counts: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
        if sample.name.endswith("_bucket"):
            series.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_count"):
            counts[labels] = sample.value
    for labels, buckets in series.items():
        if buckets != sorted(buckets) or [value for _, value in buckets] != sorted(value for _, value in buckets):
            found.append(f"{family.name}{dict(labels)} has buckets that do not ascend")
        if buckets[-1] != (float("inf"), counts.get(labels)):
            found.append(f"{family.name}{dict(labels)} does not count what its last bucket does")
    return found
