"""The registry of the jars: Maven Central, or the mirror of ``PENSTOCK_MAVEN_URL``."""

import base64
import os
import urllib.request
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from penstock.errors import ConfigError

MIRROR_VARIABLE = "PENSTOCK_MAVEN_URL"


@dataclass(frozen=True)
class MavenRegistry:
    """``root`` ends with a slash and has no password; ``authorization`` is the HTTP header made from it."""

    root: str
    authorization: str | None = None

    def describe(self) -> str:
        """Return the host, and the proxy if there is one, for error messages."""
        parts = urlsplit(self.root)
        if parts.scheme == "file":
            return self.root
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy is None or urllib.request.proxy_bypass(parts.hostname or ""):
            return parts.netloc
        return f"{parts.netloc} through the proxy {urlsplit(proxy).netloc.rpartition('@')[2] or proxy}"


def find_registry() -> MavenRegistry:
    address = os.environ.get(MIRROR_VARIABLE) or _maven_central()
    if not address.startswith(("http://", "https://", "file:")):
        raise ConfigError(
            f"{MIRROR_VARIABLE} is not an address.",
            hint="Set it to the http(s) or file: address of a Maven mirror, or unset it.",
        )
    parts = urlsplit(address.rstrip("/") + "/")
    credentials, _, host = parts.netloc.rpartition("@")
    return MavenRegistry(urlunsplit(parts._replace(netloc=host)), _basic(credentials) if credentials else None)


def _maven_central() -> str:
    """Return the address that jgo, a Maven resolver, maintains: our sources name no registry host."""
    from jgo.constants import MAVEN_CENTRAL_URL  # noqa: PLC0415 - takes half a second, and is not needed with a mirror

    return MAVEN_CENTRAL_URL


def _basic(credentials: str) -> str:
    return "Basic " + base64.b64encode(unquote(credentials).encode()).decode()
