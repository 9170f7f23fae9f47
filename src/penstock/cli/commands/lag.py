"""``penstock lag``."""

import time
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

import typer
from rich.live import Live
from rich.text import Text

from penstock.cli.console.completion import complete_groups
from penstock.cli.console.connect import ClientSettings, ConfigFile, connect
from penstock.cli.console.recommendation_text import recommendation_json, recommendation_lines
from penstock.cli.console.screen import err, out, print_json, print_styled_lines, shown_line
from penstock.cli.console.shared_options import Brokers, Json
from penstock.cli.console.tables import STATUS_STYLES, Styled, duration, rate, sparkline, table_lines
from penstock.core.progress.lag_status import Status, worst
from penstock.core.text.durations import seconds
from penstock.core.text.plurals import at_most
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.group_lag import GroupLag, PartitionLag, survey
from penstock.ops.groups_of_any_kind import all_groups, no_group
from penstock.ops.member_recommendation import recommend as recommendations_for

PANEL = "Operating"
# Different from the exit codes of errors.
EXIT_CODES = {Status.OK: 0, Status.WARN: 11, Status.STALL: 12, Status.STOP: 13, Status.REWIND: 14}
_COLUMNS = ("GROUP", "STATUS", "STATE", "LAG", "LAG-TIME", "LOST", "IN", "OUT", "DRAINED-IN", "LAST-COMMIT")
_PARTITION_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "STATUS", "CLIENT", *_COLUMNS[3:], "WHY")
_NUMBERS = ("LAG", "LAG-TIME", "LOST", "IN", "OUT", "DRAINED-IN", "LAST-COMMIT", "PARTITION")
_HISTORY = 60

_EXAMPLES = """
[bold]Examples[/]

  penstock lag                              every group, one line each
  penstock lag shipping --partitions        one group, partition by partition
  penstock lag shipping --watch             live, with the last minutes as a sparkline
  penstock lag shipping --recommend         how many members the group should have, and why
  penstock lag shipping || page-somebody    run a command unless the status is OK
"""


def register(app: typer.Typer) -> None:
    app.command("lag", epilog=_EXAMPLES, rich_help_panel=PANEL)(lag)


def lag(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="GROUP", help="Groups to show. Default: all.", autocompletion=complete_groups),
    ] = None,
    *,
    partitions: Annotated[
        bool, typer.Option("--partitions", "-p", help="Also show a line for each partition.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Repeat until Ctrl+C.")] = False,
    every: Annotated[str, typer.Option(metavar="DURATION", help="With --watch: time between two measurements.")] = "2s",
    times: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="With --watch: measure N times, then exit.")
    ] = None,
    window: Annotated[
        str, typer.Option(metavar="DURATION", help="Derive the status from the commits of this last period.")
    ] = "5m",
    recommend: Annotated[
        bool, typer.Option("--recommend", help="Show how many members one group should have, and why.")
    ] = False,
    brokers: Brokers = None,
    config: ConfigFile = None,
    settings: ClientSettings = None,
    as_json: Json = False,
) -> None:
    """Show how far behind groups are, in records and in seconds, and their status by Burrow's rules.

    The exit code is that of the worst group: 0 OK, 11 WARN, 12 STALL, 13 STOP, 14 REWIND.
    """
    width = seconds(window, name="--window")
    pause = seconds(every, name="--every")
    if recommend:
        name = _only_group(groups or [], others={"--watch": watch, "--partitions": partitions})
        _recommend(connect(brokers, config, settings), name, window=width, as_json=as_json)
        return
    cluster = connect(brokers, config, settings)
    view = _View(cluster, groups or [], window=width, partitions=partitions)
    if watch:
        status = _watch(view, pause=pause, times=times, as_json=as_json)
    else:
        status = view.look()
        if as_json:
            print_json(view.as_json())
        else:
            print_styled_lines(view.lines())
    raise typer.Exit(EXIT_CODES[status])


def _only_group(groups: Sequence[str], *, others: Mapping[str, bool]) -> str:
    for flag in (flag for flag, is_given in others.items() if is_given):
        raise ConfigError(f"--recommend and {flag} do not go together.", hint=f"Leave {flag} out.")
    if len(groups) != 1:
        raise ConfigError(
            f"--recommend needs exactly one group, and {len(groups) or 'none'} {'are' if groups else 'is'} named.",
            hint="Write `penstock lag GROUP --recommend`. `penstock groups ls` lists the groups.",
        )
    return groups[0]


def _recommend(cluster: Cluster, group: str, *, window: float, as_json: bool) -> None:
    found = recommendations_for(cluster, group, now=time.time(), window=window)
    if as_json:
        print_json(recommendation_json(group, found))
    else:
        print_styled_lines(recommendation_lines(group, found))


