"""The examples with tables do what their pages say, in the Spark session of the tests: to start another one is slow."""

import io
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from docs_check.environment import SPARK_EXAMPLES
from docs_check.pages import Command, steps_of
from kafka_helpers import CatchUp, read_values
from penstock.app import load_app
from penstock.cli.entry_point import command_line
from tables import rows


@pytest.fixture
def follow(brokers: str, tmp_path: Path, catch_up: CatchUp, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Run the commands of a page of an example in this process."""
    monkeypatch.setenv("PENSTOCK_BROKERS", brokers)
    monkeypatch.setenv("LAKE", str(tmp_path))

    def run(example: str) -> None:
        (page,) = (page for page in SPARK_EXAMPLES if page.parent.name == example)
        monkeypatch.syspath_prepend(str(page.parent))
        for step in steps_of(page):
            if isinstance(step, Command) and step.text != "penstock up":
                given, _, text = step.text.rpartition(" | ")
                monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(shlex.split(given)[1:])))
                _, name, *arguments = shlex.split(text)
                if name == "run":
                    catch_up(load_app(arguments[0]))
                else:
                    command_line(name)([name, *arguments], standalone_mode=False)

    return run


def test_clicks_are_counted_in_windows_that_are_over(
    follow: Callable[[str], None], spark: SparkSession, tmp_path: Path
) -> None:
    follow("clickstream")
    (minute,) = rows(spark.read.format("delta").load(str(tmp_path / "clicks_per_minute")))
    assert (minute["page"], minute["clicks"]) == ("/home", 20)


def test_the_newest_version_of_a_customer_wins(
    follow: Callable[[str], None], spark: SparkSession, tmp_path: Path
) -> None:
    follow("changes")
    found = {row["id"]: row for row in rows(spark.read.format("iceberg").load(str(tmp_path / "shop" / "customers")))}
    assert [(row["version"], row["city"], row["deleted"]) for _, row in sorted(found.items())] == [
        (3, "Ulm", False), (3, "Ulm", False), (2, "", True), (1, "Bonn", False), (1, "Bonn", False),
    ]  # fmt: skip


def test_sales_are_rows_and_what_is_no_sale_is_a_dead_letter(
    follow: Callable[[str], None], spark: SparkSession, brokers: str, tmp_path: Path
) -> None:
    follow("pipelines")
    assert spark.read.format("delta").load(str(tmp_path / "sales")).count() == 20
    dead = read_values(brokers, "sales.dlq")
    assert len({*dead}) == 2
    assert b"this is not a sale" in dead


def test_every_example_for_spark_is_followed_here() -> None:
    assert {page.parent.name for page in SPARK_EXAMPLES} == {"clickstream", "changes", "pipelines"}
