"""The schemas that the records of a source were written with.

Only the driver fetches schemas from the registry; they become parts of the plan that Spark runs. A batch with a schema
that the plan lacks fails before a sink has it. Then the driver fetches the schema, builds a new plan, and Spark repeats
the batch.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.app import Pipeline, Source
from penstock.codecs import codec_of
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.core.settings import Registry
from penstock.errors import ServerError
from penstock.serde import Avro, Protobuf

SchemaIds = Mapping[str, Iterable[bytes]]
"""Schema ids, as their bytes, by the name of the source."""


class NewSchemasError(Exception):
    """A batch has records with schema ids that its plan does not have."""

    def __init__(self, schema_ids: SchemaIds) -> None:
        super().__init__("records with schemas that were not fetched yet")
        self.schema_ids = schema_ids


class Schemas:
    """The schemas of one source. ``refused`` has the ids of unusable schemas, each with the reason."""

    def __init__(self, source: Source, registry: Registry | None) -> None:
        if source.format is None:
            raise TypeError(source)
        codec: Any = codec_of(source.format, registry=registry, field="value")
        self._codec = codec
        self._topics = source.topics
        self.has_schema_ids = source.format.schema_id is not None
        self.known: dict[bytes, Any] = {}
        self.refused: dict[bytes, str] = {}
        self.reader = self._reader() if isinstance(source.format, Avro) else ""
        self.files: bytes = codec.file_set() if isinstance(source.format, Protobuf) else b""

    def prefetch(self) -> None:
        """Fetch the newest schemas of the topics' subjects, so that the first batch need not fail and be repeated."""
        try:
            for topic in self._topics:
                self.fetch(self._codec.schema_ids(topic))
        except DependencyUnavailable:  # a batch that needs a schema tries again
            return

    def fetch(self, schema_ids: Iterable[bytes]) -> None:
        """Fetch these schemas. Raises DependencyUnavailable if the registry does not answer."""
        for id_bytes in schema_ids:
            try:
                self.known[id_bytes] = self._codec.writer_schema(id_bytes)
            except Undecodable as error:
                self.refused[id_bytes] = str(error)

    def _reader(self) -> str:
        try:
            return str(self._codec.reader_schema())
        except DependencyUnavailable as error:
            raise ServerError(
                f"The columns of the source are unknown because {error}.",
                hint="See that the registry is up and has the schemas that the declared one refers to.",
            ) from error


def schemas_of(pipeline: Pipeline) -> dict[str, Schemas]:
    """Return the schemas of each source in Avro, JSON Schema or Protobuf."""
    found = {
        name: Schemas(source, pipeline.registry)
        for name, source in pipeline.sources.items()
        if source.format is not None
    }
    for each in found.values():
        each.prefetch()
    return found


def fetch_schemas(schemas: Mapping[str, Schemas], schema_ids: SchemaIds) -> None:
    for name, each in schema_ids.items():
        schemas[name].fetch(each)
