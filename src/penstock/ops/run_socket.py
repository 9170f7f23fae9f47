"""The local socket of a run: other processes of this user read how its handlers stand, and send commands.

One request is one line of JSON, and so is its answer; then the connection ends. Only this user can connect: the socket
has the mode 0600. Requests, where names in brackets may be left out::

    {"call": "read"}
    {"call": "measure"}
    {"call": "pause", "via": "penstock pause", ["handler": "ship", "partitions": [["orders", 3]]]}
    {"call": "resume", ...}                                 the same
    {"call": "set", "via": "penstock set", "changes": {"concurrency": 8}, ["handler": "ship"]}

An answer is ``{"handlers": [...]}`` or ``{"error": {"kind", "problem", "hint"}}``; that to ``measure`` is ``{"members":
[...]}``, with the fields of ``MeasuredMember``.
"""

import json
import os
import pwd
import socket
import socketserver
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock import errors
from penstock.app import App
from penstock.app.runs.live_command import Action, HandlerState, LiveCommand, user_name
from penstock.core.settings import redacted_values
from penstock.core.text.foreign_text import printable_line
from penstock.errors import ConfigError, PenstockError, ServerError, StateError
from penstock.jvm.private_files import make_private
from penstock.ops.runs import RegisteredRun, remove_socket
from penstock.paths import run_socket, runs_folder, state_home

if TYPE_CHECKING:  # commands ask runs without an engine, which is slow to import
    from penstock.engine.observe.member_metrics import MemberMetrics

    Measure = Callable[[], list[MemberMetrics]]

# A longer path does not fit into the address of a socket on every system.
_LONGEST_PATH = 100
_MODE = 0o600
_MAX_BYTES = 65_536
_MAX_CONNECTIONS = 16
_READ_SECONDS = 10.0
# The thread that owns the state answers; on Spark it may first drain partitions that the group revokes.
_ANSWER_SECONDS = 60.0
_PEER_CREDENTIALS = struct.Struct("3i")
_LONGEST_VIA = 40

Answer = dict[str, Any]


class _Read(msgspec.Struct, tag_field="call", tag="read", forbid_unknown_fields=True):
    pass


class _Measure(msgspec.Struct, tag_field="call", tag="measure", forbid_unknown_fields=True):
    pass


class MeasuredMember(msgspec.Struct, frozen=True):
    """What a member of the run has measured since it started. On Spark nothing is measured."""

    group: str
    handler: str
    topics: list[str]
    """Of the partitions that it owns."""
    concurrency: int
    records: int
    seconds: float
    """How long its handler took for all of these records."""
    one_per_partition: bool


class _Command(msgspec.Struct, forbid_unknown_fields=True):
    call: Action
    via: str
    handler: str | None = None
    partitions: list[tuple[str, int]] = []
    changes: dict[str, int | str] = {}


@contextmanager
def run_socket_of(app: App, measure: "Measure", *, warn: Callable[[str], None]) -> Iterator[str | None]:
    """Answer for the app on a socket during the block. Yields its path; None, after ``warn``, if there is none.

    ``measure`` returns the metrics of its members.
    """
    try:
        make_private(runs_folder(), home=state_home())
        path = _free_path()
        server = _Server(path, app, measure)
    except OSError as error:
        warn(f"`penstock pause` and others will not reach this run, because its socket failed: {error.strerror}.")
        yield None
        return
    thread = threading.Thread(target=server.serve_forever, name="run-socket", daemon=True)
    thread.start()
    try:
        yield str(path)
    finally:
        server.shutdown()
        server.server_close()
        remove_socket(path)


