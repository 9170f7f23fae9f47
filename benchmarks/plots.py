"""Line charts as SVG files, without a library."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

_COLORS = ("#8a8f98", "#2f6fdb", "#d98324", "#1a9850", "#b2182b")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 720, 180, 64, 40, 56


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Lines that share a vertical axis, which begins at 0."""

    title: str
    lines: Sequence[Line]


def write_svg(path: Path, title: str, panels: Sequence[Panel], *, x: str) -> None:
    """Draw the panels below each other, with one legend. Equal names have equal colors."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    colors = {name: _COLORS[number % len(_COLORS)] for number, name in enumerate(names)}
    height = _TOP + len(panels) * (_HEIGHT + _GAP) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 24} {height}" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        _text(_LEFT, 18, title, size=13),
    ]
    end = max(at for panel in panels for line in panel.lines for at, _ in line.points)
    for number, panel in enumerate(panels):
        parts += _panel(panel, _TOP + 16 + number * (_HEIGHT + _GAP), end, colors)
    for number, name in enumerate(names):
        at = _LEFT + number * 110
        parts.append(f'<rect x="{at}" y="{height - 22}" width="14" height="4" fill="{colors[name]}"/>')
        parts.append(_text(at + 20, height - 16, name))
    parts.append(_text(_LEFT + _WIDTH - 40, height - 16, x))
    path.write_text("\n".join([*parts, "</svg>", ""]), encoding="utf-8")


def _panel(panel: Panel, top: float, end: float, colors: dict[str, str]) -> list[str]:
    most = max((value for line in panel.lines for _, value in line.points), default=1.0) or 1.0
    parts = [_text(_LEFT, top - 6, panel.title)]
    for part in range(5):
        y, x = top + _HEIGHT * part / 4, _LEFT + _WIDTH * part / 4
        parts.append(f'<line x1="{_LEFT}" y1="{y:.0f}" x2="{_LEFT + _WIDTH}" y2="{y:.0f}" stroke="#e3e5e8"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{most * (4 - part) / 4:,.0f}", anchor="end"))
        parts.append(_text(x, top + _HEIGHT + 16, f"{end * part / 4:.0f}", anchor="middle"))
    for line in panel.lines:
        points = " ".join(
            f"{_LEFT + _WIDTH * at / end:.1f},{top + _HEIGHT * (1 - value / most):.1f}" for at, value in line.points
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colors[line.name]}" stroke-width="1.6"/>')
    return parts


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    style = f'font-family="sans-serif" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {style} x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'
