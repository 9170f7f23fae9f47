"""Client settings by their Kafka names: which exist, which values they accept, and which are secret."""

from penstock.core.settings.schema_registry import Registry, registry_of
from penstock.core.settings.secrets import (
    HIDDEN,
    Settings,
    hide_passwords,
    is_secret,
    known,
    redacted,
    redacted_values,
    scrubbed,
    shown_command,
    shown_setting,
)
from penstock.core.settings.settings_check import WRITABLE, Translated, client_settings, require_known, translated
from penstock.core.settings.sides import for_side

__all__ = [
    "HIDDEN",
    "WRITABLE",
    "Registry",
    "Settings",
    "Translated",
    "client_settings",
    "for_side",
    "hide_passwords",
    "is_secret",
    "known",
    "redacted",
    "redacted_values",
    "registry_of",
    "require_known",
    "scrubbed",
    "shown_command",
    "shown_setting",
    "translated",
]
