"""Offsets as lines of text, in the form of Kafka's own tool: ``topic,partition,offset``, or with the group in front."""

import csv
import io
from collections.abc import Mapping, Sequence

from penstock.core.records.record import TopicPartition
from penstock.errors import ConfigError

# A spreadsheet takes a cell that begins so for a formula and runs it. The mark before it says that it is text, to a
# spreadsheet as well as to `read_offsets`; so a name that begins with the mark has it twice.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_TEXT_MARK = "'"

Plan = dict[str, dict[TopicPartition, int]]

_PLAIN, _WITH_GROUP = 3, 4
_FORM = "Each line is topic,partition,offset, or group,topic,partition,offset."
_MAX_INT32, _MAX_INT64 = 2**31 - 1, 2**63 - 1


def write_offsets(plan: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Three columns for one group, four for several."""
    lines = [
        ",".join([*([_as_cell(group)] if len(plan) > 1 else []), _as_cell(topic), str(partition), str(offset)]) + "\n"
        for group, offsets in plan.items()
        for (topic, partition), offset in sorted(offsets.items())
    ]
    return "".join(lines)


def read_offsets(text: str, *, groups: Sequence[str], name: str) -> Plan:
    """What the file says for these groups; ``name`` is that of the file. Three columns need one group, and only one."""
    plan: Plan = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not row:
            continue
        where = f"{name} line {number}"
        group, rest = _split(row, groups, where)
        topic, partition, offset = rest
        tp = (topic, _number(partition, _MAX_INT32, where))
        if tp in plan.get(group, {}):
            raise ConfigError(f"{where}: {topic}-{partition} is named twice.", hint="Keep one line for each partition.")
        plan.setdefault(group, {})[tp] = _number(offset, _MAX_INT64, where)
    if not plan:
        raise ConfigError(f"{name} names no offsets.", hint=_FORM)
    return plan


def _as_cell(name: str) -> str:
    text = _TEXT_MARK + name if name.startswith((*_FORMULA, _TEXT_MARK)) else name
    # By hand: older versions of the csv module leave a lone return without quotes, and what follows it is a new line.
    return '"' + text.replace('"', '""') + '"' if any(each in text for each in ',"\r\n') else text


def _from_cell(text: str) -> str:
    """Other marks are the name's own: Kafka's tool writes none."""
    return text[1:] if text[:1] == _TEXT_MARK and text[1:].startswith((*_FORMULA, _TEXT_MARK)) else text


def _split(row: Sequence[str], groups: Sequence[str], where: str) -> tuple[str, Sequence[str]]:
    fields = [_from_cell(each.strip()) for each in row]
    if len(fields) == _WITH_GROUP:
        return fields[0], fields[1:]
    if len(fields) != _PLAIN:
        raise ConfigError(f"{where} has {len(fields)} columns.", hint=_FORM)
    if len(groups) != 1:
        raise ConfigError(
            f"{where} does not say of which group it is.", hint="Name one group, or use lines with the group in front."
        )
    return groups[0], fields


def _number(text: str, most: int, where: str) -> int:
    if text.isdecimal() and text.isascii() and len(text) <= len(str(most)) and int(text) <= most:
        return int(text)
    raise ConfigError(f"{where}: {text!r} is not a whole number from 0 on.", hint=_FORM)
