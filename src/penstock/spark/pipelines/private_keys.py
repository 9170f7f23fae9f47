"""Converts private keys to the one form that Java's Kafka client always reads: PKCS#8, not encrypted."""

import re

from penstock.errors import ConfigError

_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_BY_HAND = "openssl pkcs8 -topk8 -nocrypt -in OLD.key -out NEW.key"


def key_for_java(pem: str, password: str | None) -> str:
    """Return the key without encryption: Java 17 cannot decrypt keys that today's OpenSSL has encrypted.

    No error of this function shows a part of the key.
    """
    found = _KEY.search(pem)
    if found is None or found[1] == "":
        return pem
    try:
        # The extras with a schema registry install it; most keys do not need it.
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ImportError as missing:
        raise ConfigError(
            "The key of ssl.key.location is in a form that Java does not read.",
            hint=f"Run `pip install cryptography`, or convert it: {_BY_HAND}",
        ) from missing
    # Ignore a password that the key does not need, as librdkafka does.
    secret = password.encode() if password and "ENCRYPTED" in found[0] else None
    try:
        key = serialization.load_pem_private_key(found[0].encode(), secret)
    except (ValueError, TypeError, NotImplementedError):
        # Without the cause, whose text may have a part of the key.
        raise ConfigError(
            "The key of ssl.key.location cannot be decrypted or parsed.",
            hint=f"Check ssl.key.password, and that the file is complete; or convert it: {_BY_HAND}",
        ) from None
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
