"""The tables of ``penstock plan``: owners before and after, how even they are, and what the change costs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from penstock.assign.plan import Move, Plan, RebalancePause, Side, Spread
from penstock.cli.console.screen import out
from penstock.cli.console.tables import print_table, rate
from penstock.core.records.record import TopicPartition
from penstock.core.text.foreign_text import printable_line

_MOVES_SHOWN = 20
# With more cells, partitions are listed instead of drawn.
_MOST_CELLS = 4_000
_LONGEST_NAME = 40
_FIGURES = (
    "PLAN", "PARTITIONS", "LAG", "RATE", "ACROSS-RACKS", "MOVES", "BEYOND-NEED", "EAGER-STOPS", "COOPERATIVE-STOPS",
)  # fmt: skip
_KEEPS, _GIVES, _GETS, _NOTHING = ("■", ""), ("□", "red"), ("●", "green"), ("·", "dim")

_REASONS = {
    "new": "it had no owner",
    "owner left": "its owner left",
    "unsubscribed": "its owner no longer subscribes",
    "nearer": "its new owner is in the rack of a replica",
    "balance": "its owner had more than its share",
    "exchange": "exchanged for another partition",
}


def show_plan(made: Plan, names: Mapping[str, str]) -> None:
    """``names`` maps member ids to the names to show."""
    members = list(dict.fromkeys([*made.before.partitions, *made.after.partitions]))
    tps = sorted({*_owners(made.before), *_owners(made.after)})
    if len(members) * len(tps) <= _MOST_CELLS:
        for line in matrix(made, members, tps, names):
            out.print(line, soft_wrap=True)
        _print_loads(made, members, names)
    else:
        _print_lists(made, members, names)
    _print_moves(made.moves, names)
    out.print()


def matrix(
    made: Plan, members: Sequence[str], tps: Sequence[TopicPartition], names: Mapping[str, str]
) -> Iterator[Text]:
    """One row per member, one column per partition, in as many blocks as the terminal's width needs."""
    before, after = _owners(made.before), _owners(made.after)
    heads = [*(_called(name, names) for name in members), *(topic for topic, _ in tps)]
    left = min(_LONGEST_NAME, max(map(len, heads), default=0)) + 2
    for topic, of_topic in groupby(tps, key=lambda tp: tp[0]):
        numbers = [number for _, number in of_topic]
        wide = len(str(numbers[-1])) + 1
        fit = max(8, (out.width - left) // wide)
        for at in range(0, len(numbers), fit):
            band = numbers[at : at + fit]
            head = Text(topic[: left - 1].ljust(left), style="bold")
            head.append("".join(str(number).rjust(wide) for number in band), style="dim")
            yield head
            for member in members:
                line = Text(_called(member, names)[: left - 1].ljust(left))
                for number in band:
                    had, has = before.get((topic, number)) == member, after.get((topic, number)) == member
                    mark, style = (_KEEPS if has else _GIVES) if had else _GETS if has else _NOTHING
                    line.append(mark.rjust(wide), style=style)
                yield line
    yield Text.assemble("■ keeps   ", ("□ gives up", "red"), "   ", ("● gets", "green"), style="dim")


def _print_loads(made: Plan, members: Sequence[str], names: Mapping[str, str]) -> None:
    def change(old: str | None, new: str | None) -> str:
        return f"{old or 'not a member'} → {new or 'left'}" if old != new else str(old)

    def count(side: Side, member: str) -> str | None:
        return str(len(side.partitions[member])) if member in side.partitions else None

    def lag(side: Side, member: str) -> str | None:
        return f"{side.lags[member]:,.0f}" if member in side.lags else None

    def speed(side: Side, member: str) -> str | None:
        return rate(side.rates[member]) if member in side.rates else None

    rows = [
        (_called(name, names), *(change(of(made.before, name), of(made.after, name)) for of in (count, lag, speed)))
        for name in members
    ]
    out.print()
    print_table(("MEMBER", "PARTITIONS", "LAG", "RATE"), rows)
    out.print()


def _print_lists(made: Plan, members: Sequence[str], names: Mapping[str, str]) -> None:
    table = Table("member", "before", "after", title=made.assignor, title_justify="left")
    for name in members:
        table.add_row(Text(_called(name, names)), _cell(made.before, name), _cell(made.after, name))
    out.print(table)


def _cell(side: Side, member: str) -> str | Text:
    if member not in side.partitions:
        return Text("not a member", style="dim")
    return shortened(side.partitions[member]) or Text("no partitions", style="dim")


def shortened(tps: Sequence[TopicPartition]) -> str:
    """Format as ``orders 0-3 7, returns 1``, with consecutive numbers as a range."""
    by_topic: dict[str, list[list[int]]] = {}
    for topic, number in sorted(tps):
        runs = by_topic.setdefault(topic, [])
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(
        f"{topic} {' '.join(str(low) if low == high else f'{low}-{high}' for low, high in runs)}"
        for topic, runs in by_topic.items()
    )


def _print_moves(moves: Sequence[Move], names: Mapping[str, str]) -> None:
    for move in moves[:_MOVES_SHOWN]:
        source = "no owner" if move.source is None else _called(move.source, names)
        words = f"{move.tp[0]} {move.tp[1]}: {source} → {_called(move.target, names)} ({_REASONS[move.reason]})"
        out.print(words, markup=False, soft_wrap=True)
    if len(moves) > _MOVES_SHOWN:
        out.print(f"… and {len(moves) - _MOVES_SHOWN} more; --json shows all.")


def show_figures(plans: Sequence[Plan]) -> None:
    """Compare the plans with the group as it is: how even each is, and what it costs."""
    rows: list[tuple[object, ...]] = [("before", *_evenness(plans[0].before), "", "", "", "")]
    for made in plans:
        beyond = made.beyond_need or None
        costs = (len(made.moves), beyond, _pause(made.eager), _pause(made.cooperative))
        rows.append((made.assignor, *_evenness(made.after), *costs))
    print_table(_FIGURES, rows)


def _evenness(side: Side) -> tuple[str, ...]:
    return _spread(side.spread), _spread(side.lag), _spread(side.rate), str(side.far)


def _spread(spread: Spread) -> str:
    return f"{spread.least:,.0f} to {spread.most:,.0f} ±{spread.deviation:,.1f}"


def _pause(pause: RebalancePause) -> str:
    """Format as ``5 for 3s, 144 wait, 2 rebalances``."""
    if not pause.rebalances:
        return "0"
    several = f", {pause.rebalances} rebalances" if pause.rebalances > 1 else ""
    waiting = f" for {pause.seconds:g}s, {pause.records:,.0f} wait" if pause.partitions else ""
    return f"{pause.partitions}{waiting}{several}"


def _owners(side: Side) -> dict[TopicPartition, str]:
    return {tp: member for member, tps in side.partitions.items() for tp in tps}


def _called(member: str, names: Mapping[str, str]) -> str:
    """Return the name of a member, escaped: it is foreign text, and terminals obey control characters."""
    return printable_line(names.get(member, member))
