"""The checker of chaos runs: a good history passes, and each rule fails on a history that breaks it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from chaos.checker import RULES, check, report
from chaos.history import Entry, Fault, History, Note, read_events

TP = ("orders", 0)
KEYS: dict[int, str | None] = {0: "a", 1: "b", 2: "a", 3: "b"}


class Teller:
    """Writes the events of one process, by default 0.1 s apart."""

    def __init__(self, process: str, *, at: float = 0.0) -> None:
        self.process, self.now, self.entries = process, at, list[Entry]()

    def tell(
        self, kind: str, offset: int = -1, *, at: float | None = None, epoch: int = 1, attempt: int = 1
    ) -> "Teller":
        self.now = self.now + 0.1 if at is None else at
        key = KEYS.get(offset) if kind in {"dispatched", "finished"} else None
        entry = Entry(
            kind=kind, ts=self.now, process=self.process, index=len(self.entries), member=self.process, tp=TP,
            offset=offset, epoch=epoch, key=key, attempt=attempt,
        )  # fmt: skip
        self.entries.append(entry)
        return self

    def work(self, *offsets: int, epoch: int = 1) -> "Teller":
        for offset in offsets:
            self.tell("dispatched", offset, epoch=epoch).tell("finished", offset, epoch=epoch)
        return self


def history(*tellers: Teller, committed: int = 4, **more: Any) -> History:
    files: Mapping[str, Sequence[Entry]] = {teller.process: teller.entries for teller in tellers}
    produced = {(TP, offset): key for offset, key in KEYS.items()}
    return History(files=files, produced=produced, ends={TP: 4}, committed={TP: committed}, **more)


def broken(of: History) -> set[str]:
    return {violation.rule for violation in check(of)}


def good(process: str = "p1") -> Teller:
    teller = Teller(process).tell("assigned").work(0, 1).tell("committed", 2)
    return teller.work(2, 3).tell("revoked").tell("committed", 4)


def freeze(process: str, since: float, until: float) -> Fault:
    return Fault(kind="freeze", process=process, ts=since, until=until)


def test_a_good_history_breaks_no_rule() -> None:
    assert check(history(good())) == []
    assert report([]) == "no violations"


def test_a_partition_that_moves_in_good_order_breaks_no_rule() -> None:
    first = Teller("p1").tell("assigned").work(0, 1).tell("revoked").tell("committed", 2)
    second = Teller("p2", at=5).tell("assigned", 2).work(2, 3).tell("revoked").tell("committed", 4)
    assert check(history(first, second)) == []


def test_a_kill_excuses_what_was_finished_since_the_last_commit_and_no_more() -> None:
    killed = Fault(kind="kill", process="p1", ts=2.0)
    first = Teller("p1").tell("assigned").work(0).tell("committed", 1).work(1).tell("committed", 2).work(2)
    second = Teller("p2", at=9).tell("assigned", 2).work(2, 3).tell("revoked").tell("committed", 4)
    assert check(history(first, second, faults=[killed])) == []
    assert broken(history(first, second)) == {"repeats have a cause"}
    greedy = Teller("p2", at=9).tell("assigned", 0).work(0, 2, 3).tell("revoked").tell("committed", 4)
    assert "nothing committed is repeated" in broken(history(first, greedy, faults=[killed]))


def test_an_epoch_that_ended_in_good_order_is_not_repeated() -> None:
    first = Teller("p1").tell("assigned").work(0, 1).tell("revoked").tell("committed", 2)
    second = Teller("p2", at=5).tell("assigned", 2).work(1, 2, 3).tell("revoked").tell("committed", 4)
    assert {"nothing committed is repeated", "repeats have a cause"} == broken(history(first, second))


def test_a_refused_last_commit_is_named_as_the_likely_cause_of_repeats() -> None:
    first = Teller("p1").tell("assigned").work(0, 1).tell("revoked").tell("commit_failed", 2)
    second = Teller("p2", at=5).tell("assigned", 0).work(0, 1, 2, 3).tell("revoked").tell("committed", 4)
    assert "a commit after its epoch's end was refused" in report(check(history(first, second)))


def test_a_record_that_no_member_finished_is_lost() -> None:
    teller = Teller("p1").tell("assigned").work(0, 1, 2).tell("revoked").tell("committed", 4)
    found = check(history(teller))
    assert {violation.rule for violation in found} == {"nothing is lost", "commits pass nothing unfinished"}
    assert "orders[0]@3 was never finished" in report(found)


def test_skipped_and_dead_lettered_records_are_not_lost() -> None:
    teller = Teller("p1").tell("assigned").work(0, 1)
    teller.tell("dispatched", 2).tell("skipped", 2).tell("dispatched", 3).tell("dead_lettered", 3)
    assert check(history(teller.tell("revoked").tell("committed", 4))) == []


def test_a_group_that_stops_before_the_end_is_a_violation() -> None:
    assert broken(history(good(), committed=3)) == {"the group reaches the end"}


def test_a_commit_past_an_unfinished_record_is_a_violation() -> None:
    teller = Teller("p1").tell("assigned").work(0).tell("committed", 2).work(1, 2, 3).tell("revoked")
    assert broken(history(teller.tell("committed", 4))) == {"commits pass nothing unfinished"}


def test_a_commit_that_goes_backwards_is_a_violation_wherever_it_is_seen() -> None:
    within = Teller("p1").tell("assigned").work(0, 1).tell("committed", 2).tell("committed", 1).work(2, 3)
    assert broken(history(within.tell("revoked").tell("committed", 4))) == {"commits never go back"}
    first = Teller("p1").tell("assigned").work(0, 1).tell("committed", 2).work(2).tell("lost")
    between = Teller("p2", at=20).tell("assigned", 1).work(2, 3).tell("revoked").tell("committed", 4)
    assert broken(history(first, between)) == {"commits never go back"}
    observed = [(1.0, {TP: 3}), (2.0, {TP: 2})]
    assert broken(history(good(), observed=observed)) == {"commits never go back"}


def test_a_commit_that_a_frozen_process_reports_late_is_no_violation() -> None:
    first = Teller("p1").tell("assigned").work(0).tell("committed", 1, at=12.0).tell("lost")
    second = Teller("p2", at=8).tell("assigned", 1).work(1, 2, 3).tell("committed", 4, at=9.5).tell("revoked")
    assert check(history(first, second, faults=[freeze("p1", 1.0, 11.9)])) == []
    assert broken(history(first, second)) == {"commits never go back"}


def test_the_answer_to_a_commit_that_a_later_one_overtook_is_no_violation() -> None:
    teller = Teller("p1").tell("assigned").work(0, 1, 2, 3).tell("revoked").tell("committed", 4).tell("committed", 2)
    assert check(history(teller)) == []


def order_broken(teller: Teller) -> list[str]:
    return [violation.text for violation in check(history(teller)) if violation.rule == "keys keep their order"]


def test_a_key_out_of_order_is_a_violation() -> None:
    assert order_broken(Teller("p1").tell("assigned").work(2, 0, 1, 3))


def test_two_records_of_a_key_in_progress_at_once_are_a_violation() -> None:
    teller = Teller("p1").tell("assigned").tell("dispatched", 0).tell("dispatched", 1).tell("dispatched", 2)
    assert "while @0 of its key was in progress" in order_broken(teller)[0]


def test_records_of_a_key_may_travel_together_and_come_back() -> None:
    teller = Teller("p1").tell("assigned").tell("dispatched", 0).tell("dispatched", 2)
    teller.tell("retried", 0).tell("dispatched", 0, attempt=2).tell("dispatched", 2)
    assert not order_broken(teller.tell("finished", 0).tell("finished", 2))


def test_a_key_that_continues_while_its_record_waits_for_a_retry_is_a_violation() -> None:
    teller = Teller("p1").tell("assigned").tell("dispatched", 0).tell("retried", 0)
    assert "while @0 of its key was in progress" in order_broken(teller.tell("dispatched", 2))[0]


def test_a_record_dispatched_after_a_later_one_of_its_key_was_finished_is_a_violation() -> None:
    teller = Teller("p1").tell("assigned").tell("dispatched", 0).tell("dispatched", 2).tell("finished", 2)
    assert "after @2 of its key was settled" in order_broken(teller.tell("dispatched", 0, attempt=2))[0]


def test_attempts_that_count_backwards_are_a_violation() -> None:
    teller = Teller("p1").tell("assigned").tell("dispatched", 0, attempt=2).tell("dispatched", 1)
    assert "attempt 1 after attempt 2" in order_broken(teller.tell("dispatched", 0, attempt=1))[0]


@pytest.mark.parametrize("end", ["revoked", "lost"])
def test_a_dispatch_after_the_end_of_its_epoch_is_a_violation(end: str) -> None:
    teller = Teller("p1").tell("assigned").work(0, 1, 2).tell(end).tell("dispatched", 3)
    assert "an epoch that is over starts nothing" in broken(history(teller))


def test_a_dispatch_in_an_earlier_epoch_is_a_violation() -> None:
    teller = Teller("p1").tell("assigned").work(0, 1).tell("revoked").tell("committed", 2).tell("assigned", 2, epoch=2)
    assert "an epoch that is over starts nothing" in broken(history(teller.work(2, 3, epoch=1)))


def test_a_dispatch_after_another_member_took_over_is_a_violation() -> None:
    zombie = Teller("p1").tell("assigned").work(0).tell("finished", 1, at=12.0).tell("dispatched", 3).tell("lost")
    heir = Teller("p2", at=8).tell("assigned", 0).work(0, 1, 2, 3).tell("revoked").tell("committed", 4)
    frozen = freeze("p1", 1.0, 11.9)
    assert broken(history(zombie, heir, faults=[frozen])) == {
        "a zombie starts nothing",
        "nothing committed is repeated",
        "repeats have a cause",
    }


def test_a_dispatch_that_a_freeze_cut_off_from_its_decision_is_not_a_zombie_s() -> None:
    stunned = Teller("p1").tell("assigned").work(0).tell("dispatched", 1, at=12.0).tell("lost")
    heir = Teller("p2", at=8).tell("assigned", 0).work(0, 1, 2, 3).tell("revoked").tell("committed", 4)
    assert check(history(stunned, heir, faults=[freeze("p1", 1.0, 11.9)])) == []


@pytest.mark.parametrize("began", [False, True], ids=["no handler began it", "a handler began it"])
def test_only_a_handler_that_began_after_a_freeze_is_a_zombie_s(began: bool) -> None:  # noqa: FBT001 - a parameter
    stunned = Teller("p1").tell("assigned").work(0).tell("dispatched", 1).tell("finished", 1, at=12.0)
    stunned.tell("dispatched", 3).tell("lost")
    heir = Teller("p2", at=8).tell("assigned", 0).work(0, 1, 2, 3).tell("revoked").tell("committed", 4)
    logs = {
        "p1": notes("began 0", "ended 0", "began 1", "ended 1", *(["began 3", "ended 3"] if began else [])),
        "p2": notes(*(f"{kind} {offset}" for offset in range(4) for kind in ("began", "ended"))),
    }
    found = broken(history(stunned, heir, faults=[freeze("p1", 1.0, 11.9)], handler_logs=logs))
    assert ("a zombie starts nothing" in found) == began
    assert found <= {"a zombie starts nothing", "nothing committed is repeated", "repeats have a cause"}


def test_a_record_finished_twice_in_one_epoch_is_a_violation() -> None:
    teller = Teller("p1").tell("assigned").work(0, 1, 2, 3).tell("finished", 3).tell("revoked").tell("committed", 4)
    assert broken(history(teller)) == {"a record is finished once in an epoch"}


def test_two_owners_without_a_fault_are_a_violation() -> None:
    first = Teller("p1").tell("assigned").work(0, 1, 2, 3).tell("committed", 4)
    second = Teller("p2", at=5).tell("assigned", 0).work(3)
    assert "repeats have a cause" in broken(history(first, second))


def notes(*reported: str) -> list[Note]:
    """Entries such as ``began 0``."""
    split = (line.split() for line in reported)
    return [Note("began" if kind == "began" else "ended", (TP, int(o)), KEYS[int(o)] or "") for kind, o in split]


def test_the_diary_agrees_with_a_good_history() -> None:
    handler_log = notes("began 0", "began 1", "ended 0", "began 2", "ended 1", "ended 2", "began 3", "ended 3")
    assert check(history(good(), handler_logs={"p1": handler_log})) == []


def test_a_record_that_no_handler_finished_is_a_violation() -> None:
    handler_log = notes("began 0", "began 1", "ended 0", "began 2", "ended 1", "ended 2", "began 3")
    expected = {"every record was handled", "what is finished was handled there"}
    assert broken(history(good(), handler_logs={"p1": handler_log})) == expected


def test_a_key_on_two_workers_at_once_is_a_violation() -> None:
    handler_log = notes("began 0", "began 2", "ended 0", "ended 2", "began 1", "ended 1", "began 3", "ended 3")
    assert broken(history(good(), handler_logs={"p1": handler_log})) == {"a key runs one record at a time"}


def test_half_a_line_at_the_end_is_not_read() -> None:
    where = '"group":"g","member":"m","topic":"orders","partition":0,"epoch":null'
    whole = f'{{"event":"committed","ts":1.5,{where},"offset":7}}\n'
    (entry,) = read_events("p1", ['{"event":"started","ts":1}\n', whole, whole[:40]])
    assert (entry.kind, entry.ts, entry.tp, entry.offset, entry.epoch) == ("committed", 1.5, TP, 7, -1)
    assert (entry.member, entry.index) == ("m", 0)


def test_every_rule_is_seen_to_fail_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [rule for rule in RULES if f'"{rule}"' not in text] == []


def test_a_report_shows_a_few_examples_of_each_rule() -> None:
    text = report(check(history(Teller("p1"), committed=4)))
    assert text.startswith("nothing is lost: 4 violations")
    assert report(check(history(Teller("p1"))), at_most=1).count("\n") == 2
