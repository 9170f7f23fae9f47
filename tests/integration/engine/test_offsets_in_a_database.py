"""Progress in the user's database: one transaction contains the handler's writes and the finished offset."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from kafka_helpers import MakeTopic, Running, catch_up, committed, of_kind, produce, read_values, running, wait_for
from penstock import App, Reject, Retry
from penstock.core.reports import events
from penstock.errors import ConfigError, StoreError
from penstock.kafka import Cluster
from penstock.stores import Progress, SavedProgress, SqlOffsets
from postgres import Postgres
from store_rules import RULES, SQL_RULES

CREATE = "CREATE TABLE sold (id INTEGER NOT NULL, part INTEGER, record_offset BIGINT)"
WRITE = sa.text("INSERT INTO sold (id) VALUES (:id)")


@pytest.mark.parametrize("rule", [*RULES, *SQL_RULES])
def test_postgresql_keeps_the_rules(rule: Callable[[SqlOffsets], None], postgres: Postgres) -> None:
    store = SqlOffsets(postgres.database())
    rule(store)
    store.close()


class Database:
    """With a table that handlers write to."""

    def __init__(self, url: str) -> None:
        self.url = url
        driver = url.replace("postgresql:", "postgresql+psycopg:")
        self._engine = sa.create_engine(driver, poolclass=sa.NullPool)
        self.execute(CREATE)

    def execute(self, statement: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(statement))

    def rows(self, statement: str) -> list[tuple[int, ...]]:
        with self._engine.begin() as connection:
            return [tuple(row) for row in connection.execute(sa.text(statement))]

    def sold(self) -> list[int]:
        return sorted(row[0] for row in self.rows("SELECT id FROM sold"))


@pytest.fixture(params=["postgresql", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield Database(f"sqlite:///{tmp_path}/shop.db")
    else:
        yield Database(request.getfixturevalue("postgres").database())


def test_writes_and_progress_count_together_and_the_database_has_the_last_word(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, database: Database
) -> None:
    source, dlq, app, tried = make_topic(2), f"{group}.dlq", App(group), Counter[int]()

    @app.consume(
        source,
        dead_letter=dlq,
        order="none",
        concurrency=8,
        offsets=database.url,
        retry=Retry(attempts=2, first="10ms"),
    )
    def handle(value: int, tx: sa.Connection) -> None:
        tried[value] += 1
        tx.execute(WRITE, {"id": value})
        if value % 50 == 7:
            raise Reject("no")
        if value % 50 == 8 and tried[value] == 1:
            raise OSError("try again")

    for partition in range(2):
        produce(brokers, source, range(partition, 400, 2), partition=partition)
    catch_up(app, brokers)
    good = [n for n in range(400) if n % 50 != 7]
    assert database.sold() == good, "failed attempts have written nothing"
    assert sorted(int(value or b"-1") for value in read_values(brokers, dlq)) == [n for n in range(400) if n % 50 == 7]
    assert committed(cluster, group, source) == {0: 200, 1: 200}, "Kafka follows"
    assert database.rows("SELECT point FROM penstock_progress") == [(200,), (200,)]
    assert database.rows("SELECT count(*) FROM penstock_inbox") == [(0,)], "trimmed"
    # The committed offsets in Kafka do not matter.
    cluster.commit(group, {(source, 0): 0, (source, 1): 0})
    produce(brokers, source, [1_000], partition=1)
    catch_up(app, brokers)
    assert database.sold() == [*good, 1_000]
    assert committed(cluster, group, source) == {0: 200, 1: 201}


@pytest.mark.parametrize("assignor", ["cooperative-sticky", "sticky"])
def test_a_claim_by_a_member_that_has_lost_the_partition_is_overcome(
    brokers: str, group: str, make_topic: MakeTopic, database: Database, assignor: str
) -> None:
    """As if a member was frozen, and woke up within its claim: the owner would wait for the partition forever."""
    source, app = make_topic(), App(group, settings={"session.timeout.ms": 6_000, "heartbeat.interval.ms": 1_000})

    @app.consume(source, assignor=assignor, offsets=database.url)
    def handle(value: int, tx: sa.Connection) -> None:
        tx.execute(WRITE, {"id": value})

    produce(brokers, source, range(10))
    with running(app, brokers) as member:
        wait_for(lambda: len(database.sold()) == 10, "the first records")
        frozen = SqlOffsets(database.url)
        frozen.claim(group, [(source, 0)])
        frozen.close()
        produce(brokers, source, range(10, 20))
        wait_for(lambda: len(database.sold()) == 20, "the records after the claim")
        assert "by a member that does not own it" in of_kind(member.events, events.Error)[0].reason
    assert database.sold() == [*range(20)]


def test_batches_are_one_transaction_each_and_only_the_record_to_blame_fails(
    brokers: str, group: str, make_topic: MakeTopic, database: Database
) -> None:
    source, dlq, app = make_topic(), f"{group}.dlq", App(group)

    @app.consume(source, dead_letter=dlq, batch=20, offsets=database.url, retry=Retry(attempts=1))
    def handle(values: list[int], tx: sa.Connection) -> None:
        tx.execute(WRITE, [{"id": value} for value in values])
        if 33 in values:
            raise ValueError("33")

    produce(brokers, source, range(100))
    catch_up(app, brokers)
    assert database.sold() == [n for n in range(100) if n != 33]
    assert read_values(brokers, dlq) == [b"33"]


def test_partitions_move_and_a_log_is_read_again_where_that_is_asked_for(
    brokers: str, group: str, make_topic: MakeTopic, postgres: Postgres
) -> None:
    database, source, helped = Database(postgres.database()), make_topic(4), threading.Event()

    def make(**options: object) -> App:
        app = App(group)

        @app.consume(
            source,
            order="key",
            concurrency=8,
            offsets=database.url,
            settings={"heartbeat.interval.ms": 300},
            **options,  # type: ignore[arg-type]
        )
        def handle(value: int, tx: sa.Connection) -> None:
            # Slow until the second member has worked, so that there are records left for it.
            helped.wait(0.5)
            tx.execute(WRITE, {"id": value})

        return app

    for partition in range(4):
        produce(brokers, source, range(partition * 300, (partition + 1) * 300), partition=partition)
    with running(make(), brokers):
        wait_for(lambda: len(database.sold()) > 10, "the first to work")
        second = Running(make(), brokers)
        wait_for(lambda: of_kind(second.events, events.Finished), "the second to help")
        helped.set()
        second.stop()
    catch_up(make(), brokers)
    assert database.sold() == list(range(1_200))
    catch_up(make(from_={(source, 0): 290}), brokers)
    assert database.sold() == sorted([*range(1_200), *range(290, 300)])


def test_an_unavailable_database_costs_time_and_no_attempts(
    brokers: str, group: str, make_topic: MakeTopic, postgres: Postgres
) -> None:
    database, source, dlq, app = Database(postgres.database()), make_topic(), f"{group}.dlq", App(group)
    name = database.url.rpartition("/")[2]

    @app.consume(source, dead_letter=dlq, order="none", offsets=database.url, retry=Retry(attempts=1))
    def handle(value: int, tx: sa.Connection) -> None:
        tx.execute(WRITE, {"id": value})
        time.sleep(0.005)

    produce(brokers, source, range(1_000))
    with running(app, brokers) as member:
        wait_for(lambda: len(database.sold()) > 50, "a start")
        postgres.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        postgres.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        wait_for(lambda: of_kind(member.events, events.AwaitingDependency), "it to be noticed")
        postgres.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        wait_for(lambda: len(database.sold()) == 1_000, "all of it")
        assert not of_kind(member.events, events.DeadLettered)
    assert database.sold() == list(range(1_000))


class Notebook:
    """The smallest possible store."""

    def __init__(self) -> None:
        self.pages: dict[tuple[str, tuple[str, int]], SavedProgress] = {}

    def claim(self, group: str, tps: Sequence[tuple[str, int]]) -> Mapping[tuple[str, int], SavedProgress]:
        for tp in tps:
            old = self.pages.get((group, tp), SavedProgress(0))
            self.pages[group, tp] = SavedProgress(old.token + 1, old.offset, old.metadata)
        return {tp: self.pages[group, tp] for tp in tps}

    def save(self, group: str, progress: Mapping[tuple[str, int], Progress]) -> list[tuple[str, int]]:
        claimed = [tp for tp, each in progress.items() if self.pages[group, tp].token != each.token]
        for tp, each in progress.items():
            if tp not in claimed:
                self.pages[group, tp] = SavedProgress(each.token, each.offset, each.metadata)
        return claimed

    def forget(self, group: str, tps: Mapping[tuple[str, int], int]) -> None:
        for tp, token in tps.items():
            self.pages[group, tp] = SavedProgress(token)


@pytest.mark.parametrize("kind", ["file", "own"])
def test_progress_can_be_kept_anywhere(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, tmp_path: Path, kind: str
) -> None:
    store = f"file:{tmp_path}/progress.json" if kind == "file" else Notebook()
    source, out, app = make_topic(2), f"{group}.out", App(group)

    @app.consume(source, to=out, order="none", offsets=store)
    def handle(value: int) -> int:
        return value

    for partition in range(2):
        produce(brokers, source, range(100), partition=partition)
    catch_up(app, brokers)
    assert committed(cluster, group, source) == {0: 100, 1: 100}
    cluster.commit(group, {(source, 0): 0, (source, 1): 0})
    produce(brokers, source, [100])
    catch_up(app, brokers)
    assert len(read_values(brokers, out)) == 201


def test_a_missing_database_is_reported_before_anything_starts(brokers: str, group: str, make_topic: MakeTopic) -> None:
    app, source = App(group), make_topic()
    url = "postgresql://me:secret@127.0.0.1:1/none"
    app.consume(source, offsets=url)(lambda value: None)
    with pytest.raises(StoreError, match=r"failed while claiming") as caught:
        catch_up(app, brokers)
    assert "secret" not in str(caught.value)


def test_options_that_do_not_work_with_tx_are_refused() -> None:
    async def later(value: int, tx: sa.Connection) -> None: ...
    def output(value: int, tx: sa.Connection) -> int:
        return value

    def plain(value: int, tx: sa.Connection) -> None: ...

    url, app = "sqlite:///shop.db", App("shop")
    with pytest.raises(ConfigError, match="does not work with async def"):
        app.consume("orders", offsets=url)(later)
    with pytest.raises(ConfigError, match="an output could be lost"):
        app.consume("orders", offsets=url, to="out")(output)
    with pytest.raises(ConfigError, match="names no database"):
        app.consume("orders")(plain)
    with pytest.raises(ConfigError, match="names no database"):
        app.consume("orders", offsets="file:progress")(plain)
    for wrong in ("redis://x", "sqlite://", "sqlite:///:memory:", 7):
        with pytest.raises(ConfigError, match="offsets="):
            app.consume("orders", offsets=wrong)(lambda value: None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="keeps progress in Kafka"):
        app.consume("orders", offsets=url, delivery="exactly-once")(lambda value: None)
