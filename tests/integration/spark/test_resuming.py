"""Where a run goes on: checkpoint, group and logs, in agreement and out of it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bed import MakeTopic, committed, of_kind, produce, read_values, running, wait_for
from bed import catch_up as catch_up_locally
from penstock import App
from penstock.core import events
from penstock.errors import ServerError
from penstock.kafka import Cluster

CatchUp = Callable[..., list[events.Event]]


def echo(group: str, source: str, **options: object) -> App:
    app = App(group)

    @app.consume(source, to=f"{group}.out", **options)  # type: ignore[arg-type]
    def handle(value: bytes) -> bytes:
        return value

    return app


def read(seen: list[events.Event]) -> int:
    return sum(stopped.read for stopped in of_kind(seen, events.Stopped))


def outputs(brokers: str, group: str) -> list[int]:
    return sorted(int(value or b"") for value in read_values(brokers, f"{group}.out"))


def test_a_new_checkpoint_starts_at_the_group_s_offsets(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp, tmp_path: Path
) -> None:
    source = make_topic(2)
    produce(brokers, source, range(20))
    catch_up(echo(group, source), checkpoint=tmp_path / "one")
    produce(brokers, source, range(20, 30))
    produce(brokers, source, range(30, 35), partition=1)
    assert read(catch_up(echo(group, source), checkpoint=tmp_path / "two")) == 15
    assert outputs(brokers, group) == list(range(35))


def test_what_the_local_engine_has_handled_meanwhile_is_not_repeated(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    catch_up(echo(group, source))
    produce(brokers, source, range(10, 20))
    catch_up_locally(echo(group, source), brokers)
    produce(brokers, source, range(20, 30))
    assert read(catch_up(echo(group, source))) == 10
    assert outputs(brokers, group) == list(range(30))


def test_a_group_behind_its_checkpoint_is_brought_up_without_repeating(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    # As after a driver's death between Spark's own commit and the group's.
    source = make_topic()
    produce(brokers, source, range(10))
    catch_up(echo(group, source))
    cluster.delete_group(group)
    assert committed(cluster, group, source) == {}
    assert read(catch_up(echo(group, source))) == 0
    assert committed(cluster, group, source) == {0: 10}


def test_from_the_end_means_the_end_at_the_first_start(
    brokers: str, cluster: Cluster, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    assert read(catch_up(echo(group, source, start="latest"))) == 0
    assert committed(cluster, group, source) == {0: 10}
    produce(brokers, source, range(10, 13))
    assert read(catch_up(echo(group, source, start="latest"))) == 3


def test_records_that_were_deleted_unhandled_are_reported_and_passed(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    produce(brokers, source, range(10))
    catch_up(echo(group, source))
    produce(brokers, source, range(10, 20))
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.delete_records([TopicPartition(source, 0, 15)]).values():
        future.result()
    seen = catch_up(echo(group, source))
    assert [error.reason for error in of_kind(seen, events.Error)] == [
        f"Records 10 to 14 of {source}[0] were deleted before they were handled."
    ]
    assert outputs(brokers, group) == [*range(10), *range(15, 20)]


def test_a_group_with_active_members_is_refused(
    brokers: str, group: str, make_topic: MakeTopic, catch_up: CatchUp
) -> None:
    source = make_topic()
    with running(echo(group, source), brokers) as member:
        wait_for(lambda: of_kind(member.events, events.Assigned), "the member to join")
        with pytest.raises(ServerError, match=f"Group '{group}' has 1 active member"):
            catch_up(echo(group, source))
