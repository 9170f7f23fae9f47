"""The layout of one embedded cluster, and the state file that stores it."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.devkit.ports import HOST
from penstock.jvm.private_files import write_durably

STATE_FILE = "state.json"
REGISTRY_ROLE = "registry"


@dataclass(frozen=True)
class Node:
    """A broker and controller in one process."""

    id: int
    port: int
    controller_port: int

    @property
    def role(self) -> str:
        return f"broker-{self.id}"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


@dataclass(frozen=True)
class Layout:
    """Everything needed to start the same cluster again on the same data and ports."""

    cluster_id: str
    data: str
    memory: str
    nodes: tuple[Node, ...]
    registry_port: int | None = None

    @property
    def roles(self) -> tuple[str, ...]:
        registry = () if self.registry_port is None else (REGISTRY_ROLE,)
        return (*(node.role for node in self.nodes), *registry)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def node_data(self, node: Node) -> Path:
        return Path(self.data) / f"node-{node.id}"

    @property
    def registry_data(self) -> Path:
        return Path(self.data) / "registry"

    @property
    def registry_url(self) -> str | None:
        return None if self.registry_port is None else f"http://{HOST}:{self.registry_port}/apis/ccompat/v7"


class DamagedStateError(Exception):
    """The state file exists but cannot be parsed."""


def encode_layout(layout: Layout) -> bytes:
    return msgspec.json.encode(layout)


def decode_layout(text: bytes | str) -> Layout:
    try:
        return msgspec.json.decode(text, type=Layout)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedStateError from error


def save_layout(home: Path, layout: Layout | None) -> None:
    """Write the state file, or delete it if the layout is None."""
    if layout is None:
        (home / STATE_FILE).unlink(missing_ok=True)
    else:
        write_durably(home / STATE_FILE, encode_layout(layout))


def load_layout(home: Path) -> Layout | None:
    try:
        return decode_layout((home / STATE_FILE).read_bytes())
    except FileNotFoundError:
        return None
