"""The list of lessons, and how to run them one after the other on one Kafka."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from penstock.devkit.chosen_kafka import choose_kafka
from penstock.errors import ConfigError, SetupError
from penstock.kafka import Cluster
from penstock.learn.lessons.spark_lesson import require_spark
from penstock.learn.picture import LessonStep
from penstock.learn.sandbox import Sandbox


@dataclass(frozen=True)
class Lesson:
    number: int
    name: str
    title: str
    needs_spark: bool = False

    @property
    def module(self) -> str:
        return f"penstock.learn.lessons.{self.name.replace('-', '_')}_lesson"


LESSONS = (
    Lesson(1, "group", "Groups and broadcast: who gets which record"),
    Lesson(2, "offset", "Position, committed offset, end and lag"),
    Lesson(3, "assignor", "range, roundrobin and sticky: who owns which partition"),
    Lesson(4, "rebalance", "A rebalance in slow motion, eager and cooperative"),
    Lesson(5, "auto-commit", "Auto-commit loses and repeats records"),
    Lesson(6, "commit-point", "Many workers on one partition, and the commit point"),
    Lesson(7, "poison", "A poison record, and dead letters"),
    Lesson(8, "exactly-once", "Exactly-once against a kill"),
    Lesson(9, "spark", "The same handler on Spark", needs_spark=True),
)


def find_lesson(wanted: str) -> Lesson:
    """Return the lesson with this number or name."""
    for lesson in LESSONS:
        if wanted in (str(lesson.number), lesson.name):
            return lesson
    nearest = get_close_matches(wanted, [lesson.name for lesson in LESSONS], n=1)
    listed = "`penstock learn` lists the lessons."
    raise ConfigError(
        f"There is no lesson {wanted!r}.", hint=f"Did you mean {nearest[0]!r}? {listed}" if nearest else listed
    )


def next_lesson(lesson: Lesson) -> Lesson | None:
    return next((each for each in LESSONS if each.number == lesson.number + 1), None)


@dataclass(frozen=True)
class LeftOut:
    """A lesson that cannot run here, and why."""

    lesson: Lesson
    problem: str
    hint: str


def possible(lessons: Sequence[Lesson], progress: Callable[..., None]) -> tuple[list[Lesson], list[LeftOut]]:
    """Divide lessons into those that can run here and the others."""
    if not any(lesson.needs_spark for lesson in lessons):
        return [*lessons], []
    try:
        require_spark(progress)
    except SetupError as error:
        missing = [LeftOut(lesson, error.problem, error.hint) for lesson in lessons if lesson.needs_spark]
        return [lesson for lesson in lessons if not lesson.needs_spark], missing
    return [*lessons], []


@contextmanager
def classroom(brokers: str | None, progress: Callable[..., None]) -> Iterator[Cluster]:
    """The Kafka of the lessons: the given one, the embedded one if it runs, or one that ends with the lessons."""
    with choose_kafka(brokers, progress=progress) as kafka:
        cluster = Cluster(kafka.brokers)
        cluster.id()
        yield cluster


def run_lesson(lesson: Lesson, cluster: Cluster, show: Callable[[LessonStep], None]) -> dict[str, Any]:
    """Run one lesson and return its facts. Its topics and groups are deleted at the end, also after an error."""
    with Sandbox(cluster, show) as sandbox:
        facts: dict[str, Any] = import_module(lesson.module).run(sandbox)
        return facts
