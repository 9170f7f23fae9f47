"""``BatchId``: what identifies a micro-batch of a pipeline, also when Spark repeats it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BatchId:
    """The id of a micro-batch. A batch that is repeated after a failure has the same rows and the same id.

    The number alone is not enough: a new checkpoint starts again at 0, with other records. ``incarnation`` is the id of
    the checkpoint, or of a backfill. ``str(batch)`` has both. ``pipeline`` is the group and the name of the output.
    """

    pipeline: str
    incarnation: str
    number: int

    def __str__(self) -> str:
        return f"{self.incarnation}-{self.number}"
