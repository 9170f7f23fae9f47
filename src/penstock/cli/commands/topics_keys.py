"""``penstock topics keys``: which keys are hot, and what to do about it."""

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

  penstock topics keys orders                     the hottest keys of the last 100,000 records, and what to do
  penstock topics keys orders --scan --limit 50   of all records
  penstock topics keys orders --partitions 24     how even it would be with 24 partitions,
  penstock topics keys orders --salt 8            or with eight keys in place of each hot one
"""
_NUMBERS = ("RECORDS", "SHARE", "AT-MOST")


def register(topics: typer.Typer) -> None:
    topics.command("keys", epilog=_EXAMPLES)(keys)


def keys(
    topic: TopicName,
    *,
    sample: Annotated[int, typer.Option(min=1, metavar="N", help="How many of the last records to look at.")] = 100_000,
    scan: Annotated[bool, typer.Option("--scan", help="Look at all of them.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many keys to show.")] = 20,
    partitions: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Say how even it would be with so many partitions.")
    ] = None,
    salt: Annotated[
        int, typer.Option(min=1, metavar="N", help="Say how even it would be with so many keys for each hot one.")
    ] = 1,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Which keys most records have, in which partitions they are, and what helps where a few of them have most."""
    cluster = connect(brokers, config, settings)
    survey = survey_keys(cluster, topic, sample=None if scan else sample)
    if not survey.total:
        print_json({"topic": topic, "sample": 0, "keys": []}) if as_json else err.print("No records.")
        return
    asked = partitions is not None or salt > 1
    then = fullest_if(survey, partitions=partitions or len(survey.counts), salts=salt) if asked else None
    if then is not None and survey.strays:
        raise ConfigError(
            f"Key {as_text(survey.strays[0], limit=40)} is not where Kafka's partitioner puts it.",
            hint="Where keys would go is known to the producers alone.",
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
        f"{counted(survey.total, 'record')} looked at, about {counted(survey.distinct, 'key')}. "
        f"Partition {fullest} has {survey.fullest:.1%} of them; an even share is {1 / len(survey.counts):.1%}.",
        markup=False,
        soft_wrap=True,
    )
    if survey.strays:
        out.print(
            f"{counted(len(survey.strays), 'key is', 'keys are')} not where Kafka's partitioner would put them, or in "
            f"several partitions, such as {as_text(survey.strays[0], limit=40)}: their order is not sure.",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )


def _row(each: KeyCount, total: int) -> tuple[object, ...]:
    """Counts of rare keys are lower than the truth at times, and told as what they are at least and at most."""
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
        out.print("Evenly spread: nothing needs to be done.")
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
