"""The settings of a schema registry: its URL and how to log in."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from penstock.core.settings.secrets import HIDDEN, hide_passwords, is_secret, known, scrubbed
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError

_HINT = (
    'Use a URL such as "https://registry:8081", or a mapping: {"url": ..., "basic.auth.user.info": "user:password"}.'
)
_PREFIX = "schema.registry."


@suggests_options
@dataclass(frozen=True, repr=False)
class Registry:
    """The settings of the registry's client, under the client's names with ``_`` for ``.``. Printing hides secrets.

    Three defaults differ from the client's: a request may take 5 seconds, the client does not repeat it (records wait
    in their lanes instead), and ``cache_capacity`` is the number of schemas that a codec keeps.
    """

    url: str = ""
    basic_auth_user_info: str | None = None
    ssl_ca_location: str | None = None
    ssl_certificate_location: str | None = None
    ssl_key_location: str | None = None
    ssl_key_password: str | None = None
    bearer_auth_credentials_source: str | None = None
    bearer_auth_token: str | None = None
    bearer_auth_issuer_endpoint_url: str | None = None
    bearer_auth_client_id: str | None = None
    bearer_auth_client_secret: str | None = None
    bearer_auth_scope: str | None = None
    bearer_auth_logical_cluster: str | None = None
    bearer_auth_identity_pool_id: str | None = None
    proxy: str | None = None
    timeout: float = 5.0
    max_retries: int = 0
    retries_wait_ms: int | None = None
    retries_max_wait_ms: int | None = None
    cache_capacity: int = 1000

    def __post_init__(self) -> None:
        known.remember_settings({each.name: getattr(self, each.name) for each in fields(self)})

    def __reduce__(self) -> tuple[Any, ...]:
        """Unpickle with the constructor, so that the receiving process also knows the secrets."""
        return Registry, tuple(getattr(self, each.name) for each in fields(self))

    @classmethod
    def from_text(cls, value: Any) -> "Registry":
        """A registry from a configuration file or environment variable that contains only the URL."""
        if not isinstance(value, str):
            raise ValueError("a URL")  # noqa: TRY004 - readers of options speak with one kind of error
        return cls(url=value)

    def client_settings(self) -> dict[str, Any]:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name.replace("_", "."): value for name, value in given.items() if value is not None}

    def scrubbed(self, text: str) -> str:
        """The text, for example of another library's error, without the secrets of these settings."""
        return scrubbed(text, {each.name: getattr(self, each.name) for each in fields(self)})

    def __str__(self) -> str:
        return str(hide_passwords(self.url))

    def __repr__(self) -> str:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        given = {each.name: values[each.name] for each in fields(self) if values[each.name] != each.default}
        shown = (
            f"{name}={HIDDEN if is_secret(name) else hide_passwords(repr(value))}" for name, value in given.items()
        )
        return f"Registry({', '.join(shown)})"


def registry_of(given: object) -> Registry | None:
    """A Registry from a URL, a mapping of the client's settings, or a Registry."""
    if given is None:
        return None
    if isinstance(given, str):
        given = Registry(url=given)
    elif isinstance(given, Mapping):
        given = _from_mapping(given)
    if not isinstance(given, Registry):
        raise ConfigError(f"registry is a {type(given).__name__}, not a URL or a mapping.", hint=_HINT)
    if not given.url.startswith(("http://", "https://", "mock://")):
        what = f"has the URL {str(given)!r}" if given.url else "has no URL"
        raise ConfigError(f"registry {what}.", hint=_HINT)
    if not isinstance(given.cache_capacity, int) or given.cache_capacity < 1:
        raise ConfigError(f"registry: cache_capacity={given.cache_capacity!r} is not a count.", hint="Use 1 or more.")
    return given


def _from_mapping(given: Mapping[Any, Any]) -> Registry:
    known = {each.name for each in fields(Registry)}
    names = {name: str(name).removeprefix(_PREFIX).replace(".", "_") for name in given}
    for written, name in names.items():
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"Did you mean {nearest[0].replace('_', '.')!r}?" if nearest else _HINT
            raise ConfigError(f"The client of the schema registry has no setting {written!r}.", hint=hint)
    return Registry(**{name: given[written] for written, name in names.items()})
