"""The sinks of pipelines. Each documents what it guarantees when Spark repeats a micro-batch."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, cast, get_args

from penstock.app.options.consume_options import is_topic_name
from penstock.app.pipelines.batch_id import BatchId
from penstock.app.pipelines.maintenance import Maintenance
from penstock.app.signature import function_name
from penstock.core.settings import hide_passwords, known
from penstock.core.text.suggestions import suggests_options
from penstock.errors import ConfigError

TableFormat = Literal["delta", "iceberg", "parquet"]
WriteMode = Literal["append", "upsert"]
Database = Literal["postgresql", "sqlite"]

_DATABASES: Mapping[Database, str] = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}


@suggests_options
@dataclass(frozen=True)
class Topic:
    """A Kafka topic.

    Rows with a ``value`` column of text or bytes (and perhaps ``key``, ``headers``, ``topic``) are written as they are.
    Other rows are written as JSON; their key is the column that ``key`` names, or else the key of the source record.
    """

    name: str
    key: str | None = None

    guarantee: ClassVar[str] = "at-least-once: a batch that Spark repeats after a failure is written again"
    backfill_guarantee: ClassVar[str] = "each run writes all rows of the range again"
    packages: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not is_topic_name(self.name):
            raise ConfigError(
                f"{self.name!r} is not a topic name.",
                hint="Kafka takes up to 249 letters, digits, dots, dashes and underscores.",
            )

    def __str__(self) -> str:
        return f"topic {self.name}"


@dataclass(frozen=True, kw_only=True)
class _Keyed:
    """The options that all tables share: append, or one row for each key."""

    mode: WriteMode = "append"
    keys: Sequence[str] = ()
    order_by: str | None = None

    @property
    def backfill_guarantee(self) -> str:
        again = "merges the same rows again" if self.mode == "upsert" else "appends the range again"
        return f"all of the range or none of it; each run {again}"

    def _check_keys(self) -> None:
        if isinstance(self.keys, str):
            raise ConfigError(f"keys={self.keys!r} is not a list.", hint=f"Write keys=[{self.keys!r}].")
        object.__setattr__(self, "keys", tuple(self.keys))
        if self.mode not in get_args(WriteMode):
            raise ConfigError(f"mode={self.mode!r} does not exist.", hint='Use "append" or "upsert".')
        if self.mode == "upsert" and not self.keys:
            raise ConfigError(f"An upsert into {self} has no keys.", hint='Name the columns: keys=["order_id"].')
        if self.mode == "append" and (self.keys or self.order_by):
            raise ConfigError(
                f"keys and order_by have no effect when appending to {self}.",
                hint='Add mode="upsert", or leave them out.',
            )


@suggests_options
@dataclass(frozen=True)
class Table(_Keyed):
    """A table in a lake.

    Args:
        name: The table's name; dots make folders (or namespaces, in Iceberg).
        path: The folder of the tables, on this machine or as a URL that Spark can write to; for Iceberg, the
            warehouse.
        format: ``"delta"``, ``"iceberg"`` or ``"parquet"``.
        catalog: For Iceberg, instead of ``path``: a catalog that the Spark session has already.
        partition_by: Columns whose values become folders, if Penstock creates the table.
        evolve: Whether columns that the rows have and the table has not are added to the table. Columns that only the
            table has are null. Without it, such rows are refused. Delta and Iceberg.
        maintenance: ``Maintenance(every=100, keep="7d")`` compacts small files and deletes old ones. Delta and Iceberg.
        mode: ``"append"``, or ``"upsert"``: one row for each key. Parquet can only append.
        keys: The columns that identify a row.
        order_by: The column that decides which row of a key is newer; an older row never replaces a newer one.
            Without it, the last row replaces the others.
    """

    name: str
    path: str | None = None
    format: TableFormat = "delta"
    catalog: str | None = None
    partition_by: Sequence[str] = ()
    evolve: bool = False
    maintenance: Maintenance | None = None

    def __post_init__(self) -> None:
        if self.format not in get_args(TableFormat):
            known = ", ".join(f'"{each}"' for each in get_args(TableFormat))
            raise ConfigError(f"format={self.format!r} is not a table format.", hint=f"Use one of {known}.")
        parts = self.name.split(".") if isinstance(self.name, str) else [""]
        if not all(part.replace("-", "_").isidentifier() for part in parts):
            raise ConfigError(
                f"{self.name!r} is not a table name.", hint="Use words, with dots between them: shop.revenue."
            )
        if isinstance(self.partition_by, str):
            raise ConfigError(
                f"partition_by={self.partition_by!r} is not a list.",
                hint=f"Write partition_by=[{self.partition_by!r}].",
            )
        object.__setattr__(self, "path", None if self.path is None else str(self.path))
        object.__setattr__(self, "partition_by", tuple(self.partition_by))
        if self.catalog is not None and self.format != "iceberg":
            raise ConfigError(f"catalog= is for Iceberg, and {self.name} is {self.format}.", hint="Use path= instead.")
        if (self.path is None) == (self.catalog is None):
            either = "path= or catalog=" if self.format == "iceberg" else "path="
            raise ConfigError(f"Table {self.name} needs exactly one location.", hint=f"Use {either}.")
        if self.format == "parquet" and self.mode == "upsert":
            raise ConfigError(
                "Parquet files cannot be updated.", hint='Use format="delta" or "iceberg", or mode="append".'
            )
        if self.format == "parquet" and self.evolve:
            raise ConfigError(
                f"evolve=True has no effect on {self}: each batch of Parquet files has its own columns anyway.",
                hint="Leave it out, and read the files with Spark's option mergeSchema.",
            )
        if self.maintenance is not None:
            if not isinstance(self.maintenance, Maintenance):
                raise ConfigError(
                    f"maintenance={self.maintenance!r} is not a Maintenance.", hint="Use Maintenance(every=100)."
                )
            self.maintenance.check(self.format, self.name)
        self._check_keys()

    @property
    def guarantee(self) -> str:
        if self.mode == "upsert":
            return "exactly-once in effect: a repeated batch merges the same rows again"
        return "exactly-once: a repeated batch is not written again"

    @property
    def packages(self) -> tuple[str, ...]:
        return () if self.format == "parquet" else (self.format,)

    def __str__(self) -> str:
        return f"{self.format} table {self.name}"


@suggests_options
@dataclass(frozen=True)
class Jdbc(_Keyed):
    """A table in PostgreSQL or SQLite. One transaction writes the rows and the id of the micro-batch.

    Args:
        url: Such as ``jdbc:postgresql://db:5432/shop``, or ``jdbc:sqlite:/data/shop.db`` for a file on this machine.
        table: The name of an existing table, with its schema if that is not in the search path.
        user: The database user.
        password: The user's password, which is never shown.
        mode: ``"append"``, or ``"upsert"`` by ``keys``, which need a unique index.
        keys: The columns that identify a row.
        order_by: The column that decides which row of a key is newer; an older row never replaces a newer one.
    """

    url: str
    table: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    guarantee: ClassVar[str] = "exactly-once: one transaction writes the rows and the id of the batch"

    def __post_init__(self) -> None:
        known.remember(self.password)
        if not isinstance(self.url, str) or self._named_database not in _DATABASES:
            raise ConfigError(
                f"{hide_passwords(str(self.url))!r} is not a JDBC address of PostgreSQL or SQLite.",
                hint='Write it like "jdbc:postgresql://localhost:5432/shop" or "jdbc:sqlite:/data/shop.db". For other '
                "databases, use ForeachBatch(...).",
            )
        if self.database == "sqlite" and self.url in ("jdbc:sqlite:", "jdbc:sqlite::memory:"):
            raise ConfigError(
                "A SQLite database in memory ends with its connection.",
                hint='Name a file: "jdbc:sqlite:/data/shop.db".',
            )
        if "password=" in self.url:
            raise ConfigError(
                "The JDBC address contains a password.", hint="Pass it as password=..., which is never shown."
            )
        if not isinstance(self.table, str) or not self.table.strip():
            raise ConfigError(f"{self.table!r} is not a table name.", hint='Write it like "revenue".')
        self._check_keys()

    @property
    def database(self) -> Database:
        return cast("Database", self._named_database)

    @property
    def packages(self) -> tuple[str, ...]:
        return (self.database,)

    @property
    def _named_database(self) -> str:
        return self.url.removeprefix("jdbc:").partition(":")[0] if self.url.startswith("jdbc:") else ""

    def __repr__(self) -> str:
        return f"Jdbc({hide_passwords(self.url)!r}, {self.table!r}, mode={self.mode!r}, keys={self.keys!r})"

    def __str__(self) -> str:
        return f"{_DATABASES[self.database]} table {self.table}"


@suggests_options
@dataclass(frozen=True)
class Console:
    """The terminal: prints the first rows of each micro-batch, for development."""

    rows: int = 20

    guarantee: ClassVar[str] = "no guarantee: for development only"
    backfill_guarantee: ClassVar[str] = guarantee
    packages: ClassVar[tuple[str, ...]] = ()

    def __str__(self) -> str:
        return "the terminal"


@suggests_options
@dataclass(frozen=True)
class ForeachBatch:
    """Your own function, which Penstock calls with each micro-batch on the driver: its rows and its id.

    Spark may repeat a batch after a failure: then the function gets the same rows with the same ``BatchId`` again. A
    function that records the id together with what it writes, and returns if it finds the id, writes each row once. If
    the function raises, the batch is repeated, as ``restart`` of the pipeline says.
    """

    function: Callable[[Any, BatchId], Any]

    guarantee: ClassVar[str] = (
        "at-least-once: the function may get a batch again, with the same id; exactly-once if it skips known ids"
    )
    backfill_guarantee: ClassVar[str] = "each run calls the function with the whole range and a new id"
    packages: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        function = self.function
        if not callable(function) or inspect.isclass(function) or inspect.iscoroutinefunction(function):
            raise ConfigError(
                f"ForeachBatch({function!r}) has no plain function.", hint="Write it with def: def save(rows, batch)."
            )
        try:
            inspect.signature(function).bind("rows", "batch")
        except TypeError as error:
            raise ConfigError(
                f"The {self} does not take two arguments.",
                hint="It gets the rows and the batch: def save(rows, batch).",
            ) from error

    def __str__(self) -> str:
        return f"function {function_name(self.function)}"


Sink = Topic | Table | Jdbc | ForeachBatch | Console


def as_sink(value: Any) -> Sink:
    """The sink that ``to=`` names; a text is the name of a topic."""
    if isinstance(value, str):
        return Topic(value)
    if isinstance(value, Sink):
        return value
    raise ConfigError(
        f"{value!r} is not a sink.",
        hint="Use the name of a topic, or Topic(...), Table(...), Jdbc(...), ForeachBatch(...), Console().",
    )
