"""Translates the user's settings to the names of kafka-python, which self-managed members use."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings import client_settings
from penstock.errors import ConfigError

_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.crl.location": "ssl_crlfile",
}
# So that a coordinator that restarts is found within a second.
_RECONNECT = {"reconnect_backoff_max_ms": 1_000}
_UPPER = ("security.protocol", "sasl.mechanism")
# Other mechanisms need system libraries or other credentials.
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Settings for credentials and trust. kafka-python would ignore those that have no counterpart, so they are refused.
_LOGINS = ("sasl.", "ssl.", "enable.ssl.", "oauth")
_ASSIGNOR = "this assignor"
_OTHERWISE = ', or one of the assignors "cooperative-sticky", "range" and "roundrobin"'
_HARMLESS = ("ssl.endpoint.identification.algorithm",)


def kafka_python_config(brokers: str, settings: Mapping[str, Any], *, used_for: str = _ASSIGNOR) -> dict[str, Any]:
    """Translate settings of connections, logins and TLS. Raise for a login setting that kafka-python does not have."""
    config: dict[str, Any] = {"bootstrap_servers": brokers.split(","), "client_id": "penstock", **_RECONNECT}
    known = client_settings(settings)
    for name, value in known.items():
        if name == "sasl.mechanism" and str(value).upper() not in _MECHANISMS:
            raise ConfigError(
                f"The setting {name!r} cannot be {value} together with {used_for}.",
                hint=f"Use one of {', '.join(_MECHANISMS)}{_OTHERWISE if used_for == _ASSIGNOR else ''}.",
            )
        if name in _NAMES:
            config[_NAMES[name]] = str(value).upper() if name in _UPPER else value
        elif name.startswith(_LOGINS) and name not in _HARMLESS:
            raise ConfigError(
                f"The setting {name!r} cannot be used together with {used_for}.",
                hint=f"Use one of {', '.join(sorted(_NAMES))} instead{_OTHERWISE if used_for == _ASSIGNOR else ''}.",
            )
    if known.get("ssl.endpoint.identification.algorithm") == "none":
        config["ssl_check_hostname"] = False
    return config
