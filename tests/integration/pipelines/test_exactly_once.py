"""Exactly once into a topic: the rows of a task and the offset of its partition are one transaction."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from kafka_helpers import CatchUp, MakeTopic, committed, of_kind, produce, read_values
from penstock import App
from penstock.app.pipelines import Span
from penstock.core.reports import events
from penstock.errors import ConfigError, HandlerError, StateError
from penstock.kafka import Cluster
from penstock.spark.pipelines.output_batches import OutputWriter


@dataclass
class Order:
    id: int


def fill(brokers: str, source: str, numbers: Iterable[int]) -> None:
    """Even numbers go into partition 0, odd ones into 1. Every tenth is unreadable."""
    texts = {number: json.dumps({"id": number if number % 10 else "none"}) for number in numbers}
    for partition in (0, 1):
        produce(
            brokers, source, [text for number, text in texts.items() if number % 2 == partition], partition=partition
        )


def copying(group: str, source: str, broken: Path) -> App:
    """The task of partition 1 fails if the file exists. The task of partition 0 may have committed by then."""
    app = App(group)
    flag = str(broken)

    def fail_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if any(each.as_py() % 2 for each in batch.column("id")) and Path(flag).exists():
                Path(flag).unlink()
                raise OSError("the disk failed")
            yield batch

    @app.pipeline(
        source,
        value=Order,
        to=f"{group}.out",
        dead_letter=f"{group}.dlq",
        delivery="exactly-once",
        max_micro_batch=20,
    )
    def copy(orders: DataFrame) -> DataFrame:
        return orders.select("id").where("id <> 7").mapInArrow(fail_once, "id long")

    return app


def outputs(brokers: str, group: str) -> Counter[int]:
    return Counter(json.loads(value or b"")["id"] for value in read_values(brokers, f"{group}.out"))


def test_rows_and_dead_letters_are_written_once_with_any_repeats(
    brokers: str,
    cluster: Cluster,
    group: str,
    make_topic: MakeTopic,
    catch_up: CatchUp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, broken, checkpoints = make_topic(2), tmp_path / "broken", tmp_path / "checkpoints"
    app = copying(group, source, broken)
    fill(brokers, source, range(60))
    broken.touch()
    with pytest.raises(HandlerError, match="raised OSError: the disk failed in fail_once"):
        catch_up(app, checkpoint=checkpoints)
    seen = catch_up(app, checkpoint=checkpoints)
    assert outputs(brokers, group) == Counter(number for number in range(60) if number % 10 and number != 7)
    assert len(read_values(brokers, f"{group}.dlq")) == 6
    assert committed(cluster, group, source) == {0: 30, 1: 30}
    (opened,) = of_kind(seen, events.SinkOpened)
    assert opened.guarantee.startswith("exactly-once")

    # It stops between the rows and the dead letters of a batch, and starts again without its checkpoint.
    fill(brokers, source, range(60, 80))
    with monkeypatch.context() as patch:
        patch.setattr(OutputWriter, "_dead_letters", _fail)
        with pytest.raises(StateError):
            catch_up(app, checkpoint=checkpoints)
    fill(brokers, source, range(80, 100))
    catch_up(app, checkpoint=tmp_path / "fresh")
    assert outputs(brokers, group) == Counter(number for number in range(100) if number % 10 and number != 7)
    assert len(read_values(brokers, f"{group}.dlq")) == 10
    assert committed(cluster, group, source) == {0: 50, 1: 50}

    # A backfill writes its range once more, and commits nothing for the group.
    catch_up(app, checkpoint=checkpoints, span=Span({(source, 0): 0, (source, 1): 0}, {(source, 0): 5, (source, 1): 5}))
    assert sum(outputs(brokers, group).values()) == 89 + 8
    assert committed(cluster, group, source) == {0: 50, 1: 50}


def _fail(*_: object) -> int:
    raise StateError("It ends here.", hint="")


def test_it_continues_where_another_tool_has_moved_its_group_back(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source = make_topic(2)
    app = copying(group, source, tmp_path / "never")
    fill(brokers, source, range(20))
    catch_up(app)
    assert committed(cluster, group, source) == {0: 10, 1: 10}
    # Offsets 4 to 9 of partition 0 are the numbers 8 to 18; of these, 10 is unreadable.
    cluster.commit(group, {(source, 0): 4})
    (reported,) = [each.reason for each in of_kind(catch_up(app), events.Error)]
    assert f"{source}[0] from 10 to 4" in reported
    assert "writes records that it reads again to its sinks again" in reported
    once = Counter(number for number in range(20) if number % 10 and number != 7)
    assert outputs(brokers, group) == once + Counter([8, 12, 14, 16, 18])
    assert len(read_values(brokers, f"{group}.dlq")) == 2 + 1
    assert committed(cluster, group, source) == {0: 10, 1: 10}


def test_rows_that_change_tasks_are_refused_before_any_is_written(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic(2)
    fill(brokers, source, range(1, 9))
    app = App(group)

    @app.pipeline(source, value=Order, to=f"{group}.out", delivery="exactly-once")
    def spread(orders: DataFrame) -> DataFrame:
        return orders.repartition(4, "id")

    with pytest.raises(ConfigError, match="moves rows between tasks"):
        catch_up(app)
    assert not committed(cluster, group, source)
