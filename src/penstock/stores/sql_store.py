"""Keeps progress in the user's database, in the same transaction as the writes of handlers.

There are two tables. ``penstock_progress`` has a row for each partition of a group: the token of its latest claim, the
commit point and its metadata. ``penstock_inbox`` has a row for each finished record above the commit point.

A handler's transaction ends with one statement, which inserts the offset into the inbox if the claim still holds and
the offset is not below the commit point. The statement takes a shared lock on the partition's row, and a claim waits
for all shared locks. So after a claim, the previous owner can commit nothing more, and everything that it committed is
in the inbox, which the claim then reads.
"""

import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.app.offset_store import AlreadyFinished, ClaimLost, Progress, SavedProgress
from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.records.record import TopicPartition
from penstock.core.settings import hide_passwords
from penstock.errors import ConfigError, PenstockError, SetupError, StoreError
from penstock.stores import sql_statements
from penstock.stores.writer_turns import NoTurnError, Turns

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, TextClause

# One lock for all stores: a store is pickled with its handler, and a lock cannot be pickled.
_OPENING = threading.Lock()

# SQLite allows one writer at a time, so all writers of this process queue for each file; the engine's calls go first.
_TURNS: dict[str, Turns] = {}

_RETRY_SECONDS = 1.0
# After so many remembered ids, some that have expired are deleted.
_FORGET_EVERY = 1_000
_BUSY_SECONDS = 60
# How often to try to lock a file that another process holds. SQLite's own waits grow, so it would rarely hit the moment
# between two transactions of a busy process.
_LOCKED_SECONDS = 0.001
_CONNECT_SECONDS = 10


