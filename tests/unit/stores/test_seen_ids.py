"""The ids that a handler has seen, in a file of this machine."""

from pathlib import Path

import pytest

from penstock.app.attempts.deduplication import IdInProgress
from penstock.stores import seen_ids
from penstock.stores.seen_ids import LocalSeenIds, open_seen_ids


def handle(ids: LocalSeenIds, record_id: str, origin: str, now: float, until: float) -> None:
    assert ids.begin(record_id, origin, now) is None
    ids.end(record_id, origin, until)


def test_an_id_is_remembered_over_a_restart_until_its_time_for_each_handler(tmp_path: Path) -> None:
    file = tmp_path / "new" / "ids.sqlite"
    first = LocalSeenIds(file, "one")
    handle(first, "a", "t[0]@1", now=0, until=60)
    first.close()
    again, other = LocalSeenIds(file, "one"), LocalSeenIds(file, "two")
    assert again.begin("a", "t[0]@2", 59.9) == "t[0]@1"
    assert again.begin("a", "t[0]@1", 59.9) is None, "a record is no duplicate of itself"
    again.end("a", "t[0]@1", None)
    assert other.begin("a", "t[0]@2", 59.9) is None
    assert again.begin("a", "t[0]@2", 60) is None, "its time is over"


def test_a_record_in_progress_excludes_others_with_its_id(tmp_path: Path) -> None:
    ids = LocalSeenIds(tmp_path / "ids.sqlite", "one")
    assert ids.begin("a", "t[0]@1", 0) is None
    assert ids.begin("b", "t[0]@2", 0) is None
    with pytest.raises(IdInProgress):
        ids.begin("a", "t[0]@3", 0)
    ids.end("a", "t[0]@1", None)
    assert ids.begin("a", "t[0]@3", 0) is None


def test_the_file_is_bounded_and_loses_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_ids, "_CLEAN_EVERY", 10)
    ids = LocalSeenIds(tmp_path / "ids.sqlite", "one", most=20)
    for number in range(100):
        handle(ids, str(number), f"t[0]@{number}", now=0, until=1_000 + number)
    known = [number for number in range(100) if ids._connection.execute(
        "SELECT 1 FROM seen WHERE id = ?", (str(number),)).fetchone()]  # fmt: skip
    assert known == list(range(80, 100))
    for number in range(100, 110):
        handle(ids, str(number), f"t[0]@{number}", now=5_000, until=6_000)
    (count,) = ids._connection.execute("SELECT COUNT(*) FROM seen").fetchone()
    assert count == 10, "what has expired is deleted"


def test_a_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    file = tmp_path / "ids.sqlite"
    file.write_bytes(b"no database" * 1_000)
    with pytest.raises(OSError, match="not a database"):
        LocalSeenIds(file, "one")


def test_all_members_of_a_handler_share_their_ids(tmp_path: Path) -> None:
    assert open_seen_ids(tmp_path / "a", "one") is open_seen_ids(tmp_path / "a", "one")
    assert open_seen_ids(tmp_path / "a", "one") is not open_seen_ids(tmp_path / "a", "two")
