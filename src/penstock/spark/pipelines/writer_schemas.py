"""Which schemas the records of a source were written with, as far as the registry was asked.

Only the driver asks, and the answers are parts of the plan that Spark runs. A batch with a schema that its plan does
not know fails before any of it counts; then the registry is asked, the plan is made anew, and the batch is repeated.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.app import Pipeline, Source
from penstock.codecs import codec_of
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.core.settings import Registry
from penstock.errors import ServerError
from penstock.serde import Avro, Protobuf

Stamps = Mapping[str, Iterable[bytes]]
"""By the names of sources."""


class NewSchemasError(Exception):
    """A batch has records with stamps that its plan does not know."""

    def __init__(self, stamps: Stamps) -> None:
        super().__init__("records with schemas that were not met before")
        self.stamps = stamps


class Schemas:
    """Those of one source. Stamps that stand for nothing readable are ``refused``, each with the reason."""

    def __init__(self, source: Source, registry: Registry | None) -> None:
        if source.format is None:
            raise TypeError(source)
        codec: Any = codec_of(source.format, registry=registry, field="value")
        self._codec = codec
        self._topics = source.topics
        self.is_stamped = source.format.schema_id is not None
        self.known: dict[bytes, Any] = {}
        self.refused: dict[bytes, str] = {}
        self.reader = self._reader() if isinstance(source.format, Avro) else ""
        self.files: bytes = codec.file_set() if isinstance(source.format, Protobuf) else b""

    def look_ahead(self) -> None:
        """Get to know what the topics' subjects have, so that the first batch need not be repeated for it."""
        try:
            for topic in self._topics:
                self.learn(self._codec.schema_ids(topic))
        except DependencyUnavailable:  # a batch that needs it will ask again
            return

    def learn(self, stamps: Iterable[bytes]) -> None:
        """Ask for these; raises Away where nobody answers."""
        for stamp in stamps:
            try:
                self.known[stamp] = self._codec.writer_schema(stamp)
            except Undecodable as error:
                self.refused[stamp] = str(error)

    def _reader(self) -> str:
        try:
            return str(self._codec.reader_schema())
        except DependencyUnavailable as error:
            raise ServerError(
                f"The columns cannot be known: {error}.",
                hint="See that the registry is up and has what is referred to.",
            ) from error


def schemas_of(pipeline: Pipeline) -> dict[str, Schemas]:
    """Of the sources whose values are in a format with a schema."""
    found = {
        name: Schemas(source, pipeline.registry)
        for name, source in pipeline.sources.items()
        if source.format is not None
    }
    for each in found.values():
        each.look_ahead()
    return found


def learn_all(schemas: Mapping[str, Schemas], stamps: Stamps) -> None:
    for name, each in stamps.items():
        schemas[name].learn(each)
