"""The Grafana dashboard and the alert rules parse, and name only metrics that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.ops.metrics import METRICS

DEPLOY = Path(__file__).parents[3] / "deploy"
DOCS = DEPLOY.parent / "docs" / "metrics.md"
# Words of PromQL and of Grafana. All other words of an expression are metrics and labels.
_WORDS = {
    "and",
    "by",
    "group_left",
    "histogram_quantile",
    "increase",
    "instance",
    "job",
    "label_values",
    "le",
    "max",
    "min",
    "on",
    "or",
    "rate",
    "sum",
    "unless",
    "version",
}
_PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total"}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "penstock.json").read_text())
    return found


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text())["groups"]
    return list(group["rules"])


def expressions() -> list[str]:
    board = dashboard()
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    variables = [each["query"]["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    return [*asked, *variables, *(rule["expr"] for rule in rules())]


def strangers(expression: str) -> tuple[set[str], set[str]]:
    """The metrics and labels of the expression that do not exist."""
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]', "", expression)
    series = {name: metric for metric in METRICS.values() for name in _series(metric.kind, metric.name)}
    words = set(re.findall(r"[a-z_]+", bare)) - _WORDS
    named = {word for word in words if word.startswith(("kafka_", "penstock_", "process_"))}
    labels = {label for name in named if name in series for label in series[name].labels} | {"instance"}
    return named - series.keys() - _PROCESS, words - named - labels


def _series(kind: str, name: str) -> list[str]:
    return [f"{name}_{part}" for part in ("bucket", "sum", "count")] if kind == "histogram" else [name]


def test_every_metric_and_label_that_they_ask_for_exists() -> None:
    found = [strangers(expression) for expression in expressions()]
    assert len(found) > 40
    assert [each for each in found if each != (set(), set())] == []


@pytest.mark.parametrize(
    ("expression", "metrics", "labels"),
    [
        ("sum by (group) (penstock_nothing)", {"penstock_nothing"}, {"group"}),
        ("sum by (colour) (penstock_in_flight)", set(), {"colour"}),
        ("rate(penstock_handler_seconds[5m])", {"penstock_handler_seconds"}, set()),
        ('max(penstock_lanes{group=~"$group"}) > 3', set(), set()),
    ],
)
def test_the_check_finds_unknown_metrics(expression: str, metrics: set[str], labels: set[str]) -> None:
    assert strangers(expression) == (metrics, labels)


def test_the_dashboard_shows_every_metric_that_is_not_only_for_alerts() -> None:
    shown = " ".join(expressions())
    # The sums and the largest of a process are for autoscalers; a dashboard calculates the sums over processes.
    for_others = {name for name in METRICS if "_sum_lag" in name or "_max_lag" in name} | {
        "kafka_consumergroup_group_offset",
        "kafka_partition_earliest_offset",
        "penstock_stalled_records_total",
        "penstock_recommended_members",
    }
    assert {name for name in METRICS if name not in shown} == for_others


def test_panels_have_a_title_their_own_area_and_the_chosen_data_source() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for area in (panel["gridPos"] for panel in panels)
        for x in range(area["x"], area["x"] + area["w"])
        for y in range(area["y"], area["y"] + area["h"])
    ]
    assert len(cells) == len(set(cells)), "panels overlap"
    assert all(0 <= x < 24 for x, _ in cells)
    for panel in panels:
        assert panel["title"]
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["targets"]


def test_rules_say_how_bad_it_is_and_what_to_do_and_the_page_lists_them() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names)
    for rule in rules():
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
    assert re.findall(r"^\| `(Penstock\w+)` \|", DOCS.read_text(), re.MULTILINE) == names
