"""Figures of charts: those under the pointer, and lines that say only what is known."""

import pytest

from dashboard_tab import Tab

_LINE = """async ([points, at]) => {
    const { lineChart } = await import("/static/charts/line_chart.js");
    const from = points[0][0], to = points.at(-1)[0];
    const chart = lineChart({ key: "line", points, format: String, label: "" });
    return chart.props.at(52 + ((at - from) / (to - from)) * 936, 0, 1000).tip.split("\\n")[1];
}"""
_SPARKLINE = """async (values) => {
    const { sparkline } = await import("/static/canvas.js");
    const parts = sparkline(values, { width: 84, height: 20 }).children.flat(9).filter(Boolean);
    const lines = parts.filter((each) => each.tag === "polyline").map((each) => each.props.points.split(" "));
    return lines.map((points) => points.map((xy) => Number(xy.split(",")[0])));
}"""


@pytest.mark.parametrize(("at", "value"), [(0, "1"), (4, "2"), (90, "2"), (200, "2"), (400, "3"), (1000, "4")])
def test_the_value_under_the_pointer_is_that_of_its_time(tab: Tab, at: int, value: str) -> None:
    """Points need not be evenly spaced: the concurrency that auto has found changes now and then."""
    page = tab.open("apps")
    assert page.evaluate(_LINE, [[[0, 1], [3, 2], [506, 3], [1000, 4]], at]) == value


def test_a_small_line_has_gaps_where_nothing_is_known(tab: Tab) -> None:
    page = tab.open("apps")
    assert page.evaluate(_SPARKLINE, [1, 2, 3, 4, 5]) == [[2, 22, 42, 62, 82]]
    assert page.evaluate(_SPARKLINE, [1, 2, None, 4, 5]) == [[2, 22], [62, 82]]
    assert page.evaluate(_SPARKLINE, [None, None, None, 4, 5]) == [[62, 82]]
    assert page.evaluate(_SPARKLINE, [None, 3, None]) == []
