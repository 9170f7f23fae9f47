"""Explains why a download failed, and whether another attempt may succeed."""

import http.client
import os
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from urllib.error import HTTPError, URLError

from penstock.errors import SetupError
from penstock.jvm.maven_registry import MIRROR_VARIABLE

_NETWORK_HINT = (
    f"Check the network, then run the command again. Behind a mirror, set {MIRROR_VARIABLE} to it; "
    "behind a proxy, set https_proxy."
)
_MIRROR_HINT = (
    f"{MIRROR_VARIABLE} names this registry: check the address and what it holds, or unset it to use Maven Central."
)
_CERTIFICATE_HINT = (
    "If your network inspects TLS, set SSL_CERT_FILE to a file with its certificates. "
    "If this is Python from python.org on macOS, run its `Install Certificates.command`."
)
_ACCESS_HINT = (
    "Check the name and password of your mirror (PENSTOCK_MAVEN_URL=https://name:password@host/path) or of your proxy."
)
_NO_ACCESS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.PROXY_AUTHENTICATION_REQUIRED}
_BUSY = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS}


@dataclass(frozen=True)
class DownloadFailure:
    """``passing`` means that another attempt may succeed."""

    error: SetupError
    passing: bool = False


class DamagedError(Exception):
    """A file arrived incomplete or with a wrong checksum; the text says which."""


def is_missing(error: Exception) -> bool:
    """Return whether the registry, which may be a folder, does not have the file."""
    match error:
        case HTTPError(code=HTTPStatus.NOT_FOUND | HTTPStatus.GONE) | URLError(reason=FileNotFoundError()):
            return True
    return False


def explain_download(title: str, error: Exception, *, what: str, registry: str) -> DownloadFailure:
    """Explain why ``what``, a file of the set ``title``, could not be downloaded from ``registry``."""
    match error:
        case DamagedError():
            failure = _damaged(title, what, str(error))
        case _ if is_missing(error):
            failure = unknown(title, what, registry)
        case HTTPError():
            failure = _refused(title, f"{error.code} {error.reason}".strip(), error.code, registry)
        case URLError(reason=ssl.SSLCertVerificationError() as reason):
            failure = _not_trusted(title, registry, reason.verify_message)
        case http.client.InvalidURL():
            failure = DownloadFailure(SetupError(f"Cannot fetch {title}: {error}.", hint="Correct PENSTOCK_MAVEN_URL."))
        case _:
            cause = error.reason if isinstance(error, URLError) else error
            failure = _out_of_reach(title, f"{registry}: {_reason(cause)}")
    return failure


def _not_trusted(title: str, registry: str, reason: str) -> DownloadFailure:
    return DownloadFailure(
        SetupError(
            f"Cannot fetch {title}: the certificate of {registry} is not trusted ({reason}).", hint=_CERTIFICATE_HINT
        )
    )


def _out_of_reach(title: str, reason: str) -> DownloadFailure:
    return DownloadFailure(
        SetupError(f"Cannot fetch {title}: the Maven registry cannot be reached ({reason}).", hint=_network_hint()),
        passing=True,
    )


def _refused(title: str, answer: str, code: int, registry: str) -> DownloadFailure:
    return DownloadFailure(
        SetupError(
            f"Cannot fetch {title}: the Maven registry ({registry}) answered {answer!r}.",
            hint=_ACCESS_HINT if code in _NO_ACCESS else _network_hint(),
        ),
        passing=code in _BUSY or code >= HTTPStatus.INTERNAL_SERVER_ERROR,
    )


def _damaged(title: str, what: str, reason: str) -> DownloadFailure:
    return DownloadFailure(
        SetupError(f"Cannot fetch {title}: {what} arrived damaged ({reason}).", hint=_network_hint()), passing=True
    )


def unknown(title: str, what: str, registry: str) -> DownloadFailure:
    return DownloadFailure(
        SetupError(
            f"Cannot fetch {title}: the Maven registry ({registry}) has no {what}.",
            hint=_MIRROR_HINT if os.environ.get(MIRROR_VARIABLE) else "Check the name and the version.",
        )
    )


def unresolvable(title: str, reason: str) -> SetupError:
    return SetupError(
        f"Cannot fetch {title}: its dependencies cannot be resolved ({reason}).",
        hint="Check the coordinate. If a pom is wrong, download the jars yourself and name them in `spark.jars`.",
    )


def _network_hint() -> str:
    return _MIRROR_HINT if os.environ.get(MIRROR_VARIABLE) else _NETWORK_HINT


def _reason(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip(".")
