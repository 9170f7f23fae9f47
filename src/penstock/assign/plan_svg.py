"""Draws a plan as a self-contained SVG file, for ``penstock plan --svg``.

It exists so that people can attach a planned rebalance to a ticket or a page and see at a glance what would move.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from penstock.assign.plan import Plan, Side, Spread
from penstock.core.records.record import TopicPartition
from penstock.core.text.foreign_text import printable_line
from penstock.core.text.plurals import counted
from penstock.errors import ConfigError

MOST_CELLS = 60_000

_MARGIN = 28
_CELL, _LEAST_CELL, _GRID = 18, 3, 720  # the width of a cell, and what cells share
_ROW, _LEAST_ROW, _ROWS = 24, 6, 960  # the same for rows
_READABLE = 11  # the smallest width or height for readable text
_TOPIC_GAP = 12
_LETTER = 6.7  # of the 12 pixel font, about
_LONGEST_NAME = 32
_BAR, _BAR_GAP = 96, 92  # the longest bar, and room for its numbers
_FACT = 20

_STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; font-size: 12px;
       fill: #1f2933; }
.title { font-size: 17px; font-weight: 650; }
.quiet { fill: #66788a; }
.small { font-size: 10px; fill: #66788a; }
.end { text-anchor: end; }
.mid { text-anchor: middle; }
.none { fill: #eef1f5; }
.keeps { fill: #3f72af; }
.gets { fill: #2e9e6b; }
.gives { fill: #fdf0f1; stroke: #d1495b; stroke-width: 1.2; stroke-dasharray: 2.5 2; }
.before { fill: #c3ccd6; }
.after { fill: #3f72af; }
.rule { stroke: #dde3e9; }
"""


@dataclass(frozen=True)
class _Measure:
    """A column of bars: its title, and how to get the figures of the members from one side of the plan."""

    name: str
    figures: Callable[[Side], Mapping[str, float]]


_PARTITIONS = _Measure("partitions", lambda side: {name: len(tps) for name, tps in side.partitions.items()})
_LAG = _Measure("lag", lambda side: side.lags)
_RATE = _Measure("records/s", lambda side: side.rates)


def picture(title: str, plans: Sequence[Plan], names: Mapping[str, str]) -> str:
    """The plans below each other, as an SVG; ``names`` are the labels of the member ids."""
    panels = [_Panel(plan, names) for plan in plans]
    cells = sum(panel.cells for panel in panels)
    if cells > MOST_CELLS:
        raise ConfigError(
            f"The picture would have {cells:,} cells; the limit is {MOST_CELLS:,}.",
            hint="Use --json for the complete plan.",
        )
    parts = [_text(_MARGIN, _MARGIN + 14, title, "title")]
    top = _MARGIN + 32.0
    for panel in panels:
        parts.append(f'<g transform="translate({_MARGIN},{top:.0f})">{"".join(panel.drawn)}</g>')
        top += panel.height + 26
    width = max([_MARGIN + _LETTER * 1.5 * len(title), *(panel.width for panel in panels)]) + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{top:.0f}" '
        f'viewBox="0 0 {width:.0f} {top:.0f}" role="img"><title>{escape(printable_line(title))}</title>'
        f"<style>{_STYLE}</style>"
        f'<rect width="100%" height="100%" rx="10" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


