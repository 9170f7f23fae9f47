"""A schema registry, as codecs ask it: one question at a time, and none while it is known to be away."""

import threading
import time
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar

from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient, SchemaRegistryError

from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.core.settings import Registry
from penstock.errors import ConfigError

# After a question that was not answered, none is asked for so long; after each further one for twice as long.
_FIRST_REST = 0.5
_LONGEST_REST = 10.0
# What the registry does not have may be wanted again with every record: an id, and what is written with.
_UNKNOWN_SECONDS = 10.0
_UNREGISTERED_SECONDS = 2.0
# How many schemas of a subject are looked at ahead of the records that may have them.
_NEWEST = 20
# Its own codes for what it does not have are 40401, 40402 and so on; a plain 404 may come from anybody at this address.
_NOT_FOUND = 404
# An answer about the question: asked again, it would be the same.
_REFUSALS = (400, 409, 422)
# Larger ones are no ids, and registries differ in what they say to them.
_LARGEST_ID = 2**31 - 1

T = TypeVar("T")


class RefusedError(Exception):
    """The registry answered, and no other answer is to be expected; ``is_missing`` where it does not have a schema."""

    def __init__(self, answer: str, *, is_missing: bool) -> None:
        super().__init__(answer)
        self.is_missing = is_missing


class RegistryClient:
    """Where codecs of one process ask one registry. What is asked for again and again, they remember themselves.

    Threads that ask at the same moment wait for one another: the first fetches what the others find remembered; and
    where the registry is silent, one of them waits for it, and the others are told at once.
    """

    def __init__(self, registry: Registry) -> None:
        self.capacity = registry.cache_capacity
        self._registry = registry
        self._client = _make_client(registry)
        self._asking = threading.Lock()
        self._rests_until = 0.0
        self._rest = _FIRST_REST
        self._reason = ""
        self._unknown: dict[Hashable, float] = {}
        self._unregistered: dict[str, str] = {}

    def __str__(self) -> str:
        return str(self._registry)

    def schema(self, schema_id: int | str) -> Schema:
        """By its id, or by its GUID; one that the registry does not have makes a record undecodable."""
        kind = "GUID" if isinstance(schema_id, str) else "id"
        missing = f"the schema {kind} {schema_id} is not in the registry at {self}"
        if self._unknown_for(schema_id) or (isinstance(schema_id, int) and schema_id > _LARGEST_ID):
            raise Undecodable(missing)
        find = self._client.get_schema_by_guid if isinstance(schema_id, str) else self._client.get_schema
        try:
            return self._ask(find, schema_id)
        except RefusedError as refused:
            self._note_unknown(schema_id, _UNKNOWN_SECONDS)
            raise Undecodable(missing if refused.is_missing else f"{missing}: {refused}") from None

    def _unknown_for(self, what: Hashable) -> float:
        """For how many seconds this is known to be missing, and need not be asked for."""
        return max(0.0, self._unknown.get(what, 0.0) - time.monotonic())

    def _note_unknown(self, what: Hashable, seconds: float) -> None:
        if len(self._unknown) >= self.capacity:
            self._unknown.clear()
        self._unknown[what] = time.monotonic() + seconds

    def version(self, subject: str, version: int) -> Schema:
        """A schema that another one refers to."""
        found: RegisteredSchema = self._ask(self._client.get_version, subject, version, True)  # noqa: FBT003 - not ours
        return found.schema

    def ids(self, subject: str) -> list[int]:
        """The ids of the newest schemas under a subject, the newest first; none where there is no such subject."""
        try:
            versions: list[int] = self._ask(self._client.get_versions, subject)
        except RefusedError:
            return []
        newest = sorted(versions, reverse=True)[:_NEWEST]
        found = (self._ask(self._client.get_version, subject, version) for version in newest)
        return [int(each.schema_id) for each in found if each.schema_id is not None]

    def registered(self, subject: str, schema: Schema, *, register: bool) -> RegisteredSchema:
        """The registration that records are written with; where there is none, they wait until there is."""
        if wait := self._unknown_for((subject, schema, register)):
            raise DependencyUnavailable(self._unregistered[subject], wait)
        ask = self._client.register_schema_full_response if register else self._client.lookup_schema
        try:
            return self._ask(ask, subject, schema)
        except RefusedError as refused:
            problem = f"the registry at {self} refuses the schema under the subject {subject}: {refused}"
            if refused.is_missing:
                problem = (
                    f"the registry at {self} does not have the schema under the subject {subject}: register it there, "
                    "or declare the format with register=True"
                )
            self._unregistered[subject] = problem
            self._note_unknown((subject, schema, register), _UNREGISTERED_SECONDS)
            raise DependencyUnavailable(problem, _UNREGISTERED_SECONDS) from None

    def declared(self, format_name: str, make: Callable[[], T]) -> T:
        """What ``make`` makes of a declared schema and what it refers to. No record is to blame for those."""
        try:
            return make()
        except DependencyUnavailable:
            raise
        except Exception as error:
            problem = (
                f"the schema of {format_name} cannot be used with its references from the registry at {self}: {error}"
            )
            raise DependencyUnavailable(problem, _UNREGISTERED_SECONDS) from error

    def forget(self) -> None:
        """Let go of what the client itself remembers, which has no bound of its own."""
        self._client.clear_caches()

    def _ask(self, question: Callable[..., T], *arguments: Any) -> T:
        with self._asking:
            wait = self._rests_until - time.monotonic()
            if wait > 0:
                raise DependencyUnavailable(self._reason, wait)
            try:
                answer = question(*arguments)
            except SchemaRegistryError as error:
                said = self._in_words(error)
                # A registry without GUIDs does not know the question.
                by_guid = question == self._client.get_schema_by_guid and error.http_status_code == _NOT_FOUND
                is_missing = by_guid or (error.error_code or 0) // 100 == _NOT_FOUND
                if is_missing or error.http_status_code in _REFUSALS:
                    self._rest = _FIRST_REST
                    raise RefusedError(said, is_missing=is_missing) from error
                raise self._away(f"the schema registry at {self} answered: {said}") from error
            except Exception as error:
                # Whatever the network, TLS or a login can raise: none of it is about the record.
                reason = self._registry.scrubbed(str(error)) or type(error).__name__
                raise self._away(f"the schema registry at {self} cannot be asked: {reason}") from error
            self._rest = _FIRST_REST
            return answer

    def _in_words(self, error: SchemaRegistryError) -> str:
        text = self._registry.scrubbed(str(error.error_message))[:200]
        return f"{text} (HTTP {error.http_status_code})"

    def _away(self, reason: str) -> DependencyUnavailable:
        self._reason = reason
        self._rests_until = time.monotonic() + self._rest
        away = DependencyUnavailable(reason, self._rest)
        self._rest = min(self._rest * 2, _LONGEST_REST)
        return away


@lru_cache(maxsize=32)
def registry_client_of(registry: Registry) -> RegistryClient:
    """One for all codecs of this process that use the same registry."""
    return RegistryClient(registry)


def _make_client(registry: Registry) -> SchemaRegistryClient:
    try:
        return SchemaRegistryClient.new_client(registry.client_settings())
    except Exception as error:
        raise ConfigError(
            f"The registry's client refuses its settings: {registry.scrubbed(str(error))}.",
            hint="Check registry=, and the files that it names.",
        ) from error
