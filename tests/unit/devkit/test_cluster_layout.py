from pathlib import Path

import pytest

from penstock.devkit.cluster_layout import STATE_FILE, DamagedStateError, Layout, Node, load_layout, save_layout

LAYOUT = Layout("id", "/data", "512m", (Node(1, 9092, 20001), Node(2, 9093, 20002)), registry_port=8081)


def test_a_saved_layout_comes_back(tmp_path: Path) -> None:
    save_layout(tmp_path, LAYOUT)
    assert load_layout(tmp_path) == LAYOUT


def test_a_forgotten_layout_is_gone(tmp_path: Path) -> None:
    save_layout(tmp_path, LAYOUT)
    save_layout(tmp_path, None)
    assert load_layout(tmp_path) is None
    save_layout(tmp_path, None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"cluster_id": 3}', b"\xff\x00", b'{"cluster_id": "x"}'])
def test_a_state_file_that_makes_no_sense_is_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / STATE_FILE).write_bytes(content)
    with pytest.raises(DamagedStateError):
        load_layout(tmp_path)


def test_names_and_addresses() -> None:
    assert LAYOUT.roles == ("broker-1", "broker-2", "registry")
    assert LAYOUT.bootstrap == "127.0.0.1:9092,127.0.0.1:9093"
    assert LAYOUT.registry_url == "http://127.0.0.1:8081/apis/ccompat/v7"