class _Panel:
    """One plan: a grid of members and partitions, bars beside it, figures below."""

    def __init__(self, plan: Plan, names: Mapping[str, str]) -> None:
        self._plan = plan
        self._names = names
        self._members = list(dict.fromkeys([*plan.before.partitions, *plan.after.partitions]))
        self._tps = sorted({*_owners(plan.before), *_owners(plan.after)})
        self.cells = len(self._members) * len(self._tps)
        self._cell = max(_LEAST_CELL, min(_CELL, _GRID / max(1, len(self._tps))))
        self._row = max(_LEAST_ROW, min(_ROW, _ROWS / max(1, len(self._members))))
        shown = max((len(_short(names.get(name, name))) for name in self._members), default=0)
        self._left = shown * _LETTER + 14
        self.drawn: list[str] = []
        self.width = self.height = 0.0
        if self.cells <= MOST_CELLS:
            self._draw()

    def _draw(self) -> None:
        self._add(_text(0, 12, self._headline(), "quiet"))
        top = 58.0
        right = self._draw_grid(top)
        bottom = top + len(self._members) * self._row
        self.width = self._draw_bars(right + 26, top)
        bottom = self._draw_legend(bottom + 26)
        self.height = self._draw_figures(bottom + 26)

    def _headline(self) -> str:
        moves = len(self._plan.moves)
        return f"{self._plan.assignor}: {moves} of {len(self._tps)} partitions move"

    def _draw_grid(self, top: float) -> float:
        """Draw the grid; returns its right edge."""
        before, after = _owners(self._plan.before), _owners(self._plan.after)
        for at, member in enumerate(self._members):
            if self._row >= _READABLE:
                self._add(
                    _text(0, top + at * self._row + self._row / 2 + 4, _short(self._names.get(member, member)), "")
                )
        x, topic = self._left, None
        for tp in self._tps:
            if tp[0] != topic:
                x += _TOPIC_GAP if topic is not None else 0
                topic = tp[0]
                room = sum(other[0] == topic for other in self._tps) * self._cell
                self._add(_text(x, top - 24, _short(topic, max(3, int(room / _LETTER))), ""))
            if self._cell >= _READABLE:
                self._add(_text(x + self._cell / 2, top - 7, str(tp[1]), "small mid"))
            for at, member in enumerate(self._members):
                kind = _kind(before.get(tp) == member, after.get(tp) == member)
                self._add(self._square(x, top + at * self._row, kind))
            x += self._cell
        return x

    def _square(self, x: float, y: float, kind: str) -> str:
        gap = 2.0 if self._cell >= _READABLE else 0.5
        tall = max(self._row - 2 * gap, self._row / 2)
        return _rect(x + gap / 2, y + gap, self._cell - gap, tall, kind, 3 if self._cell >= _READABLE else 0)

    def _draw_bars(self, left: float, top: float) -> float:
        """Draw a bar for before and one for after, for each measure that is known; returns the right edge."""
        measures = [_PARTITIONS, *(each for each in (_LAG, _RATE) if any(each.figures(self._plan.before).values()))]
        for measure in measures:
            before, after = measure.figures(self._plan.before), measure.figures(self._plan.after)
            most = max([*before.values(), *after.values()], default=0) or 1
            self._add(_text(left, top - 7, measure.name, "small"))
            for at, member in enumerate(self._members):
                y = top + at * self._row
                old, new = before.get(member), after.get(member)
                self._add(_rect(left, y + self._row * 0.2, _BAR * (old or 0) / most, self._row * 0.24, "before", 1.5))
                self._add(_rect(left, y + self._row * 0.48, _BAR * (new or 0) / most, self._row * 0.32, "after", 1.5))
                if self._row >= _READABLE:
                    numbers = f"{_figure(old)} → {_figure(new)}"
                    self._add(_text(left + _BAR + 6, y + self._row / 2 + 4, numbers, "small"))
            left += _BAR + _BAR_GAP
        return left

    def _draw_legend(self, top: float) -> float:
        x = self._left
        kinds = ("keeps", "keeps"), ("gets", "gets"), ("gives", "gives up"), ("before", "before"), ("after", "after")
        for kind, meaning in kinds:
            self._add(_rect(x, top - 10, 13, 13, kind, 3))
            self._add(_text(x + 20, top, meaning, "quiet"))
            x += 20 + len(meaning) * _LETTER + 22
        return top

    def _draw_figures(self, top: float) -> float:
        plan = self._plan
        facts = [("", "before", "after"), ("partitions each", _spread(plan.before.spread), _spread(plan.after.spread))]
        if any(plan.before.lags.values()):
            facts.append(("lag each", _spread(plan.before.lag), _spread(plan.after.lag)))
        if any(plan.before.rates.values()):
            facts.append(("records/s each", _spread(plan.before.rate), _spread(plan.after.rate)))
        if plan.before.far or plan.after.far:
            facts.append(("read across racks", str(plan.before.far), str(plan.after.far)))
        for at, (name, old, new) in enumerate(facts):
            style = "" if at else "small"
            for x, cell in ((0.0, name), (130.0, old), (350.0, new)):
                self._add(_text(x, top + at * _FACT, cell, "quiet" if at and not x else style))
        top += len(facts) * _FACT + 4
        for name, pause in (("eager", plan.eager), ("cooperative", plan.cooperative)):
            words = counted(pause.partitions, "partition stops", "partitions stop")
            if pause.partitions:
                words += f", for up to {pause.seconds:g} s, while {pause.records:,.0f} records come in"
            self._add(_text(0, top, name, "quiet") + _text(130, top, words, ""))
            top += _FACT
        self.width = max(self.width, 560)
        return top

    def _add(self, part: str) -> None:
        self.drawn.append(part)


def _owners(side: Side) -> dict[TopicPartition, str]:
    return {tp: member for member, tps in side.partitions.items() for tp in tps}


def _kind(had: bool, has: bool) -> str:  # noqa: FBT001 - two sides of one thing
    if had:
        return "keeps" if has else "gives"
    return "gets" if has else "none"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.1f}"  # noqa: PLR2004 - a matter of taste


def _spread(spread: Spread) -> str:
    return f"{_figure(spread.least)} to {_figure(spread.most)}, deviation {spread.deviation:,.1f}"


def _short(text: str, longest: int = _LONGEST_NAME) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(printable_line(text))}</text>'


def _rect(x: float, y: float, width: float, height: float, kind: str, corner: float) -> str:  # noqa: PLR0917 - a box
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{corner:g}" class="{kind}"/>'
