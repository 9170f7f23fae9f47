"""Offsets as CSV, in the format of ``kafka-consumer-groups``: ``topic,partition,offset``, or with the group first."""

import csv
import io
from collections.abc import Mapping, Sequence

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

# A spreadsheet runs a cell that starts with one of these as a formula. A leading apostrophe tells spreadsheets and
# `read_offsets` that the cell is text. A name that itself starts with an apostrophe therefore gets a second one.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_TEXT_MARK = "'"

Plan = dict[str, dict[TopicPartition, int]]

_PLAIN, _WITH_GROUP = 3, 4
_FORM = "Each line is topic,partition,offset, or group,topic,partition,offset."
_MAX_INT32, _MAX_INT64 = 2**31 - 1, 2**63 - 1


def write_offsets(plan: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Three columns for one group, four columns for several groups."""
    lines = [
        ",".join([*([_as_cell(group)] if len(plan) > 1 else []), _as_cell(topic), str(partition), str(offset)]) + "\n"
        for group, offsets in plan.items()
        for (topic, partition), offset in sorted(offsets.items())
    ]
    return "".join(lines)


def read_offsets(text: str, *, groups: Sequence[str], name: str) -> Plan:
    """The offsets in a file, by group. ``name`` is the file's name. Lines of three columns need exactly one group."""
    plan: Plan = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not row:
            continue
        where = f"{name} line {number}"
        group, rest = _split(row, groups, where)
        topic, partition, offset = rest
        tp = (topic, _number(partition, _MAX_INT32, where))
        if tp in plan.get(group, {}):
            raise ConfigError(f"{where}: {topic}-{partition} is listed twice.", hint="Keep one line per partition.")
        plan.setdefault(group, {})[tp] = _number(offset, _MAX_INT64, where)
    if not plan:
        raise ConfigError(f"{name} contains no offsets.", hint=_FORM)
    return plan


def _as_cell(name: str) -> str:
    text = _TEXT_MARK + name if name.startswith((*_FORMULA, _TEXT_MARK)) else name
    # Quoted without the csv module: its older versions do not quote a lone carriage return, which then splits the line.
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text


def _from_cell(text: str) -> str:
    """Remove an apostrophe that `_as_cell` added. Any other apostrophe belongs to the name: Kafka's tool adds none."""
    return text[1:] if text[:1] == _TEXT_MARK and text[1:].startswith((*_FORMULA, _TEXT_MARK)) else text


def _split(row: Sequence[str], groups: Sequence[str], where: str) -> tuple[str, Sequence[str]]:
    fields = [_from_cell(each.strip()) for each in row]
    if len(fields) == _WITH_GROUP:
        return fields[0], fields[1:]
    if len(fields) != _PLAIN:
        raise ConfigError(f"{where} has {len(fields)} columns.", hint=_FORM)
    if len(groups) != 1:
        raise ConfigError(
            f"{where} has no group column, and {len(groups)} groups were given.",
            hint="Give exactly one group, or write the group as the first column of each line.",
        )
    return groups[0], fields


def _number(text: str, most: int, where: str) -> int:
    if text.isdecimal() and text.isascii() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise ConfigError(f"{where}: {text!r} is not a whole number from 0 to {most}.", hint=_FORM)
