"""Runs the dashboard's web server on a thread, beside a command or an app."""

import platform
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core.text.host_names import can_be_looked_up
from penstock.dashboard.child.dashboard_child import DashboardChild
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.errors import ConfigError, SetupError
from penstock.kafka.admin.cluster import Cluster
from penstock.ops.record_view import Decoding

if TYPE_CHECKING:
    import uvicorn

_STOP_SECONDS = 3.0
_MAX_PORT = 65_535
# How a browser on this machine reaches what listens on all addresses, or on a name that may stand for two.
_OWN_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}  # noqa: S104 - compared only


@dataclass(frozen=True)
class DashboardOptions:
    """Where the dashboard listens (port 0: any free port), and whether it may change anything."""

    host: str = "127.0.0.1"
    port: int = 0
    allow_writes: bool = False


@dataclass(frozen=True)
class ServedDashboard:
    """A running dashboard. ``url`` contains the token: who has it can use the dashboard."""

    url: str
    host: str
    port: int
    is_local: bool
    child: DashboardChild


@contextmanager
def serve_dashboard(
    options: DashboardOptions,
    *,
    connect: Callable[[], Cluster],
    note: Callable[[str], None],
    decoding: Callable[[], Decoding] | None = None,
) -> Iterator[ServedDashboard]:
    """Serve the dashboard while the block runs. ``note`` is called for each write, on a thread of the server.

    ``decoding`` says how records are decoded; without it, by what the bytes look like. It is called here at once, so
    that mistakes are seen, and in the child process that reads. So it is pickled, and so is ``connect``.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from penstock.dashboard.server.web_app import make_web_app  # noqa: PLC0415 - needs Starlette
        from penstock.dashboard.server.web_guard import Door  # noqa: PLC0415 - the same
    except ImportError as error:
        raise SetupError(
            f"The dashboard needs the package {error.name or 'starlette'}.",
            hint="Install it: pip install 'penstock[ui]'.",
        ) from error
    known = Decoding() if decoding is None else decoding()
    listener = _listen(options.host, options.port)
    port = listener.getsockname()[1]
    door = Door(options.host, port, names=frozenset({options.host.lower(), platform.node().lower()}))
    context = DashboardContext(ClusterConnection(connect), options.allow_writes, note, known)
    child = DashboardChild(connect, note=note, make_decoding=decoding, formats=known.formats)
    web_app, feed = make_web_app(context, door, child)
    config = uvicorn.Config(
        web_app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        http="h11",
        ws="none",
        proxy_headers=False,
    )
    server = _server(config, feed.close)
    thread = threading.Thread(target=server.run, args=([listener],), name="dashboard", daemon=True)
    thread.start()
    shown = _OWN_ADDRESS.get(options.host, options.host)
    shown = f"[{shown}]" if ":" in shown else shown
    try:
        yield ServedDashboard(
            f"http://{shown}:{port}/sign-in?token={door.keys.token}", options.host, port, door.is_local, child
        )
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        child.close()


def _server(config: "uvicorn.Config", close_feed: Callable[[], None]) -> "uvicorn.Server":
    """Return a server that ends the open streams when it stops: it would wait for them otherwise."""
    import uvicorn  # noqa: PLC0415 - an extra

    class _EndingServer(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            close_feed()
            await super().shutdown(sockets)

    return _EndingServer(config)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= _MAX_PORT:
        raise ConfigError(f"--port {port} is not a port.", hint=f"Use 0 for a free one, or up to {_MAX_PORT}.")
    refused = f"The dashboard cannot listen on {host}:{port}"
    hint = "Choose another --port (0 for a free one), or an address of this machine as --host."
    if not host:
        raise SetupError("The dashboard cannot listen: --host is no address.", hint=hint)
    if not can_be_looked_up(host):
        raise SetupError(f"{refused}: no host can have this name.", hint=hint)
    try:
        if host == "::" and socket.has_dualstack_ipv6():  # as for other servers, these are all addresses
            return socket.create_server((host, port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"{refused}: {reason}.", hint=hint) from error
