"""`penstock plan` on a file."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli_helpers import Penstock
from hostile_text import Terminal
from penstock.assign.plan_json import read_group
from penstock.cli.console.plan_tables import shortened

GROUP = {
    "topics": {"orders": {"partitions": 4, "lag": [100, 0, 0, 0], "rate": [1, 2, 3, 4]}},
    "members": [
        {"id": "a", "topics": ["orders"], "owned": {"orders": [0, 1]}},
        {"id": "b", "topics": ["orders"], "owned": {"orders": [2, 3]}},
    ],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(GROUP), encoding="utf-8")
    return path


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Penstock:
    return Penstock("localhost:1", monkeypatch, capsys)


def test_it_shows_what_moves_how_even_it_gets_and_what_stops(penstock: Penstock, file: Path) -> None:
    shown = penstock("plan", str(file), "--members", "-b")
    assert shown.code == 0, shown.err
    lines = shown.out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["orders", "0", "1", "2", "3"],
        ["a", "■", "■", "●", "●"],
        ["b", "·", "·", "□", "□"],
    ]
    assert "orders 2: b → a (its owner left)" in lines
    assert "a      2 → 4      100" in shown.out
    assert "100 to 100 ±0.0" in lines[-1]
    assert lines[-1].endswith("4 for 3s, 30 wait 2 for 3s, 21 wait")


def test_a_plan_that_librdkafka_may_carry_out_otherwise_is_called_an_estimate(
    penstock: Penstock, file: Path, tmp_path: Path
) -> None:
    drawn = tmp_path / "plan.svg"
    assert "This is an estimate" in penstock("plan", str(file), "--svg", str(drawn)).err
    assert "(an estimate)" in drawn.read_text()
    both = penstock.json("plan", str(file), "--compare", "cooperative-sticky,lag-balanced")["plans"]
    assert [each["estimate"] is None for each in both] == [False, True]
    assert "estimate" not in penstock("plan", str(file), "--assignor", "lag-balanced", "--svg", str(drawn), "--yes").err
    assert "(an estimate)" not in drawn.read_text()


def test_it_draws_a_picture_and_keeps_the_group(penstock: Penstock, file: Path, tmp_path: Path) -> None:
    drawn, kept = tmp_path / "plan.svg", tmp_path / "kept.json"
    assert penstock("plan", str(file), "--members", "+1", "--svg", str(drawn), "--save", str(kept)).code == 0
    assert read_group(json.loads(kept.read_text())) == read_group(GROUP)
    assert ET.fromstring(drawn.read_text()).tag.endswith("svg")
    refused = penstock("plan", str(file), "--svg", str(tmp_path / "no" / "plan.svg"), ok=False)
    assert refused.code == 2
    assert "cannot be written" in refused.err


@pytest.mark.parametrize("flag", ["--save", "--svg"])
def test_a_file_is_replaced_only_after_confirmation(
    flag: str, penstock: Penstock, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("precious")
    refused = penstock("plan", str(file), flag, str(kept), ok=False)
    assert refused.code == 2
    assert "exists already" in refused.err
    assert "--yes" in refused.err
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert penstock("plan", str(file), flag, str(kept), ok=False).code == 130
    assert kept.read_text() == "precious"
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert penstock("plan", str(file), flag, str(kept)).code == 0
    assert kept.read_text() != "precious"
    kept.write_text("precious")
    assert penstock("plan", str(file), flag, str(kept), "--yes").code == 0
    assert kept.read_text() != "precious"


def test_topics_to_come_may_have_any_number_of_partitions(penstock: Penstock, file: Path) -> None:
    shown = penstock("plan", str(file), "--topics", "+returns", "--partitions", "returns=6", "--json")
    (made,) = json.loads(shown.out)["plans"]
    assert sum(len(had["returns"]) for had in made["after"]["partitions"].values()) == 6


def test_lag_balanced_balances_what_the_option_names(penstock: Penstock, file: Path) -> None:
    def moved(by: str) -> int:
        shown = penstock("plan", str(file), "--assignor", "lag-balanced", "--by", by, "--json")
        return len(json.loads(shown.out)["plans"][0]["moves"])

    assert (moved("lag"), moved("rate")) == (1, 2)
    assert penstock("plan", str(file), "--assignor", "lag-balanced", "--by", "luck", ok=False).code == 2


def test_it_compares_several_assignors_as_json(penstock: Penstock, file: Path) -> None:
    shown = penstock(
        "plan", str(file), "--members", "+2", "--partitions", "orders=8", "--compare", "range,lag-balanced", "--json"
    )
    plans = json.loads(shown.out)["plans"]
    assert [made["assignor"] for made in plans] == ["range", "lag-balanced"]
    assert sorted(plans[0]["after"]["partitions"]) == ["a", "b", "new-1", "new-2"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--assignor", "stickie"], "Did you mean 'sticky'"),
        (["--partitions", "orders"], "orders=24"),
        (["--topics", "returns"], "+NAME"),
    ],
)
def test_an_impossible_plan_is_one_clear_error(penstock: Penstock, file: Path, arguments: list[str], text: str) -> None:
    shown = penstock("plan", str(file), *arguments, ok=False)
    assert shown.code == 2
    assert text in shown.err
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_file_that_holds_no_group_is_one_clear_error(penstock: Penstock, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    shown = penstock("plan", str(path), ok=False)
    assert shown.code == 2
    assert "Traceback" not in shown.err


def test_neighbouring_numbers_are_shortened() -> None:
    assert shortened([("a", 0), ("a", 2), ("a", 1), ("b", 5), ("b", 7)]) == "a 0-2, b 5 7"