class SqlOffsets:
    """Keeps progress in PostgreSQL or SQLite.

    Args:
        url: An SQLAlchemy URL, such as ``"postgresql://user:password@host/database"`` or ``"sqlite:///shop.db"``.
        connections: How many handlers may have a transaction at the same time. SQLite always has one.
        options: Further options for ``sqlalchemy.create_engine``.
    """

    MOST_CONNECTIONS: ClassVar[int] = 16

    def __init__(self, url: str, *, connections: int = MOST_CONNECTIONS, **options: Any) -> None:
        self._url = url
        self._connections = connections
        self._options = options
        self._opened: tuple[Engine, Engine] | None = None
        self._dispose: Callable[[], object] | None = None  # runs once: by ``close``, or at the end of the store
        self._remembered = 0  # ids since the last clean-up; threads may lose a count

    def __repr__(self) -> str:
        return f"SqlOffsets({hide_passwords(self._url)!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Connections cannot be pickled; a copy opens its own.
        return {**self.__dict__, "_opened": None, "_dispose": None}

    def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        with _OPENING:
            dispose, self._opened, self._dispose = self._dispose, None, None
        if dispose is not None:
            dispose()

    def ping(self) -> None:
        """Raise a StoreError if the database does not answer."""
        with self._own_transaction("being probed") as connection:
            connection.execute(self._text("SELECT 1"))

    # The methods of an OffsetStore.

    def claim(self, group: str, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, SavedProgress]:
        found = {}
        with self._own_transaction("claiming partitions") as connection:
            # All callers use the same order, so that there is no deadlock.
            for tp in sorted(tps):
                values = _partition_values(group, tp)
                connection.execute(self._text(sql_statements.CLAIM), values)
                token, point, metadata = connection.execute(self._text(sql_statements.READ), values).one()
                inbox = connection.execute(self._text(sql_statements.INBOX), values).scalars()
                found[tp] = SavedProgress(token, point, metadata, _ranges(inbox))
        return found

    def save(self, group: str, progress: Mapping[TopicPartition, Progress]) -> Collection[TopicPartition]:
        claimed = []
        with self._own_transaction("saving progress") as connection:
            for tp, each in sorted(progress.items()):
                values = {
                    **_partition_values(group, tp),
                    "point": each.offset,
                    "metadata": each.metadata,
                    "token": each.token,
                }
                if connection.execute(self._text(sql_statements.SAVE), values).rowcount:
                    connection.execute(
                        self._text(sql_statements.TRIM), {**_partition_values(group, tp), "point": each.offset}
                    )
                else:
                    claimed.append(tp)
        if self._remembered >= _FORGET_EVERY:
            self._remembered = 0
            # In a transaction of its own: it may wait for a handler that holds an id, and must not hold a partition.
            with self._own_transaction("deleting ids that have expired") as connection:
                values = {"group": group, "now": round(time.time() * 1000), "most": 2 * _FORGET_EVERY}
                connection.execute(self._text(sql_statements.FORGET_IDS), values)
        return claimed

    def forget(self, group: str, tps: Mapping[TopicPartition, int]) -> None:
        with self._own_transaction("deleting progress") as connection:
            for tp, token in sorted(tps.items()):
                if connection.execute(
                    self._text(sql_statements.FORGET), {**_partition_values(group, tp), "token": token}
                ).rowcount:
                    connection.execute(self._text(sql_statements.EMPTY), _partition_values(group, tp))

    # The method of a TransactionalStore.

    @contextmanager
    def transaction(self, group: str) -> Iterator["_Transaction"]:
        """If the database is unavailable, it raises DependencyUnavailable, which counts as no attempt."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._turn(urgent=False))
            except NoTurnError as error:
                raise _unavailable(error) from error
            yield stack.enter_context(self._open_transaction(group))

    @contextmanager
    def _open_transaction(self, group: str) -> Iterator["_Transaction"]:
        alchemy, engine = _alchemy(), self._engines()[0]
        unavailable = (alchemy.exc.OperationalError, alchemy.exc.InterfaceError, alchemy.exc.TimeoutError)
        try:
            connection = engine.connect()
            try:
                transaction = connection.begin()
            except BaseException:
                connection.close()
                raise
        except unavailable as error:
            raise _unavailable(error) from error
        with connection:
            try:
                yield _Transaction(connection, group, self._finish_statement(), unavailable)
            except BaseException as error:
                with suppress(alchemy.exc.SQLAlchemyError):
                    transaction.rollback()
                if isinstance(error, alchemy.exc.DBAPIError) and error.connection_invalidated:
                    # The connection broke during the handler, so this is not the handler's error.
                    raise _unavailable(error) from error
                raise
            try:
                transaction.commit()
            except unavailable as error:
                # The database may have committed it; then the next attempt finds the offset in the inbox.
                raise _unavailable(error) from error

    def remember(
        self, tx: "Connection", *, group: str, handler: str, record_id: str, origin: str, now: float, until: float
    ) -> bool:
        """Remember an id in this open transaction; False if another record was handled with it."""
        ids = {"group": group, "handler": handler, "id": record_id}
        times = {"origin": origin, "now": round(now * 1000), "until": round(until * 1000)}
        self._remembered += 1
        return tx.execute(self._text(sql_statements.REMEMBER), {**ids, **times}).rowcount == 1

    def _finish_statement(self) -> "TextClause":
        return self._text(sql_statements.FINISH.replace("/*lock*/", "" if self._is_sqlite else "FOR SHARE"))

    # Private.

    @property
    def _is_sqlite(self) -> bool:
        return self._url.startswith("sqlite")

    def _text(self, statement: str) -> "TextClause":
        clause: TextClause = _alchemy().text(statement)
        return clause

    @contextmanager
    def _own_transaction(self, doing: str) -> "Iterator[Connection]":
        """A transaction of the engine. It has its own connection, as handlers may use all of the others."""
        alchemy = _alchemy()
        try:
            with self._turn(urgent=True), self._engines()[1].begin() as connection:
                yield connection
        except (alchemy.exc.SQLAlchemyError, NoTurnError) as error:
            raise StoreError(
                f"The database of offsets={hide_passwords(self._url)!r} failed while {doing}: {_first_line(error)}.",
                hint="Nothing is lost: Penstock tries again. Check that the database runs and that its user may write.",
            ) from error

    def _turn(self, *, urgent: bool) -> AbstractContextManager[None]:
        if not self._is_sqlite:
            return nullcontext()
        # Several members of a process may have stores for the same file.
        return _TURNS.setdefault(self._url, Turns()).turn(urgent=urgent, seconds=_BUSY_SECONDS)

    def _engines(self) -> "tuple[Engine, Engine]":
        """The SQLAlchemy engines: one for handlers, one for Penstock."""
        with _OPENING:
            if self._opened is None:
                self._opened = self._open()
                self._dispose = weakref.finalize(self, _dispose_all, {*self._opened})
            return self._opened

    def _open(self) -> "tuple[Engine, Engine]":
        alchemy = _alchemy()
        try:
            url = alchemy.make_url(self._url)
            if url.drivername == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
            if url.get_backend_name() not in ("postgresql", "sqlite"):
                raise ConfigError(
                    f"offsets={hide_passwords(self._url)!r} is not supported.", hint="Use PostgreSQL or SQLite."
                )
            engine = self._make_engine(url, 1 if self._is_sqlite else self._connections)
        except (alchemy.exc.ArgumentError, ImportError) as error:
            raise _unusable(self._url, error) from error
        # SQLite has one writer at a time, and all callers take turns, so one connection is enough.
        own = engine if self._is_sqlite else self._make_engine(url, 1)
        _make_tables(own)
        return engine, own

    def _make_engine(self, url: Any, connections: int) -> "Engine":
        alchemy = _alchemy()
        connecting = {"timeout": _BUSY_SECONDS} if self._is_sqlite else {"connect_timeout": _CONNECT_SECONDS}
        options = {"connect_args": connecting, "pool_pre_ping": True, **self._options}
        engine: Engine = alchemy.create_engine(
            url, poolclass=alchemy.pool.QueuePool, pool_size=connections, max_overflow=0, **options
        )
        if self._is_sqlite:
            # Python's sqlite3 begins a transaction late, at its first write. Two such ones can block each other.
            alchemy.event.listen(engine, "connect", _disable_implicit_begin)
            alchemy.event.listen(engine, "begin", _begin_immediate)
        return engine


def _dispose_all(engines: "Iterable[Engine]") -> None:
    for engine in engines:
        engine.dispose()


class _Transaction:
    """An open transaction."""

    def __init__(
        self, tx: "Connection", group: str, finish: "TextClause", unavailable: tuple[type[Exception], ...]
    ) -> None:
        self.tx = tx
        self._group = group
        self._finish = finish
        self._unavailable = unavailable

    def finish(self, tp: TopicPartition, token: int, offsets: Sequence[int]) -> None:
        values = {**_partition_values(self._group, tp), "token": token}
        try:
            for offset in offsets:
                if self.tx.execute(self._finish, {**values, "offset": offset}).rowcount != 1:
                    self._raise_refusal(tp, token)
        except self._unavailable as error:
            raise _unavailable(error) from error

    def _raise_refusal(self, tp: TopicPartition, token: int) -> None:
        row = self.tx.execute(_alchemy().text(sql_statements.READ), _partition_values(self._group, tp)).one_or_none()
        if row is None or row.token != token:
            raise ClaimLost(tp)
        raise AlreadyFinished


def _make_tables(engine: "Engine") -> None:
    alchemy = _alchemy()
    for last in (False, True):
        try:
            with engine.begin() as connection:
                for statement in sql_statements.TABLES:
                    connection.execute(alchemy.text(statement))
        except (alchemy.exc.IntegrityError, alchemy.exc.ProgrammingError):
            if last:
                raise
            # Another process created them at the same moment; PostgreSQL's IF NOT EXISTS does not cover that.
        else:
            return


def _disable_implicit_begin(connection: Any, _record: object) -> None:
    connection.isolation_level = None


def _begin_immediate(connection: "Connection") -> None:
    """Begin as the only writer of the file, as soon as no other process holds it."""
    raw: Any = connection.connection.dbapi_connection
    deadline = time.monotonic() + _BUSY_SECONDS
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        while time.monotonic() < deadline:
            try:
                raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    break
                time.sleep(_LOCKED_SECONDS)
            else:
                return
        # This raises SQLAlchemy's error, which callers handle.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        raw.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")


def _ranges(offsets: Any) -> list[tuple[int, int]]:
    """Consecutive offsets as ranges; the offsets are sorted."""
    ranges: list[tuple[int, int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges


def _partition_values(group: str, tp: TopicPartition) -> dict[str, Any]:
    return {"group": group, "topic": tp[0], "part": tp[1]}


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return str(hide_passwords(text.splitlines()[0])).rstrip(".")


def _unavailable(error: BaseException) -> DependencyUnavailable:
    return DependencyUnavailable(f"the database is unavailable: {_first_line(error)}", seconds=_RETRY_SECONDS)


def _unusable(url: str, error: Exception) -> PenstockError:
    if isinstance(error, ImportError):
        return SetupError(
            f"offsets={hide_passwords(url)!r} needs {error.name}.", hint="Install it: pip install 'penstock[sql]'."
        )
    return ConfigError(f"offsets={hide_passwords(url)!r} is not the URL of a database: {error}.")


def _alchemy() -> Any:
    try:
        import sqlalchemy  # noqa: PLC0415 - an extra
        import sqlalchemy.exc  # noqa: PLC0415
        import sqlalchemy.pool  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "offsets= with a database needs SQLAlchemy.", hint="Install it: pip install 'penstock[sql]'."
        ) from error
    return sqlalchemy
