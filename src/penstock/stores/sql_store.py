"""Progress in the user's database: in the same transaction as what handlers write there.

Two tables. ``penstock_progress`` has a row for each partition of a group: the token of whoever claimed it last, the
commit point and its note. ``penstock_inbox`` has a row for each record that was finished above the commit point.

A handler's transaction ends with one statement: it puts its offset into the inbox, if the claim still holds and the
offset is not below the commit point. That statement holds a lock on the partition's row which many can share, and which
a claim has to wait for. So after a claim whatever the last owner had not committed never will be, and what it had
is in the inbox that the claim then reads.
"""

import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.app.offset_store import AlreadyFinished, ClaimLost, Kept, Progress
from penstock.core.failures.outcome import DependencyUnavailable
from penstock.core.records.record import TopicPartition
from penstock.core.settings import hide_passwords
from penstock.errors import ConfigError, PenstockError, SetupError, StoreError
from penstock.stores import sql_statements
from penstock.stores.writer_turns import NoTurnError, Turns

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, TextClause

# For all stores, as they travel with their handlers, and a lock of their own could not.
_OPENING = threading.Lock()

# SQLite has one writer at a time, so all of this process stand in one line for each file, our own calls in front.
_TURNS: dict[str, Turns] = {}

_AWAY_SECONDS = 1.0
_BUSY_SECONDS = 60
# How often it is tried whether other processes have let go of a file. SQLite itself would wait longer and longer, and
# hardly ever meet the moment between two transactions of a process that has many to make.
_LOCKED_SECONDS = 0.001
_CONNECT_SECONDS = 10


