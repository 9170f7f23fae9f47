"""A user's settings in the words of kafka-python, which speaks to the coordinator for open members."""

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
# A coordinator that is back is to be found within a second.
_PATIENCE = {"reconnect_backoff_max_ms": 1_000}
_UPPER = ("security.protocol", "sasl.mechanism")
# Others need libraries of the system, or a login of another form.
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# What says who we are or whom we trust, and would be left unheard.
_LOGINS = ("sasl.", "ssl.", "enable.ssl.", "oauth")
_ASSIGNOR = "this assignor"
_OTHERWISE = ', or one of the assignors "cooperative-sticky", "range" and "roundrobin"'
_HARMLESS = ("ssl.endpoint.identification.algorithm",)


def open_settings(brokers: str, settings: Mapping[str, Any], *, used_for: str = _ASSIGNOR) -> dict[str, Any]:
    """Connections, logins and TLS; what has no counterpart is refused, as a login must not be half of one."""
    config: dict[str, Any] = {"bootstrap_servers": brokers.split(","), "client_id": "penstock", **_PATIENCE}
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
