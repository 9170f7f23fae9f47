"""The output of Kafka's VerifiableConsumer becomes events like Penstock's."""

from chaos.java_member import read_java_events

LINES = """{"timestamp":1000,"name":"startup_complete"}
a line of something else
{"timestamp":2000,"name":"partitions_assigned","partitions":[{"topic":"t","partition":0}]}
{"timestamp":3000,"name":"record_data","key":"k","value":"v","topic":"t","partition":0,"offset":7}
{"timestamp":4000,"name":"partitions_revoked","partitions":[{"topic":"t","partition":0}]}
{"timestamp":5000,"name":"partitions_assigned","partitions":[]}
{"timestamp":6000,"name":"record_da"""


def test_assignments_are_epochs_and_a_record_is_handled_as_it_comes() -> None:
    reported = read_java_events("p", LINES.splitlines(keepends=True))
    assert [(entry.kind, entry.ts, entry.tp, entry.offset, entry.epoch, entry.key) for entry in reported] == [
        ("assigned", 2.0, ("t", 0), -1, 1, None),
        ("dispatched", 3.0, ("t", 0), 7, 1, "k"),
        ("finished", 3.0, ("t", 0), 7, 1, "k"),
        ("revoked", 4.0, ("t", 0), -1, 1, None),
    ]
    assert [entry.index for entry in reported] == [0, 1, 2, 3]
