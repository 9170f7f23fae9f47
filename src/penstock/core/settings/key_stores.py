"""Translates settings of Java's key stores and trust stores: PEM and PKCS#12 work, Java's own format JKS does not."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings.java_names import JKS_HINT
from penstock.errors import ConfigError

_PEM_ENDINGS = (".pem", ".crt", ".cer", ".cert")
_PKCS12_ENDINGS = (".p12", ".pfx", ".pkcs12")
_TYPES = ("PEM", "PKCS12", "JKS")
_PKCS12_TRUST_HINT = (
    "Export its certificates with `openssl pkcs12 -in STORE -nokeys -out ca.pem` "
    "and name the file with ssl.ca.location."
)
_JKS_KEYS_HINT = (
    "Convert it with `keytool -importkeystore -srckeystore STORE -destkeystore keys.p12 -deststoretype PKCS12` "
    "and name the new file with ssl.keystore.location."
)


def translate_store(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of librdkafka that replace this one; it also depends on the type of the store in ``settings``."""
    if name == "ssl.truststore.location":
        return _trust(settings[name], _type(settings, "ssl.truststore", default="JKS"))
    if name == "ssl.keystore.location":
        # librdkafka's own ssl.keystore.location is a PKCS#12 file, and so are most files with the ending .jks.
        return _keys(settings[name], _type(settings, "ssl.keystore", default="PKCS12"))
    return {}


def _trust(path: Any, kind: str) -> dict[str, Any]:
    if kind == "PEM":
        return {"ssl.ca.location": path}
    raise ConfigError(
        f"The setting 'ssl.truststore.location' names a {kind} store, which this client does not read.",
        hint=_PKCS12_TRUST_HINT if kind == "PKCS12" else JKS_HINT,
    )


def _keys(path: Any, kind: str) -> dict[str, Any]:
    if kind == "JKS":
        raise ConfigError(
            "The setting 'ssl.keystore.location' names a JKS store, which this client does not read.",
            hint=_JKS_KEYS_HINT,
        )
    if kind == "PEM":  # both in one file
        return {"ssl.certificate.location": path, "ssl.key.location": path}
    return {"ssl.keystore.location": path}


def _type(settings: Mapping[str, Any], store: str, *, default: str) -> str:
    named = settings.get(f"{store}.type")
    if named is not None:
        if str(named).upper() not in _TYPES:
            raise ConfigError(
                f"The setting '{store}.type' is {named!r}, which is not a type of store.", hint="Use PEM or PKCS12."
            )
        return str(named).upper()
    path = str(settings[f"{store}.location"]).lower()
    if path.endswith(_PEM_ENDINGS):
        return "PEM"
    return "PKCS12" if path.endswith(_PKCS12_ENDINGS) else default