class SqlOffsets:
    """PostgreSQL or SQLite, by an SQLAlchemy URL.

    Args:
        url: Such as ``"postgresql://user:password@host/database"`` or ``"sqlite:///shop.db"``.
        connections: How many handlers may have a transaction at once. SQLite lets one write at a time anyway.
        options: Further options of ``sqlalchemy.create_engine``.
    """

    MOST_CONNECTIONS: ClassVar[int] = 16

    def __init__(self, url: str, *, connections: int = MOST_CONNECTIONS, **options: Any) -> None:
        self._url = url
        self._connections = connections
        self._options = options
        self._opened: tuple[Engine, Engine] | None = None

    def __repr__(self) -> str:
        return f"SqlOffsets({hide_passwords(self._url)!r})"

    def __getstate__(self) -> dict[str, Any]:
        # Connections stay where they are; a copy makes its own.
        return {**self.__dict__, "_opened": None}

    def close(self) -> None:
        """Give its connections up; another call makes new ones."""
        with _OPENING:
            opened, self._opened = self._opened, None
        for engine in {*(opened or ())}:
            engine.dispose()

    # An OffsetStore.

    def claim(self, group: str, tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, Kept]:
        found = {}
        with self._asking("claiming partitions") as connection:
            # In one order for everybody, so that no two wait for each other.
            for tp in sorted(tps):
                here = _here(group, tp)
                connection.execute(self._text(sql_statements.CLAIM), here)
                token, point, note = connection.execute(self._text(sql_statements.READ), here).one()
                inbox = connection.execute(self._text(sql_statements.INBOX), here).scalars()
                found[tp] = Kept(token, point, note, _ranges(inbox))
        return found

    def save(self, group: str, progress: Mapping[TopicPartition, Progress]) -> Collection[TopicPartition]:
        claimed = []
        with self._asking("saving progress") as connection:
            for tp, each in sorted(progress.items()):
                values = {**_here(group, tp), "point": each.offset, "note": each.note, "token": each.token}
                if connection.execute(self._text(sql_statements.SAVE), values).rowcount:
                    connection.execute(self._text(sql_statements.TRIM), {**_here(group, tp), "point": each.offset})
                else:
                    claimed.append(tp)
        return claimed

    def forget(self, group: str, tps: Mapping[TopicPartition, int]) -> None:
        with self._asking("starting partitions anew") as connection:
            for tp, token in sorted(tps.items()):
                if connection.execute(self._text(sql_statements.FORGET), {**_here(group, tp), "token": token}).rowcount:
                    connection.execute(self._text(sql_statements.EMPTY), _here(group, tp))

    # And a TransactionalStore.

    @contextmanager
    def transaction(self, group: str) -> Iterator["_Open"]:
        """Where the database cannot be reached, nothing was attempted; what the handler raises is its own."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._turn(urgent=False))
            except NoTurnError as error:
                raise _away(error) from error
            yield stack.enter_context(self._begun(group))

    @contextmanager
    def _begun(self, group: str) -> Iterator["_Open"]:
        alchemy, engine = _alchemy(), self._engines()[0]
        away = (alchemy.exc.OperationalError, alchemy.exc.InterfaceError, alchemy.exc.TimeoutError)
        try:
            connection = engine.connect()
            try:
                transaction = connection.begin()
            except BaseException:
                connection.close()
                raise
        except away as error:
            raise _away(error) from error
        with connection:
            try:
                yield _Open(connection, group, self._finish_statement(), away)
            except BaseException as error:
                with suppress(alchemy.exc.SQLAlchemyError):
                    transaction.rollback()
                if isinstance(error, alchemy.exc.DBAPIError) and error.connection_invalidated:
                    # It went away under the handler, which is not to blame.
                    raise _away(error) from error
                raise
            try:
                transaction.commit()
            except away as error:
                # It may have been committed; then the next attempt finds it in the inbox.
                raise _away(error) from error

    def _finish_statement(self) -> "TextClause":
        return self._text(sql_statements.FINISH.replace("/*lock*/", "" if self._is_sqlite else "FOR SHARE"))

    # Inside.

    @property
    def _is_sqlite(self) -> bool:
        return self._url.startswith("sqlite")

    def _text(self, statement: str) -> "TextClause":
        clause: TextClause = _alchemy().text(statement)
        return clause

    @contextmanager
    def _asking(self, doing: str) -> "Iterator[Connection]":
        """A transaction of our own, beside those of handlers, which may have all connections of theirs."""
        alchemy = _alchemy()
        try:
            with self._turn(urgent=True), self._engines()[1].begin() as connection:
                yield connection
        except (alchemy.exc.SQLAlchemyError, NoTurnError) as error:
            raise StoreError(
                f"The database of offsets={hide_passwords(self._url)!r} failed while {doing}: {_first_line(error)}.",
                hint="Nothing is lost: it is tried again. Check that it is up and that its user may write there.",
            ) from error

    def _turn(self, *, urgent: bool) -> AbstractContextManager[None]:
        if not self._is_sqlite:
            return nullcontext()
        # Several members of a process may each have a store for the same file.
        return _TURNS.setdefault(self._url, Turns()).turn(urgent=urgent, seconds=_BUSY_SECONDS)

    def _engines(self) -> "tuple[Engine, Engine]":
        """For handlers, and for ourselves."""
        with _OPENING:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> "tuple[Engine, Engine]":
        alchemy = _alchemy()
        try:
            url = alchemy.make_url(self._url)
            if url.drivername == "postgresql":
                url = url.set(drivername="postgresql+psycopg")
            if url.get_backend_name() not in ("postgresql", "sqlite"):
                raise ConfigError(f"offsets={hide_passwords(self._url)!r}: only PostgreSQL and SQLite are known.")
            engine = self._make_engine(url, 1 if self._is_sqlite else self._connections)
        except (alchemy.exc.ArgumentError, ImportError) as error:
            raise _unusable(self._url, error) from error
        # SQLite has one writer at a time, and all take turns, so one connection is enough.
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
            # Python's own module begins a transaction late, and would let two begin that cannot both end.
            alchemy.event.listen(engine, "connect", _leave_transactions_alone)
            alchemy.event.listen(engine, "begin", _begin_at_once)
        return engine


class _Open:
    """An open transaction."""

    def __init__(self, tx: "Connection", group: str, finish: "TextClause", away: tuple[type[Exception], ...]) -> None:
        self.tx = tx
        self._group = group
        self._finish = finish
        self._away = away

    def finish(self, tp: TopicPartition, token: int, offsets: Sequence[int]) -> None:
        here = {**_here(self._group, tp), "token": token}
        try:
            for offset in offsets:
                if self.tx.execute(self._finish, {**here, "offset": offset}).rowcount != 1:
                    self._explain(tp, token)
        except self._away as error:
            raise _away(error) from error

    def _explain(self, tp: TopicPartition, token: int) -> None:
        row = self.tx.execute(_alchemy().text(sql_statements.READ), _here(self._group, tp)).one_or_none()
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
            # Somebody else made them at the same moment, which PostgreSQL does not take for "exists".
        else:
            return


def _leave_transactions_alone(connection: Any, _record: object) -> None:
    connection.isolation_level = None


def _begin_at_once(connection: "Connection") -> None:
    """As the file's writer, as soon as other processes let it go."""
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
        # What it fails with now is an error of SQLAlchemy's, which callers know.
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        raw.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000}")


def _ranges(offsets: Any) -> list[tuple[int, int]]:
    """Neighbours together; they come in order."""
    ranges: list[tuple[int, int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset:
            ranges[-1] = (ranges[-1][0], offset + 1)
        else:
            ranges.append((offset, offset + 1))
    return ranges


def _here(group: str, tp: TopicPartition) -> dict[str, Any]:
    return {"group": group, "topic": tp[0], "part": tp[1]}


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return str(hide_passwords(text.splitlines()[0])).rstrip(".")


def _away(error: BaseException) -> DependencyUnavailable:
    return DependencyUnavailable(f"the database is away: {_first_line(error)}", seconds=_AWAY_SECONDS)


def _unusable(url: str, error: Exception) -> PenstockError:
    if isinstance(error, ImportError):
        return SetupError(f"offsets={hide_passwords(url)!r} needs {error.name}.", hint="Install penstock[sql].")
    return ConfigError(f"offsets={hide_passwords(url)!r} is no URL of a database: {error}.")


def _alchemy() -> Any:
    try:
        import sqlalchemy  # noqa: PLC0415 - an extra
        import sqlalchemy.exc  # noqa: PLC0415
        import sqlalchemy.pool  # noqa: PLC0415
    except ImportError as error:
        raise SetupError("offsets= with a database needs SQLAlchemy.", hint="Install penstock[sql].") from error
    return sqlalchemy