class _View:
    def __init__(self, cluster: Cluster, names: Sequence[str], *, window: float, partitions: bool) -> None:
        self._cluster = cluster
        self._names = names
        self._window = window
        self._partitions = partitions
        self._past: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_HISTORY))
        self._found: Mapping[str, GroupLag | PenstockError] = {}

    def look(self) -> Status:
        names = self._names or [each.name for each in all_groups(self._cluster)[0]]
        if not names:
            self._cluster.require_sight("group")
        self._found = survey(self._cluster, names, now=time.time(), window=self._window)
        self._refuse_unknown()
        for name, each in self._found.items():
            if not isinstance(each, GroupLag):
                continue
            self._past[name].append(each.lag)
        return worst(each.status for each in self._found.values() if isinstance(each, GroupLag))

    def _refuse_unknown(self) -> None:
        """Raise if a named group does not exist or cannot be read. Failures after the first look are only shown."""
        for name, each in self._found.items():
            if isinstance(each, GroupLag):
                if name in self._names and not each.group.exists:
                    raise no_group(name, self._cluster)
            elif name in self._names and not self._past:
                raise each

    def lines(self, *, history: bool = False) -> list[str]:
        good = {name: each for name, each in self._found.items() if isinstance(each, GroupLag)}
        columns = (*_COLUMNS, "HISTORY") if history else _COLUMNS
        rows = [(*_row(name, each), *([sparkline(self._past[name])] if history else [])) for name, each in good.items()]
        lines = table_lines(columns, rows, right=_NUMBERS) if rows else ["No groups."]
        if self._partitions:
            tps = [_partition_row(name, each) for name, group in good.items() for each in group.partitions]
            lines += ["", *table_lines(_PARTITION_COLUMNS, tps, right=_NUMBERS)]
        return lines + [shown_line(each) for each in self._problems(good)]

    def _problems(self, good: Mapping[str, GroupLag]) -> list[str]:
        lines = [f"{name}: {each.problem}" for name, each in self._found.items() if isinstance(each, PenstockError)]
        for name, group in good.items():
            if group.lost:
                lost = at_most(group.lost, "record")
                lines.append(f"{name}: retention deleted {lost} that the group had not committed.")
            lines += [f"{name}: {each.error}" for each in group.partitions if each.error]
        return lines

    def as_json(self) -> dict[str, Any]:
        return {"groups": [group_json(name, each) for name, each in self._found.items()]}


def _watch(view: _View, *, pause: float, times: int | None, as_json: bool) -> Status:
    status, looks = Status.OK, 0
    try:
        live_here = out.is_terminal and not as_json
        with Live(console=out, auto_refresh=False) if live_here else _Plain() as live:
            while True:
                status = view.look()
                if as_json:
                    print_json(view.as_json(), indent=None)
                else:
                    live.update(Text.from_ansi("\n".join(view.lines(history=True)), no_wrap=True), refresh=True)
                looks += 1
                if looks == times:
                    return status
                time.sleep(pause)
    except KeyboardInterrupt:
        err.print("Stopped.", style="dim")
        return status


class _Plain:
    """Stands in for ``Live`` without a terminal: prints each update below the last one."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, text: Text, *, refresh: bool) -> None:  # noqa: ARG002 - as Live has it
        print_styled_lines([text.plain])


def status_text(status: Status) -> Styled:
    return Styled(status.name, STATUS_STYLES[status.name])


def _row(name: str, each: GroupLag) -> tuple[object, ...]:
    known = each.partitions
    rates_in = [part.rate_in for part in known if part.rate_in is not None]
    rates_out = [part.rate_out for part in known if part.rate_out is not None]
    ages = [part.commit_age for part in known if part.commit_age is not None]
    drains = [part.drain_seconds for part in known if part.lag is not None]
    return (
        name,
        status_text(each.status),
        each.group.state,
        f"{each.lag:,}",
        duration(each.lag_seconds),
        f"{each.lost:,}" if each.lost else "-",
        rate(sum(rates_in) if rates_in else None),
        rate(sum(rates_out) if rates_out else None),
        duration(None if None in drains else max((part for part in drains if part is not None), default=None)),
        duration(min(ages, default=None)),
    )


def _partition_row(name: str, each: PartitionLag) -> tuple[object, ...]:
    return (
        name,
        each.topic,
        each.partition,
        status_text(each.verdict.status),
        each.member.client if each.member else "-",
        None if each.lag is None else f"{each.lag:,}",
        duration(each.lag_seconds),
        f"{each.lost:,}" if each.lost else "-",
        rate(each.rate_in),
        rate(each.rate_out),
        duration(each.drain_seconds),
        duration(each.commit_age),
        each.error or each.verdict.reason,
    )


def group_json(name: str, each: GroupLag | PenstockError) -> dict[str, Any]:
    if isinstance(each, PenstockError):
        return {"group": name, "error": each.problem}
    return {
        "group": name,
        "type": each.group.type,
        "state": each.group.state,
        "status": each.status.name,
        "lag": each.lag,
        "lag_seconds": each.lag_seconds,
        "lost": each.lost,
        "partitions": [partition_json(part) for part in each.partitions],
    }


def partition_json(each: PartitionLag) -> dict[str, Any]:
    return {
        "topic": each.topic,
        "partition": each.partition,
        "committed": each.committed,
        "log_start": each.start,
        "log_end": each.end,
        "lag": each.lag,
        "lost": each.lost,
        "finished_above_commit": each.finished_above,
        "lag_seconds": each.lag_seconds,
        "seconds_to_last_record": each.span_seconds,
        "rate_in": each.rate_in,
        "rate_out": each.rate_out,
        "drain_seconds": each.drain_seconds,
        "commit_age_seconds": each.commit_age,
        "status": each.verdict.status.name,
        "reason": each.error or each.verdict.reason,
        "member": each.member.id if each.member else None,
        "client": each.member.client if each.member else None,
        "host": each.member.host if each.member else None,
    }
