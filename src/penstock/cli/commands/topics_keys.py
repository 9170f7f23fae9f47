"""``penstock topics keys``: finds hot keys and suggests remedies."""

from typing import Annotated, Any

import typer

from penstock.cli.console.completion import TopicName
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.screen import err, out, print_json
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import Styled, print_table
from penstock.core.records.key_skew_rules import KeyCount, KeySurvey, Remedy, fullest_if, remedies
from penstock.core.text.plurals import counted
from penstock.core.text.readable_bytes import as_plain, as_text, readable
from penstock.errors import ConfigError
from penstock.ops.key_skew import survey_keys

_EXAMPLES = """
[bold]Examples[/]

  penstock topics keys orders                     hot keys of the last 100,000 records, with remedies
  penstock topics keys orders --scan --limit 50   the 50 hottest keys of all records
  penstock topics keys orders --partitions 24     how even 24 partitions would be
  penstock topics keys orders --salt 8            how even 8 keys in place of each hot key would be
"""
_NUMBERS = ("RECORDS", "SHARE", "AT-MOST")


def register(topics: typer.Typer) -> None:
    topics.command("keys", epilog=_EXAMPLES)(keys)


def keys(
    topic: TopicName,
    *,
    sample: Annotated[int, typer.Option(min=1, metavar="N", help="Count the keys of the last N records.")] = 100_000,
    scan: Annotated[bool, typer.Option("--scan", help="Count the keys of all records.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Show at most N keys.")] = 20,
    partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show how even N partitions would be.")
    ] = None,
    salt: Annotated[
        int, typer.Option(min=1, metavar="N", help="Show how even N keys in place of each hot key would be.")
    ] = 1,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show the most frequent keys and their partitions, and remedies if a few keys have most of the records."""
    cluster = connect(brokers, config, settings)
    survey = survey_keys(cluster, topic, sample=None if scan else sample)
    if not survey.total:
        print_json({"topic": topic, "sample": 0, "keys": []}) if as_json else err.print("No records.")
        return
    asked = partitions is not None or salt > 1
    then = fullest_if(survey, partitions=partitions or len(survey.counts), salts=salt) if asked else None
    if then is not None and survey.strays:
        raise ConfigError(
            f"Key {as_text(survey.strays[0], limit=40)} is not in the partition of Kafka's default partitioner.",
            hint="Its producer uses another partitioner, so Penstock cannot predict where keys would go.",
        )
    if as_json:
        print_json(_as_json(survey, limit, then))
        return
    _show_keys(survey, limit)
    if then is not None:
        words = f"The fullest partition would have {then:.1%} of all records, instead of {survey.fullest:.1%}."
        out.print()
        out.print(words)
        return
    _show_remedies(remedies(survey))


def _show_keys(survey: KeySurvey, limit: int) -> None:
    shown = survey.keys[:limit]
    rows = [_row(each, survey.total) for each in shown]
    if survey.unkeyed:
        share = f"{survey.unkeyed / survey.total:.1%}"
        rows.append((Styled("no key", "dim"), f"{survey.unkeyed:,}", share, share, "any"))
    print_table(("KEY", "RECORDS", "SHARE", "AT-MOST", "PARTITIONS"), rows, right=_NUMBERS)
    fullest = survey.counts.index(max(survey.counts))
    out.print()
    out.print(
        f"{counted(survey.total, 'record')} counted, with about {counted(survey.distinct, 'key')}. "
        f"Partition {fullest} has {survey.fullest:.1%} of them; an even share is {1 / len(survey.counts):.1%}.",
        markup=False,
        soft_wrap=True,
    )
    if survey.strays:
        out.print(
            f"{counted(len(survey.strays), 'key is', 'keys are')} in several partitions, or not in that of Kafka's "
            f"default partitioner, such as {as_text(survey.strays[0], limit=40)}. Their order is not guaranteed.",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def _row(each: KeyCount, total: int) -> tuple[object, ...]:
    """Counts are estimates for rare keys, so both bounds are shown."""
    return (
        as_text(each.key, limit=80),
        f"{each.least:,}" if each.least == each.most else f"{each.least:,} to {each.most:,}",
        f"{each.least / total:.1%}",
        f"{each.most / total:.1%}",
        ",".join(map(str, each.partitions)),
    )


def _show_remedies(found: tuple[Remedy, ...]) -> None:
    out.print()
    if not any(each.fits for each in found):
        out.print("The records are evenly spread. Nothing needs to be done.")
        return
    for each in sorted(found, key=lambda each: not each.fits):
        mark = ("✓", "green") if each.fits else ("✗", "dim")
        out.print(f"{mark[0]} {each.name}", style=mark[1])
        for line in (each.why, *((f"Costs: {each.costs}",) if each.fits else ())):
            out.print(f"    {line}", markup=False, soft_wrap=True)
        for command in each.commands if each.fits else ():
            out.print(f"    $ {command}", markup=False, soft_wrap=True, style="bold")


def _as_json(survey: KeySurvey, limit: int, then: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topic": survey.topic,
        "sample": survey.total,
        "distinct": survey.distinct,
        "unkeyed": survey.unkeyed,
        "partitions": list(survey.counts),
        "keys": [
            {
                "key": as_plain(readable(each.key)),
                "records": each.least,
                "at_most": each.most,
                "share": each.least / survey.total,
                "partitions": list(each.partitions),
            }
            for each in survey.keys[:limit]
        ],
        "strays": [as_plain(readable(key)) for key in survey.strays],
        "remedies": [
            {
                "remedy": each.name,
                "fits": each.fits,
                "why": each.why,
                "costs": each.costs,
                "commands": list(each.commands),
            }
            for each in remedies(survey)
        ],
    }
    return found if then is None else {**found, "fullest": survey.fullest, "fullest_then": then}
