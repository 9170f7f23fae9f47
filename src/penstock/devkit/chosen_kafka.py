"""The Kafka of the demo and of the lessons: the one that you name, the embedded one, or a temporary one."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.devkit.embedded import Embedded, embedded_brokers
from penstock.devkit.up_options import UpOptions
from penstock.errors import ServerError
from penstock.jvm.progress_callback import ProgressCallback


@dataclass(frozen=True)
class ChosenKafka:
    """A disposable one is deleted afterwards with all its data."""

    brokers: str
    disposable: bool = False


@contextmanager
def choose_kafka(brokers: str | None, *, keep: bool = False, progress: ProgressCallback) -> Iterator[ChosenKafka]:
    """Use the given cluster, else the running embedded Kafka, else a temporary one; with ``keep``, start the embedded.

    ``progress`` gets a line before one is started.
    """
    running = brokers or embedded_brokers()
    if running is not None:
        yield ChosenKafka(running)
    elif keep:
        yield ChosenKafka(_start(Embedded(), UpOptions(), progress))
    else:
        # In a temporary home, so that it does not touch the user's data.
        with tempfile.TemporaryDirectory(prefix="penstock-kafka-") as folder:
            kafka = Embedded(Path(folder))
            try:
                yield ChosenKafka(_start(kafka, UpOptions(port=0), progress), disposable=True)
            finally:
                kafka.down()


def _start(kafka: Embedded, options: UpOptions, progress: ProgressCallback) -> str:
    progress("Starting a real Kafka")
    status = kafka.up(options, progress=progress)
    if status.bootstrap is None:
        raise ServerError("The embedded Kafka did not start.", hint="Run `penstock status` to see its servers.")
    return status.bootstrap
