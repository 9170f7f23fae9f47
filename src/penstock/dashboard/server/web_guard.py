"""Decides who may ask what, before anything else sees a request.

The dashboard can change offsets and stop apps, so any other web page in the same browser is an attacker: it could send
requests to loopback (so ``Origin`` is checked), or give a host name of its own the address of loopback (so ``Host`` is
checked). The cookie proves that the browser has opened the link that the command printed.
"""

import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
# Files of the dashboard itself: they contain nothing about the cluster.
_PUBLIC = ("/static/", "/sign-in")


@dataclass(frozen=True)
class Keys:
    """The token of the printed link, and the value of the cookie that a browser gets for it. Neither is stored."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))


@dataclass(frozen=True)
class Door:
    """The address of the server, and what a request must bring."""

    host: str
    port: int
    keys: Keys = field(default_factory=Keys)
    names: frozenset[str] = frozenset()
    """More host names under which browsers may reach it, if it does not only listen on loopback."""

    @property
    def cookie(self) -> str:
        # Browsers share cookies between all ports of a host.
        return f"penstock-{self.port}"

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    def admits_host(self, header: str) -> bool:
        """Return whether this ``Host`` is ours. An attacker needs a name for it, so any numeric address is fine."""
        name, _, port = header.rpartition(":")
        if not name.strip("[]") or port != str(self.port):
            return header in _LOOPBACK_NAMES and self.port == 80  # noqa: PLR2004 - browsers leave out HTTP's own port
        name = name.strip("[]").lower()
        if name in _LOOPBACK_NAMES or is_loopback(name):
            return True
        return not self.is_local and (name in self.names or _is_address(name))

    def admits_token(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.keys.token.encode())

    def admits_cookie(self, header: str) -> bool:
        # Not SimpleCookie: it drops all cookies if one has a value such as JSON, and other ports may have set such.
        found = cookie_parser(header).get(self.cookie, "")
        return secrets.compare_digest(found.encode(), self.keys.session.encode())


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class WebGuard:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in {**SECURITY_HEADERS, "Cache-Control": "no-store"}.items()
                    if name.lower().encode() not in given
                ]
            await send(message)

        refused = refusal(self._door, scope["method"], scope["path"], Headers(scope=scope))
        await (refused or self._app)(scope, receive, guarded)


def refusal(door: Door, method: str, path: str, headers: Mapping[str, str]) -> Response | None:
    """Return the answer to a request that must go no further, or None."""
    host = headers.get("host", "")
    if not door.admits_host(host):
        return _refused(421, "This is not the address of the dashboard.", "Open the link that `penstock ui` printed.")
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_own = origin == f"http://{host}"
    is_read = method in {"GET", "HEAD"}
    # A page on another port of this machine is "same-site": its requests have the cookie, and reads have no origin.
    from_elsewhere = site not in {None, "same-origin", "none"} and path.startswith("/api/")
    foreign_page = (origin is not None and not is_own) or from_elsewhere
    if foreign_page or (not is_read and not is_own):
        return _refused(403, "The request came from another web page.", "Use the dashboard's own page.")
    if any(path.startswith(each) for each in _PUBLIC):
        return None
    if not door.admits_cookie(headers.get("cookie", "")):
        hint = "Open the link that `penstock ui` printed when it started: it ends with ?token=…"
        return _signed_out() if path == "/" else _refused(401, "This browser is not signed in.", hint)
    return None


def _refused(status: int, problem: str, hint: str) -> Response:
    return JSONResponse({"error": {"problem": problem, "hint": hint}}, status)


def _signed_out() -> Response:
    """A page without scripts, for people who open a bookmark after a restart."""
    page = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Penstock</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/static/theme.css">
<link rel="stylesheet" href="/static/parts.css"><main class="signed-out"><h1>This browser is not signed in</h1>
<p>Open the link that <code>penstock ui</code> printed when it started. It ends with <code>?token=…</code>.</p>
<p>Each start of the dashboard has a new link.</p></main></html>"""
    return Response(page, 401, media_type="text/html")
