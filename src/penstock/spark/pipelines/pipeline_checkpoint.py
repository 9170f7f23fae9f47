"""A pipeline's checkpoint. Unlike a handler's it is kept: a sink may have its last batch, or a state may need it."""

import json
from collections.abc import Iterable
from pathlib import Path

from penstock.spark.driver.declared import Declared
from penstock.spark.pipelines.checkpoint import Checkpoint, checkpoint_of
from penstock.spark.pipelines.resume_offsets import Offsets, from_json

_VERSION_LINE = "v1"
# Spark writes this for a source that has read nothing yet.
_NOT_STARTED = "-"


class PipelineCheckpoint(Checkpoint):
    def finished(self) -> Offsets:
        """Return the end of the last finished batch; if none is finished, the start of the first batch."""
        return super().finished() or self._start()

    def offsets_of(self, batch: int) -> Offsets:
        """Return the end of this batch. A pipeline may have several sources: the file has a line for each."""
        try:
            version, _, *sources = (self.folder / "offsets" / str(batch)).read_text("utf-8").split("\n")
            return _lowest(sources) if version == _VERSION_LINE else {}
        except (OSError, ValueError):
            return {}

    def start_of(self, batch: int) -> Offsets:
        """Return the start of this batch. Partitions that are absent start at their earliest record."""
        return self.offsets_of(batch - 1) if batch > 0 else self._start()

    def is_readable(self) -> bool:
        """Whether Spark can continue from here. An unfinished first batch is enough: Spark repeats it."""
        return super().is_readable() or bool(not self._batches("commits") and self._start() and self._is_planned())

    def has_state(self) -> bool:
        return any((self.folder / "state").glob("*/*/*"))

    def id(self) -> str:
        """Return the unique id that Spark gave this checkpoint."""
        return str(json.loads((self.folder / "metadata").read_text("utf-8"))["id"])

    def _is_planned(self) -> bool:
        planned = self._batches("offsets")
        return bool(planned and self.offsets_of(max(planned)))

    def _start(self) -> Offsets:
        """Return where each source started. Spark writes that once: a zero byte, a line with a version, offsets."""
        try:
            texts = [path.read_text("utf-8") for path in sorted((self.folder / "sources").glob("*/0"))]
            return _lowest(text.split("\n", 1)[1] for text in texts)
        except (OSError, ValueError, IndexError):
            return {}


def pipeline_checkpoint(output: Declared, root: Path) -> PipelineCheckpoint:
    return PipelineCheckpoint(checkpoint_of(output, root).folder)


def _lowest(sources: Iterable[str]) -> Offsets:
    """Return the offsets of all sources of a query; the lower one where two sources read one topic."""
    found: Offsets = {}
    for text in sources:
        for tp, offset in ({} if text == _NOT_STARTED else from_json(text)).items():
            found[tp] = min(offset, found.get(tp, offset))
    return found
