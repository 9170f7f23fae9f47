"""The routes of the dashboard: its page, its files, the feed, and the endpoints of pages."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from penstock import __version__
from penstock.core.settings import redacted_values
from penstock.dashboard.child.dashboard_child import DashboardChild
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.feed.live_feed import LiveFeed
from penstock.dashboard.pages import PAGES
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.dashboard.server.web_guard import Door, WebGuard
from penstock.errors import ConfigError, PenstockError, ServerError, SetupError, StateError, TopicError

STATIC = Path(__file__).parent.parent / "static"
_HEARTBEAT_SECONDS = 10.0
_MAX_BODY_BYTES = 1_000_000
_GO_ON = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Penstock</title>
<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Open the dashboard</a></p></html>"""
# The status of an answer by the kind of its error.
_STATUS = {ConfigError: 400, StateError: 409, TopicError: 404, SetupError: 501, ServerError: 503}


def make_web_app(
    context: DashboardContext, door: Door, child: DashboardChild | None = None
) -> tuple[ASGIApp, LiveFeed]:
    """Return the web app with its guard, and its feed, which must be closed. Without a child, it reads here."""
    makers = {name: make for page in PAGES for name, make in page.sources.items()} if child is None else child.makers()
    feed = LiveFeed(makers, context)
    routes = [
        Route("/", _index),
        Route("/sign-in", _sign_in(door)),
        Route("/api/about", _about(context, context.connection if child is None else child)),
        Route("/api/feed", _stream(feed)),
        Route("/api/feed/look", _look(feed), methods=["POST"]),
        *(_endpoint(context, page, each, child) for page in PAGES for each in page.endpoints),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    return WebGuard(Starlette(routes=routes), door), feed


async def _index(_request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-store"})


def _sign_in(door: Door) -> Any:
    async def sign_in(request: Request) -> Response:
        """Exchange the token of the link for the cookie. The token does not stay in the address line."""
        if not door.admits_token(request.query_params.get("token", "")):
            return RedirectResponse("/", 303)
        # A browser that follows a link of another page, or of the launch file, sends no strict cookie along a redirect:
        # for the cookie, the page itself must go on.
        from_elsewhere = request.headers.get("sec-fetch-site") in {"cross-site", "same-site"}
        answer = Response(_GO_ON, media_type="text/html") if from_elsewhere else RedirectResponse("/", 303)
        answer.set_cookie(door.cookie, door.keys.session, httponly=True, samesite="strict", path="/")
        return answer

    return sign_in


def _about(context: DashboardContext, connection: ClusterConnection | DashboardChild) -> Any:
    async def about(_request: Request) -> Response:
        connection.begin()
        pages = [
            {"name": each.name, "title": each.title, "under": each.under, "icon": each.icon, "style": each.has_style}
            for each in PAGES
        ]
        return _json(
            {
                "version": __version__,
                "writes": context.allow_writes,
                "brokers": connection.brokers,
                "formats": context.decoding.formats,
                "pages": pages,
            }
        )

    return about


def _stream(feed: LiveFeed) -> Any:
    async def stream(request: Request) -> Response:
        """Server-Sent Events: first the id of the viewer, then messages. A comment shows that the server still runs."""
        try:
            viewer = feed.join(request.query_params.getlist("topic"))
        except PenstockError as error:
            return _problem(error)

        async def events() -> AsyncIterator[bytes]:
            try:
                yield b"retry: 1000\nevent: viewer\ndata: " + msgspec.json.encode(viewer.id) + b"\n\n"
                async for messages in feed.messages(viewer, at_least_every=_HEARTBEAT_SECONDS):
                    yield b"".join(b"data: " + each + b"\n\n" for each in messages) or b": still here\n\n"
            finally:
                feed.leave(viewer)

        return StreamingResponse(events(), media_type="text/event-stream")

    return stream


def _look(feed: LiveFeed) -> Any:
    async def look(request: Request) -> Response:
        try:
            body = await _body(request)
            keys = [str(each) for each in body["keys"]]
            feed.look(str(body["viewer"]), str(body["topic"]), keys)
        except PenstockError as error:
            return _problem(error)
        except (KeyError, TypeError):
            return _problem(ConfigError("The request lacks viewer, topic or keys."))
        return Response(status_code=204)

    return look


def _endpoint(
    context: DashboardContext, page: DashboardPage, endpoint: Endpoint, child: DashboardChild | None
) -> Route:
    answered = partial(endpoint.answer, context) if child is None else partial(child.answer, page.name, endpoint.name)

    async def answer(request: Request) -> Response:
        try:
            if endpoint.writes and not context.allow_writes:
                return _json(
                    {
                        "error": {
                            "problem": "This dashboard is read-only.",
                            "hint": "Start it again with `penstock ui --allow-writes`.",
                        }
                    },
                    403,
                )
            given: Mapping[str, Any] = await _body(request) if endpoint.method == "POST" else dict(request.query_params)
            return _json(await run_in_threadpool(answered, given))
        except PenstockError as error:
            context.connection.failed(error)
            return _problem(error)
        except Exception as error:  # noqa: BLE001 - as for the feed: the page says it
            bug = f"This page has a bug: {type(error).__name__}: {error}"
            return _json({"error": {"problem": bug, "hint": "Please report it."}}, 500)

    return Route(f"/api/{page.name}/{endpoint.name}", answer, methods=[endpoint.method])


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request. Raise a ConfigError if it is something else, or too large."""
    content = bytearray()
    with suppress(ClientDisconnect):
        async for part in request.stream():
            content += part
            if len(content) > _MAX_BODY_BYTES:
                raise ConfigError("The request is too large.", hint=f"Its limit is {_MAX_BODY_BYTES:,} bytes.")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError("The request is not JSON.") from error
    if not isinstance(found, dict):
        raise ConfigError("The request is not a JSON object.")
    return found


def _problem(error: PenstockError) -> Response:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
    return _json({"error": {"problem": error.problem, "hint": error.hint}}, status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(redacted_values(value), enc_hook=str), status, media_type="application/json")
