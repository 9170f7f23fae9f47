"""Workers share the files of a run: each file has one owner, and a file of a dead worker gets another owner."""

import json
from pathlib import Path

from suite.shared_queue import Queue


def test_a_file_has_one_owner_until_that_is_dead(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    assert queue.claim("test_a.py", "1")
    assert not queue.claim("test_a.py", "2")
    queue.release("1")
    assert queue.claim("test_a.py", "2")


def test_a_claim_does_not_change_when_its_worker_claims_another(tmp_path: Path) -> None:
    """Others read it at any time, so it is never written again."""
    queue = Queue(tmp_path)
    for number in range(3):
        queue.claim(f"test_{number}.py", "1")
    queue.claim("test_0.py", "1")
    claims = [json.loads(path.read_text()) for path in (tmp_path / "claims").iterdir()]
    assert sorted(claim["unit"] for claim in claims) == ["test_0.py", "test_1.py", "test_2.py"]


def test_a_test_that_was_started_stays_so(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    queue.mark_started("test_a.py::test_one")
    queue.release("1")
    assert Queue(tmp_path).was_started("test_a.py::test_one")
    assert not queue.was_started("test_a.py::test_two")
