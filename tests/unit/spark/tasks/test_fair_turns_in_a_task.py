"""``fair_by=`` in a task: tenants take turns within a slice."""

from penstock import by
from spark_tasks import RealTask, declare, source


def test_tenants_take_turns_within_a_slice() -> None:
    ran: list[int] = []

    def handle(value: int) -> None:
        ran.append(value)

    handler = declare(handle, concurrency=1, fair_by=by.key(before=":"))
    keys = [b"flood:%d" % number for number in range(300)] + [b"small:%d" % number for number in range(5)]
    task = RealTask(handler, source(*(b"%d" % number for number in range(305)), keys=keys), seconds=10)
    assert sorted(ran) == [*range(305)]
    assert task.slices
    # The task hands out some works before it has read the last record.
    assert [ran.index(number) for number in range(300, 305)] == sorted(ran.index(number) for number in range(300, 305))
    assert ran.index(304) < 304
