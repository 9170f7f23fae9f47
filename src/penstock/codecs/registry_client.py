"""The client of a schema registry: one request at a time, and none for a while after a failed request."""

import threading
import time
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, TypeVar

from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient, SchemaRegistryError

from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.core.settings import Registry
from penstock.errors import ConfigError

# After a failed request the client makes none for so many seconds, and for twice as long after each further failure.
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
# Every record may need a schema that the registry does not have. For so long the client does not ask for it again: an
# unknown id, and a schema to write with that is not registered.
_UNKNOWN_SECONDS = 10.0
_UNREGISTERED_SECONDS = 2.0
# How many schemas of a subject a pipeline fetches before it reads records.
_NEWEST = 20
# A registry answers 40401, 40402 and so on for what it does not have; a plain 404 may come from any other server.
_NOT_FOUND = 404
_SERVER_ERROR = 500
# HTTP statuses of refused requests: the same request would be refused again.
_REFUSALS = (400, 409, 422)
# Larger numbers are not ids, and registries differ in their answers to them.
_LARGEST_ID = 2**31 - 1

T = TypeVar("T")


class RefusedError(Exception):
    """The registry refused a request, and would refuse it again. ``is_missing``: it does not have the schema."""

    def __init__(self, answer: str, *, is_missing: bool) -> None:
        super().__init__(answer)
        self.is_missing = is_missing


