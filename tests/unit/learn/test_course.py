"""The list of lessons, and what the command does before any lesson begins."""

import json
import sys
from importlib.util import find_spec

import pytest

from penstock.cli.entry_point import main
from penstock.errors import ConfigError, SetupError
from penstock.learn import course
from penstock.learn.course import LESSONS, find_lesson, next_lesson, possible
from penstock.learn.lessons.rebalance_lesson import is_complete


def learn(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["penstock", "learn", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(str(ended.value.code))


def test_the_lessons_are_numbered_and_their_modules_exist() -> None:
    assert [lesson.number for lesson in LESSONS] == [*range(1, 10)]
    assert all(find_spec(lesson.module) for lesson in LESSONS)


def test_a_lesson_has_a_number_and_a_name() -> None:
    assert find_lesson("5") is find_lesson("auto-commit")
    assert next_lesson(find_lesson("8")) is find_lesson("9")
    assert next_lesson(find_lesson("9")) is None


def test_an_unknown_lesson_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as refused:
        find_lesson("poisson")
    assert refused.value.problem == "There is no lesson 'poisson'."
    assert refused.value.hint == "Did you mean 'poison'? `penstock learn` lists the lessons."


def test_without_a_lesson_the_command_lists_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert learn(monkeypatch) == 0
    shown = capsys.readouterr().out
    assert all(f"{lesson.number} {lesson.name}" in shown for lesson in LESSONS)
    assert learn(monkeypatch, "--json") == 0
    listed = json.loads(capsys.readouterr().out)["lessons"]
    assert [each["name"] for each in listed] == [lesson.name for lesson in LESSONS]


@pytest.fixture
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_progress: object) -> None:
        raise SetupError("Lesson 9 runs on Spark. PySpark is not installed.", hint="Install it.")

    monkeypatch.setattr(course, "require_spark", missing)


@pytest.mark.usefixtures("_no_spark")
def test_without_spark_its_lesson_is_left_out_of_all_and_is_an_error_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lessons, left_out = possible(LESSONS, lambda *_: None)
    assert [lesson.number for lesson in lessons] == [*range(1, 9)]
    assert [(each.lesson.number, each.hint) for each in left_out] == [(9, "Install it.")]
    assert learn(monkeypatch, "spark") != 0
    assert capsys.readouterr().err.endswith("Lesson 9 runs on Spark. PySpark is not installed.\nInstall it.\n")


def test_one_lesson_or_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert learn(monkeypatch, "3", "--all") == 2
    assert "Both --all and lesson '3' are given." in capsys.readouterr().err


def test_brokers_that_do_not_answer_are_an_error_before_the_lesson(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert learn(monkeypatch, "2", "-b", "127.0.0.1:1") != 0
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_the_rebalance_lesson_waits_until_both_members_have_reported() -> None:
    """A may report that it gave partitions up after B has reported that it took them."""
    first = [(1.0, "taken", "A", ("orders", number)) for number in range(4)]
    given_up = [(2.0, "given up", "A", ("orders", number)) for number in (2, 3)]
    taken = [(3.0, "taken", "B", ("orders", number)) for number in (2, 3)]
    assert is_complete([*first, *taken, *given_up])
    assert not is_complete([*first, *taken])
    assert not is_complete([*first, *given_up])
    assert not is_complete([*first, *given_up, *taken[:1]])
