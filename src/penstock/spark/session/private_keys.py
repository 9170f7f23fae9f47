"""Private keys in the one form that Java's Kafka client is sure to read: PKCS#8, and not encrypted."""

import re

from penstock.errors import ConfigError

_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)
_BY_HAND = "openssl pkcs8 -topk8 -nocrypt -in OLD.key -out NEW.key"


def key_for_java(pem: str, password: str | None) -> str:
    """The same key. Java 17 does not open keys that are encrypted as OpenSSL does it today, so it is opened here.

    No error of this function shows anything of it.
    """
    found = _KEY.search(pem)
    if found is None or found[1] == "":
        return pem
    try:
        # It comes with the formats of a schema registry; most keys need it not.
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ImportError as missing:
        raise ConfigError(
            "The key of ssl.key.location is in a form that Java does not read.",
            hint=f"Run `pip install cryptography`, or convert it: {_BY_HAND}",
        ) from missing
    # Of a password that it does not need, the other client does not complain either.
    secret = password.encode() if password and "ENCRYPTED" in found[0] else None
    try:
        key = serialization.load_pem_private_key(found[0].encode(), secret)
    except (ValueError, TypeError, NotImplementedError):
        # Without the cause, whose words may hold some of the key's.
        raise ConfigError(
            "The key of ssl.key.location cannot be opened.",
            hint=f"See that ssl.key.password is the key's, and that the file is whole; or convert it: {_BY_HAND}",
        ) from None
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