class RegistryClient:
    """All codecs of a process share one client for each registry, and cache what they fetch.

    Requests of several threads run one after the other, under a lock. While the registry does not answer, one thread
    waits for it; then the others raise an error at once, without a request.
    """

    def __init__(self, registry: Registry) -> None:
        self.capacity = registry.cache_capacity
        self._registry = registry
        self._client = _make_client(registry)
        self._lock = threading.Lock()
        self._paused_until = 0.0
        self._pause = _FIRST_PAUSE
        self._reason = ""
        self._missing_until: dict[Hashable, float] = {}
        self._unregistered: dict[str, str] = {}

    def __str__(self) -> str:
        return str(self._registry)

    def schema(self, schema_id: int | str) -> Schema:
        """Fetch a schema by its id or GUID. Raises Undecodable if the registry does not have it."""
        kind = "GUID" if isinstance(schema_id, str) else "id"
        missing = f"the schema {kind} {schema_id} is not in the registry at {self}"
        if self._seconds_missing(schema_id) or (isinstance(schema_id, int) and schema_id > _LARGEST_ID):
            raise Undecodable(missing)
        find = self._client.get_schema_by_guid if isinstance(schema_id, str) else self._client.get_schema
        try:
            return self._request(find, schema_id)
        except RefusedError as refused:
            self._note_missing(schema_id, _UNKNOWN_SECONDS)
            raise Undecodable(missing if refused.is_missing else f"{missing}: {refused}") from None

    def _seconds_missing(self, what: Hashable) -> float:
        """Return for how many more seconds this counts as missing, without another request."""
        return max(0.0, self._missing_until.get(what, 0.0) - time.monotonic())

    def _note_missing(self, what: Hashable, seconds: float) -> None:
        if len(self._missing_until) >= self.capacity:
            self._missing_until.clear()
        self._missing_until[what] = time.monotonic() + seconds

    def version(self, subject: str, version: int) -> Schema:
        """Fetch a schema that another schema refers to."""
        found: RegisteredSchema = self._request(self._client.get_version, subject, version, True)  # noqa: FBT003 - the client's signature: deleted ones too
        return found.schema

    def ids(self, subject: str) -> list[int]:
        """Fetch the ids of the newest schemas of a subject, newest first; an empty list if there is no such subject."""
        try:
            versions: list[int] = self._request(self._client.get_versions, subject)
        except RefusedError:
            return []
        newest = sorted(versions, reverse=True)[:_NEWEST]
        found = (self._request(self._client.get_version, subject, version) for version in newest)
        return [int(each.schema_id) for each in found if each.schema_id is not None]

    def registered(self, subject: str, schema: Schema, *, register: bool) -> RegisteredSchema:
        """Look up, or register, the schema to write with. If the registry lacks it, records wait until it is there."""
        if wait := self._seconds_missing((subject, schema, register)):
            raise DependencyUnavailable(self._unregistered[subject], wait)
        send = self._client.register_schema_full_response if register else self._client.lookup_schema
        try:
            return self._request(send, subject, schema)
        except RefusedError as refused:
            problem = f"the registry at {self} refuses the schema under the subject {subject}: {refused}"
            if refused.is_missing:
                problem = (
                    f"the registry at {self} does not have the schema under the subject {subject}: register it there, "
                    "or declare the format with register=True"
                )
            self._unregistered[subject] = problem
            self._note_missing((subject, schema, register), _UNREGISTERED_SECONDS)
            raise DependencyUnavailable(problem, _UNREGISTERED_SECONDS) from None

    def declared(self, format_name: str, make: Callable[[], T]) -> T:
        """Call ``make``, which parses a declared schema and its references. Their errors are not a record's fault."""
        try:
            return make()
        except DependencyUnavailable:
            raise
        except Exception as error:
            problem = (
                f"the schema of {format_name} cannot be used with its references from the registry at {self}: {error}"
            )
            raise DependencyUnavailable(problem, _UNREGISTERED_SECONDS) from error

    def problem(self) -> str | None:
        """Ask for the registry's configuration; return why it cannot be used now, or None. For probes.

        It takes no lock and starts no pause, so that probes and records do not wait for each other.
        """
        if self._paused_until > time.monotonic():
            return f"{self._reason}."
        if self._registry.url.startswith("mock://"):
            return None
        try:
            self._client.get_config()
        except SchemaRegistryError as error:
            # Any other answer, even a refusal, comes from a registry that runs.
            return f"The schema registry at {self} answered: {self._in_words(error)}." if _is_down(error) else None
        except Exception as error:  # noqa: BLE001 - the network, TLS or a login
            reason = self._registry.scrubbed(str(error)) or type(error).__name__
            return f"The schema registry at {self} cannot be asked: {reason}."
        return None

    def forget(self) -> None:
        """Clear the caches of Confluent's client, which have no limit."""
        self._client.clear_caches()

    def _request(self, send: Callable[..., T], *arguments: Any) -> T:
        with self._lock:
            wait = self._paused_until - time.monotonic()
            if wait > 0:
                raise DependencyUnavailable(self._reason, wait)
            try:
                answer = send(*arguments)
            except SchemaRegistryError as error:
                said = self._in_words(error)
                # A registry without GUIDs does not have this URL.
                by_guid = send == self._client.get_schema_by_guid and error.http_status_code == _NOT_FOUND
                is_missing = by_guid or (error.error_code or 0) // 100 == _NOT_FOUND
                if is_missing or error.http_status_code in _REFUSALS:
                    self._pause = _FIRST_PAUSE
                    raise RefusedError(said, is_missing=is_missing) from error
                raise self._unavailable(f"the schema registry at {self} answered: {said}") from error
            except Exception as error:
                # The network, TLS or a login failed. None of these is the record's fault.
                reason = self._registry.scrubbed(str(error)) or type(error).__name__
                raise self._unavailable(f"the schema registry at {self} cannot be asked: {reason}") from error
            self._pause = _FIRST_PAUSE
            return answer

    def _in_words(self, error: SchemaRegistryError) -> str:
        text = self._registry.scrubbed(str(error.error_message))[:200]
        return f"{text} (HTTP {error.http_status_code})"

    def _unavailable(self, reason: str) -> DependencyUnavailable:
        self._reason = reason
        self._paused_until = time.monotonic() + self._pause
        error = DependencyUnavailable(reason, self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        return error


def _is_down(error: SchemaRegistryError) -> bool:
    return int(error.http_status_code) >= _SERVER_ERROR


@lru_cache(maxsize=32)
def registry_client_of(registry: Registry) -> RegistryClient:
    """Return the client that all codecs of this process share for this registry."""
    return RegistryClient(registry)


def _make_client(registry: Registry) -> SchemaRegistryClient:
    try:
        return SchemaRegistryClient.new_client(registry.client_settings())
    except Exception as error:
        raise ConfigError(
            f"The registry's client refuses its settings: {registry.scrubbed(str(error))}.",
            hint="Check registry=, and the files that it names.",
        ) from error
