"""The queue of files that the workers share. It is a folder, so that it survives the death of a worker.

A unit is a file of tests, or several files that share servers. A worker owns a unit from the moment it has created the
claim's file, which only one of them can. If a worker dies, the runner removes its claims, and another worker takes the
rest of those units: every test that was started left a mark, and none is started twice.
"""

import hashlib
import json
import os
from pathlib import Path


class Queue:
    def __init__(self, folder: Path) -> None:
        self._claims = folder / "claims"
        self._marks = folder / "marks"
        for each in (self._claims, self._marks):
            each.mkdir(parents=True, exist_ok=True)

    def claim(self, unit: str, worker: str) -> bool:
        """Return whether the unit is now this worker's."""
        draft = self._claims / f".{worker}"
        draft.write_text(json.dumps({"unit": unit, "worker": worker}))
        try:
            # The link has its content at once; a worker may be killed at any point.
            os.link(draft, self._claims / _name(unit))
        except FileExistsError:
            return False
        finally:
            # The claim and the draft are the same file, so writing the next draft into it would change the claim.
            draft.unlink()
        return True

    def mark_started(self, test: str) -> None:
        (self._marks / _name(test)).touch()

    def was_started(self, test: str) -> bool:
        return (self._marks / _name(test)).exists()

    def release(self, worker: str) -> None:
        """The worker has died: let other workers claim its units."""
        for path in self._claims.iterdir():
            if not path.name.startswith(".") and json.loads(path.read_text())["worker"] == worker:
                path.unlink()


def _name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
