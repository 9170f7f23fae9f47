"""Declarations of pipelines and sinks: each mistake is one clear error before anything runs."""

import threading
from typing import Any

import pytest

from penstock import App, Console, Jdbc, Source, Table, Topic
from penstock import engine as local
from penstock.app import Sink
from penstock.app.config import configured
from penstock.errors import ConfigError
from penstock.testing import Bench

URL = "jdbc:postgresql://localhost/shop"


def keep(orders: Any) -> Any:
    return orders


def ignore(value: Any) -> None:
    return None


def pair(orders: Any, payments: Any) -> Any:
    return orders, payments


def declared(function: Any = keep, *topics: str, **options: Any) -> App:
    app = App("shop")
    app.pipeline(*topics, **options)(function)
    return app


def test_topics_are_one_source_and_a_text_is_a_topic() -> None:
    (pipeline,) = declared(keep, "eu", "us", to="out").pipelines
    assert (pipeline.name, pipeline.topics, pipeline.target_topics) == ("keep", ("eu", "us"), ("out",))
    assert list(pipeline.sources) == ["orders"]
    assert pipeline.group == "shop"


def test_sources_go_by_the_names_of_parameters_and_outputs_by_their_own() -> None:
    app = declared(
        pair,
        sources={"payments": "p", "orders": Source("o", value=dict)},
        to={"a": [Topic("x"), Console()], "b": Table("t", path="/lake", format="iceberg")},
        dead_letter="dead",
    )
    (pipeline,) = app.pipelines
    assert pipeline.topics == ("p", "o")
    assert pipeline.target_topics == ("x", "dead")
    assert app.packages == ("iceberg",)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"to": "out"}, "either topics or sources="),
        ({"topics": ["o"], "sources": {"orders": "o"}, "to": "out"}, "either topics or sources="),
        ({"function": pair, "topics": ["o"], "to": "out"}, r"it takes \(orders, payments\)"),
        ({"function": pair, "sources": {"orders": "o", "others": "p"}, "to": "out"}, "its sources are"),
        ({"sources": {"orders": "o"}, "value": dict, "to": "out"}, "value= and key= have no effect"),
        ({"topics": ["o"], "to": []}, "has no sink"),
        ({"topics": ["o"], "to": 5}, "5 is not a sink"),
        ({"topics": ["o"], "to": "o"}, "consume its own output"),
        ({"topics": ["o"], "to": "out", "dead_letter": "out"}, "both go to 'out'"),
        ({"topics": ["o"], "to": ["out", "out"]}, "topic out twice"),
        ({"topics": ["o"], "to": "out", "output_mode": "replace"}, "does not exist"),
        ({"topics": ["o"], "to": "out", "start": "yesterday"}, "not a position in a log"),
        ({"topics": ["o"], "to": "out", "max_micro_batch": 0}, "not a count"),
        ({"topics": ["o"], "to": "out", "restart": 5}, "not a Retry"),
        ({"topics": ["o"], "to": ["a", "b"], "delivery": "exactly-once"}, "one source and one sink"),
    ],
)
def test_a_pipeline_that_cannot_work_is_refused(options: dict[str, Any], problem: str) -> None:
    function, topics = options.pop("function", keep), options.pop("topics", [])
    with pytest.raises(ConfigError, match=problem):
        declared(function, *topics, **options)


async def waiting(orders: Any) -> Any:
    return orders


@pytest.mark.parametrize(("function", "problem"), [(waiting, "async"), (int, "not a function")])
def test_only_plain_functions_are_pipelines(function: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        declared(function, "orders", to="out")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Topic("no/topic"), "not a topic name"),
        (lambda: Table("t"), "Table t needs exactly one location"),
        (lambda: Table("t", path="/lake", format="csv"), "not a table format"),  # type: ignore[arg-type]
        (lambda: Table("a/b", path="/lake"), "not a table name"),
        (lambda: Table("t", path="/lake", catalog="c"), "catalog= is for Iceberg"),
        (lambda: Table("t", path="/l", format="iceberg", catalog="c"), "Table t needs exactly one location"),
        (lambda: Table("t", path="/l", mode="upsert"), "has no keys"),
        (lambda: Table("t", path="/l", keys=["id"]), "have no effect when appending"),
        (lambda: Table("t", path="/l", mode="upsert", keys="id"), "is not a list"),
        (lambda: Table("t", path="/l", partition_by="day"), "is not a list"),
        (lambda: Table("t", path="/l", mode="merge"), "does not exist"),  # type: ignore[arg-type]
        (lambda: Table("t", path="/l", format="parquet", mode="upsert", keys=["id"]), "cannot be updated"),
        (lambda: Jdbc("postgresql://localhost/shop", "t"), "not a JDBC address"),
        (lambda: Jdbc(f"{URL}?password=hunter2", "t"), "contains a password"),
        (lambda: Jdbc(URL, " "), "not a table name"),
    ],
)
def test_a_sink_that_cannot_work_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make()


def test_sinks_say_what_they_guarantee_and_never_show_a_password() -> None:
    sinks: list[Sink] = [
        Topic("t"),
        Table("t", path="/l"),
        Table("t", path="/l", mode="upsert", keys=["id"]),
        Jdbc(URL, "t"),
    ]
    assert [sink.guarantee.split(":")[0] for sink in sinks] == [
        "at-least-once", "exactly-once", "exactly-once in effect", "exactly-once",
    ]  # fmt: skip
    # If a backfill runs again, that is another backfill to every sink.
    assert [sink.backfill_guarantee.rpartition("each run ")[2] for sink in sinks] == [
        "writes all rows of the range again", "appends the range again", "merges the same rows again",
        "appends the range again",
    ]  # fmt: skip
    app = declared(keep, "orders", to=Jdbc(URL, "t", user="me", password="hunter2"))
    assert "hunter2" not in repr(app.pipelines)


def test_a_topic_belongs_to_one_of_a_group() -> None:
    app = declared(keep, "orders", to="out")
    with pytest.raises(ConfigError, match="both read 'orders' in group 'shop'"):
        app.consume("orders")(ignore)
    with pytest.raises(ConfigError, match="both read 'orders' in group 'shop'"):
        app.pipeline("orders", to="other")(keep)
    app.pipeline("orders", to="other", group="second")(keep)
    app = App("shop")
    app.consume("orders")(ignore)
    with pytest.raises(ConfigError, match="both read 'orders' in group 'shop'"):
        app.pipeline("orders", to="out")(keep)


def test_the_local_engine_and_the_testing_kit_refuse_pipelines_instead_of_passing_over_them() -> None:
    app = declared(keep, "orders", to="out")
    app.consume("payments")(ignore)
    with pytest.raises(ConfigError, match=r"pipelines \(keep\), which the local engine does not run") as caught:
        local.run(app, brokers="localhost:1", emit=ignore, stop=threading.Event())
    assert "--engine spark" in caught.value.hint
    with pytest.raises(ConfigError, match="the testing kit does not run"):
        Bench(app)


def test_a_configured_app_keeps_its_pipelines_over_the_app_s_settings() -> None:
    app = App("shop", settings={"client.id": "one"})
    app.pipeline("orders", to="out", settings={"fetch.min.bytes": 5})(keep)
    (pipeline,) = configured(app, []).app.pipelines
    assert dict(pipeline.settings) == {"client.id": "one", "fetch.min.bytes": 5}
    (pipeline,) = app.variant("other", lambda _: {}).pipelines
    assert pipeline.group == "other"