def _free_path() -> Path:
    path = run_socket(os.getpid())
    if len(os.fsencode(path)) > _LONGEST_PATH:
        return Path(tempfile.mkdtemp(prefix="penstock-")) / path.name
    path.unlink(missing_ok=True)  # of a killed process with the same id
    return path


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, app: App, measure: "Measure") -> None:
        self.app = app
        self.measure = measure
        self.slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        super().__init__(str(path), _Connection, bind_and_activate=False)
        self.server_bind()
        path.chmod(_MODE)  # before it listens, so that nobody else can connect in between
        self.server_activate()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the other process has gone."""


class _Connection(socketserver.StreamRequestHandler):
    timeout = _READ_SECONDS
    server: _Server

    def handle(self) -> None:
        if not self.server.slots.acquire(blocking=False):
            self._send({"error": _as_json(StateError("Too many commands at once.", hint="Try again."))})
            return
        try:
            self._send(self._answered(self.rfile.readline(_MAX_BYTES + 1)))
        finally:
            self.server.slots.release()

    def _send(self, answer: Answer) -> None:
        self.wfile.write(json.dumps(redacted_values(answer)).encode() + b"\n")

    def _answered(self, line: bytes) -> Answer:
        try:
            return self._carry_out(line)
        except PenstockError as error:
            return {"error": _as_json(error)}

    def _carry_out(self, line: bytes) -> Answer:
        if len(line) > _MAX_BYTES:
            raise ConfigError("The request is too long.")
        with suppress(msgspec.MsgspecError):
            msgspec.json.decode(line, type=_Read)
            return _states(self.server.app.live_states())
        with suppress(msgspec.MsgspecError):
            msgspec.json.decode(line, type=_Measure)
            return {"members": [msgspec.to_builtins(_measured(each)) for each in self.server.measure()]}
        try:
            asked = msgspec.json.decode(line, type=_Command)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ConfigError(f"The request is no command: {error}.") from error
        command = LiveCommand(
            action=asked.call,
            handler=asked.handler,
            partitions=tuple(asked.partitions),
            changes=asked.changes,
            by=_peer(self.connection),
            via=printable_line(asked.via, limit=_LONGEST_VIA),
        )
        return _states(self.server.app.command(command))


def _peer(connection: socket.socket) -> str:
    """Return the user at the other end. Where the system does not say it, it is the user of this process."""
    if not hasattr(socket, "SO_PEERCRED"):
        return user_name()
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
    _, user, _ = _PEER_CREDENTIALS.unpack(found)
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"


def _measured(each: "MemberMetrics") -> MeasuredMember:
    handled = each.watches.handler
    return MeasuredMember(
        each.group,
        each.handler,
        sorted({topic for topic, _ in each.map_bytes}),
        each.concurrency,
        sum(handled.counts),
        handled.total,
        each.one_per_partition,
    )


def _states(states: Iterable[HandlerState]) -> Answer:
    return {"handlers": [_state(each) for each in states]}


def _state(each: HandlerState) -> Answer:
    shown = asdict(each)
    for name in ("partitions", "paused_partitions"):
        shown[name] = [f"{topic}[{partition}]" for topic, partition in shown[name]]
    return shown


def _as_json(error: PenstockError) -> Answer:
    return {"kind": type(error).__name__, "problem": error.problem, "hint": error.hint}


def ask_run(run: RegisteredRun, request: Mapping[str, Any], *, patience: float = _ANSWER_SECONDS) -> Answer:
    """Send a request to a run and return its answer. Raises the error that the run answered."""
    if run.socket is None:
        raise StateError(
            f"{run.app} (process {run.pid}) takes no commands: it has no socket.",
            hint="Its first lines say why. An older Penstock has none.",
        )
    try:
        answer = json.loads(_sent(run.socket, json.dumps(request).encode() + b"\n", patience))
    except TimeoutError as error:
        raise ServerError(
            f"{run.app} (process {run.pid}) has not answered within {patience:g} s.",
            hint="It may hang, or drain partitions. Look at its log, then try again.",
        ) from error
    except (OSError, ValueError) as error:
        raise StateError(
            f"{run.app} (process {run.pid}) does not answer on its socket: {error}.", hint="It may just have ended."
        ) from error
    if "error" in answer:
        found = answer["error"]
        kind = getattr(errors, str(found["kind"]), ServerError)
        raise kind(str(found["problem"]), hint=str(found["hint"]))
    return dict(answer)


def _sent(path: str, request: bytes, patience: float) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(patience)
        connection.connect(path)
        connection.sendall(request)
        with connection.makefile("rb") as answer:
            return answer.readline()
