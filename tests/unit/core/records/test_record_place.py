"""The place of a record, as people write it."""

import pytest

from penstock.core.records.record_place import read_place
from penstock.errors import ConfigError


@pytest.mark.parametrize("text", ["orders:3@42", "orders[3]@42", " orders:3@42 "])
def test_a_place_has_a_topic_a_partition_and_an_offset(text: str) -> None:
    assert read_place(text, name="--at") == (("orders", 3), 42)


@pytest.mark.parametrize("text", ["", "orders", "orders:3", "orders@42", "orders:-1@2", "orders:3@x", "a:b:3@4"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="does not name a record") as refused:
        read_place(text, name="--at")
    assert "orders:3@42" in refused.value.hint
