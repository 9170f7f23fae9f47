"""Where a pipeline's rows go. Each sink says what it guarantees when a batch is repeated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from penstock.app.consume_options import is_topic_name
from penstock.core.settings import hide_passwords, known
from penstock.errors import ConfigError

TableFormat = Literal["delta", "iceberg", "parquet"]
WriteMode = Literal["append", "upsert"]


@dataclass(frozen=True)
class Topic:
    """A Kafka topic.

    Rows with a ``value`` of text or bytes (and ``key``, ``headers``, ``topic``) are written as they are. Of other rows
    the value is the row as JSON, and the key is the column named by ``key``, else the key of the record it came from.
    """

    name: str
    key: str | None = None

    guarantee: ClassVar[str] = "at-least-once: a batch that is repeated after a failure is written again"
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
    """What tables of all kinds share: append, or one row for each key."""

    mode: WriteMode = "append"
    keys: Sequence[str] = ()
    order_by: str | None = None

    @property
    def backfill_guarantee(self) -> str:
        again = "merges the same rows again" if self.mode == "upsert" else "appends the range again"
        return f"all of the range or nothing of it; each run {again}"

    def _check_keys(self) -> None:
        if isinstance(self.keys, str):
            raise ConfigError(f"keys={self.keys!r} is one text.", hint=f"Write keys=[{self.keys!r}].")
        object.__setattr__(self, "keys", tuple(self.keys))
        if self.mode not in get_args(WriteMode):
            raise ConfigError(f"mode={self.mode!r} is not a way to write.", hint='Use "append" or "upsert".')
        if self.mode == "upsert" and not self.keys:
            raise ConfigError(f"An upsert into {self} has no keys.", hint='Name the columns: keys=["order_id"].')
        if self.mode == "append" and (self.keys or self.order_by):
            raise ConfigError(
                f"keys and order_by say which row of {self} is replaced, and append replaces none.",
                hint='Add mode="upsert", or leave them out.',
            )


@dataclass(frozen=True)
class Table(_Keyed):
    """A table in a lake.

    Args:
        name: The table's name; dots make folders (or namespaces, in Iceberg).
        path: The folder that holds the tables, of this machine or as a URL that Spark can write to; in Iceberg, the
            warehouse.
        format: ``"delta"``, ``"iceberg"`` or ``"parquet"``.
        catalog: Instead of ``path``, for Iceberg: a catalog that the Spark session knows already.
        partition_by: Columns whose values become folders; for a table that does not exist yet.
        mode: ``"append"``, or ``"upsert"``: one row for each key. Parquet can only append.
        keys: The columns that make a row the same row.
        order_by: The column that says which row of a key is newer; an older one never replaces a newer one. Without
            it the row that comes last does.
    """

    name: str
    path: str | None = None
    format: TableFormat = "delta"
    catalog: str | None = None
    partition_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.format not in get_args(TableFormat):
            known = ", ".join(f'"{each}"' for each in get_args(TableFormat))
            raise ConfigError(f"format={self.format!r} is not a table format.", hint=f"Use one of {known}.")
        parts = self.name.split(".") if isinstance(self.name, str) else [""]
        if not all(part.replace("-", "_").isidentifier() for part in parts):
            raise ConfigError(
                f"{self.name!r} is not a name for a table.", hint="Use words, with dots between them: shop.revenue."
            )
        if isinstance(self.partition_by, str):
            raise ConfigError(
                f"partition_by={self.partition_by!r} is one text.", hint=f"Write partition_by=[{self.partition_by!r}]."
            )
        object.__setattr__(self, "path", None if self.path is None else str(self.path))
        object.__setattr__(self, "partition_by", tuple(self.partition_by))
        if self.catalog is not None and self.format != "iceberg":
            raise ConfigError(f"catalog= is for Iceberg, and {self.name} is {self.format}.", hint="Name its path=.")
        if (self.path is None) == (self.catalog is None):
            either = "path= or catalog=" if self.format == "iceberg" else "path="
            raise ConfigError(f"Where table {self.name} is to be is not clear.", hint=f"Give it one of: {either}.")
        if self.format == "parquet" and self.mode == "upsert":
            raise ConfigError(
                "Parquet files cannot be updated.", hint='Use format="delta" or "iceberg", or mode="append".'
            )
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


@dataclass(frozen=True)
class Jdbc(_Keyed):
    """A table in PostgreSQL; rows and a note about the batch are written in one transaction.

    Args:
        url: Such as ``jdbc:postgresql://db:5432/shop``.
        table: Its name, with its schema if it is not in the search path. It has to exist.
        user: Who connects.
        password: With what; never shown.
        mode: ``"append"``, or ``"upsert"`` by ``keys``, which need a unique index.
        keys: The columns that make a row the same row.
        order_by: The column that says which row of a key is newer; an older one never replaces a newer one.
    """

    url: str
    table: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    guarantee: ClassVar[str] = "exactly-once: rows and a note of the batch are one transaction"

    packages: ClassVar[tuple[str, ...]] = ("postgresql",)

    def __post_init__(self) -> None:
        known.remember(self.password)
        if not isinstance(self.url, str) or not self.url.startswith("jdbc:postgresql:"):
            raise ConfigError(
                f"{hide_passwords(str(self.url))!r} is not a JDBC address of PostgreSQL.",
                hint='Write it like "jdbc:postgresql://localhost:5432/shop".',
            )
        if "password=" in self.url:
            raise ConfigError("The address holds a password.", hint="Give it as password=..., which is never shown.")
        if not isinstance(self.table, str) or not self.table.strip():
            raise ConfigError(f"{self.table!r} is not a name for a table.", hint='Write it like "revenue".')
        self._check_keys()

    def __repr__(self) -> str:
        return f"Jdbc({hide_passwords(self.url)!r}, {self.table!r}, mode={self.mode!r}, keys={self.keys!r})"

    def __str__(self) -> str:
        return f"PostgreSQL table {self.table}"


@dataclass(frozen=True)
class Console:
    """The terminal: the first rows of each batch, for a look while developing."""

    rows: int = 20

    guarantee: ClassVar[str] = "for the eye only"
    backfill_guarantee: ClassVar[str] = guarantee
    packages: ClassVar[tuple[str, ...]] = ()

    def __str__(self) -> str:
        return "the terminal"


Sink = Topic | Table | Jdbc | Console


def as_sink(value: Any) -> Sink:
    """A plain text is a topic."""
    if isinstance(value, str):
        return Topic(value)
    if isinstance(value, Sink):
        return value
    raise ConfigError(
        f"{value!r} is not a sink.", hint="Use the name of a topic, or Topic(...), Table(...), Jdbc(...), Console()."
    )
