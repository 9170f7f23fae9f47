"""What differs between the databases that a Jdbc sink writes to: the driver, types, and a few statements."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.app.pipelines import Database

NOTES = "penstock_batches"
ROW = "penstock_row"


@dataclass(frozen=True)
class Dialect:
    """``make_draft`` and ``find_drafts`` are statements with ``{table}``, ``{draft}`` and ``{prefix}`` in them."""

    driver: str
    create_notes: str
    make_draft: tuple[str, ...]
    find_drafts: str
    # For an INSERT ... SELECT ... ON CONFLICT, whose SELECT SQLite reads as a join if it has no WHERE.
    select_end: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    write_options: Mapping[str, str] = field(default_factory=dict)
    is_file: bool = False


DIALECTS: Mapping[Database, Dialect] = {
    "postgresql": Dialect(
        driver="org.postgresql.Driver",
        create_notes=f"CREATE TABLE IF NOT EXISTS {NOTES} (pipeline text NOT NULL, incarnation text NOT NULL, "
        "batch bigint NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (pipeline, incarnation))",
        make_draft=(
            "CREATE UNLOGGED TABLE {draft} AS SELECT * FROM {table} WITH NO DATA",
            f"ALTER TABLE {{draft}} ADD COLUMN {ROW} bigint PRIMARY KEY",
        ),
        find_drafts="SELECT tablename FROM pg_tables "
        "WHERE schemaname = current_schema() AND starts_with(tablename, {prefix})",
        # Lets text columns be written to other types, such as uuid and jsonb.
        properties={"stringtype": "unspecified"},
    ),
    "sqlite": Dialect(
        driver="org.sqlite.JDBC",
        create_notes=f"CREATE TABLE IF NOT EXISTS {NOTES} (pipeline text NOT NULL, incarnation text NOT NULL, "
        "batch integer NOT NULL, at text NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (pipeline, incarnation))",
        make_draft=(
            "CREATE TABLE {draft} AS SELECT * FROM {table} WHERE false",
            f"ALTER TABLE {{draft}} ADD COLUMN {ROW} integer",
            f"CREATE UNIQUE INDEX {{draft}}_rows ON {{draft}} ({ROW})",
        ),
        find_drafts="SELECT name FROM sqlite_master WHERE type = 'table' AND instr(name, {prefix}) = 1",
        select_end=" WHERE true",
        # How long a connection waits for the lock of another program, in milliseconds.
        properties={"busy_timeout": "60000"},
        # SQLite has one writer at a time.
        write_options={"numPartitions": "1", "isolationLevel": "SERIALIZABLE"},
        is_file=True,
    ),
}
