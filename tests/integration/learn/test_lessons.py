"""The lessons of `penstock learn` on a real broker: the facts of each, its pictures in two widths, its pauses.

Lesson 9 is in tests/integration/spark, where there is a session.
"""

import io
from collections.abc import Callable

import pytest

from penstock.cli.console import lesson_pictures
from penstock.cli.console.screen import Screen
from penstock.kafka import Cluster
from penstock.kafka.admin.consumer_groups import Groups
from penstock.learn.course import LESSONS, find_lesson, run_lesson
from penstock.learn.picture import LessonStep
from terminals import terminal

Facts = dict[str, object]
Learn = Callable[[str], dict]  # type: ignore[type-arg]


def left_behind(cluster: Cluster) -> list[str]:
    groups = [each.name for each in Groups(cluster).of_consumers()]
    return [name for name in (*cluster.topics(), *groups) if name.startswith("penstock-learn")]


@pytest.fixture
def learn(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Learn:
    """Run a lesson, draw its steps in 80 and in 60 columns, and check that nothing is left."""

    def run(name: str) -> dict:  # type: ignore[type-arg]
        steps: list[LessonStep] = []
        facts = run_lesson(find_lesson(name), cluster, steps.append)
        assert left_behind(cluster) == []
        for width in (80, 60):
            drawn = io.StringIO()
            monkeypatch.setattr(lesson_pictures, "out", Screen(file=drawn, width=width))
            for number, step in enumerate(steps, start=1):
                lesson_pictures.show_step(step, number)
            lines = drawn.getvalue().splitlines()
            assert len(lines) > 10
            assert [line for line in lines if len(line) > width] == []
        return facts

    return run


def test_group(learn: Learn) -> None:
    groups = learn("group")["groups"]
    assert groups["billing"]["owned"] == {"member 1": [0], "member 2": [1], "member 3": []}
    assert groups["audit"]["owned"] == {"member 1": [0, 1]}
    for each in groups.values():
        assert each["distinct"] == sum(each["handled"].values()) == 12
    assert groups["billing"]["handled"]["member 3"] == 0


def test_offset(learn: Learn) -> None:
    facts = learn("offset")
    assert facts["first"] == {"position": 7, "committed": 4, "end": 10, "lag": 6}
    assert facts["second"] == {"position": 5, "committed": 4, "end": 14, "lag": 10}
    assert facts["next_owner_began_at"] == 4


def test_assignor(learn: Learn) -> None:
    owned = {
        name: {member: " ".join(tps) for member, tps in each.items()} for name, each in learn("3")["owned"].items()
    }
    assert owned == {
        "range": {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"},
        "roundrobin": {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"},
        "roundrobin, different topics": {"C0": "ap0", "C1": "bp0", "C2": "bp1 cp0 cp1 cp2"},
        "sticky, different topics": {"C0": "ap0", "C1": "bp0 bp1", "C2": "cp0 cp1 cp2"},
        "sticky, C0 left": {"C1": "ap0 bp0 bp1", "C2": "cp0 cp1 cp2"},
    }


def test_rebalance(learn: Learn) -> None:
    facts = learn("rebalance")
    assert facts["eager"]["revoked"] == [0, 1, 2, 3]
    assert len(facts["eager"]["moved"]) == 2
    assert facts["cooperative"]["revoked"] == facts["cooperative"]["moved"]
    assert len(facts["cooperative"]["moved"]) == 2


def test_auto_commit(learn: Learn) -> None:
    facts = learn("auto-commit")
    assert (facts["early"]["lost"], facts["early"]["repeated"]) == ([4, 5, 6, 7, 8, 9], [])
    assert (facts["late"]["lost"], facts["late"]["repeated"]) == ([], [0, 1, 2, 3])
    assert (facts["penstock"]["lost"], facts["penstock"]["repeated"]) == ([], [])


def test_commit_point(learn: Learn) -> None:
    facts = learn("commit-point")
    assert facts["committed"] == 2
    assert facts["finished_above"] == [3, 4, 5, 6, 8, 9, 10, 11, 13, 14]
    assert facts["again"] == facts["slow"] == [2, 7, 12]
    assert facts["committed_at_the_end"] == 15


def test_poison(learn: Learn) -> None:
    facts = learn("poison")
    assert facts["loop"] == {"failed_at": [2, 2, 2], "committed": 2}
    assert facts["penstock"] == {
        "handled": [0, 1, 3, 4, 6, 7],
        "committed": 8,
        "dead_letters": [
            {"offset": 2, "attempts": 1, "error": "Undecodable"},
            {"offset": 5, "attempts": 3, "error": "RuntimeError"},
        ],
    }


def test_exactly_once(learn: Learn) -> None:
    facts = learn("exactly-once")
    assert facts["at-least-once"]["read_committed"] == {"outputs": 19, "different": 12, "twice": 7}
    assert facts["exactly-once"]["read_uncommitted"] == {"outputs": 19, "different": 12, "twice": 7}
    assert facts["exactly-once"]["read_committed"] == {"outputs": 12, "different": 12, "twice": 0}


def test_here_are_all_lessons_that_need_no_spark() -> None:
    here = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert {each.name for each in LESSONS if not each.needs_spark} <= here


def test_in_a_terminal_enter_goes_on_and_starts_the_next_lesson_and_q_leaves_nothing(
    brokers: str, cluster: Cluster
) -> None:
    with terminal("learn", "2", "-b", brokers) as learning:
        learning.wait_for("Enter goes on, q quits.")
        assert left_behind(cluster) != []
        learning.press("x\r")  # x does nothing
        learning.wait_for("Enter goes on, q quits.")
        learning.press("\r")
        learning.wait_for("Enter starts lesson 3")
        learning.press("q")
        assert learning.end() == 0
    assert left_behind(cluster) == []


def test_ctrl_c_leaves_nothing(brokers: str, cluster: Cluster) -> None:
    with terminal("learn", "2", "-b", brokers) as learning:
        learning.wait_for("Enter goes on, q quits.")
        learning.interrupt()
        assert learning.end() == 130
    assert left_behind(cluster) == []
