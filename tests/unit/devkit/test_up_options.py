from pathlib import Path

import pytest

from penstock.devkit.up_options import UpOptions, check_memory, heap_bytes
from penstock.errors import ConfigError


@pytest.mark.parametrize(("text", "size"), [("512m", 512 << 20), ("2g", 2 << 30), ("1G", 1 << 30)])
def test_reads_an_amount_of_memory(text: str, size: int) -> None:
    assert heap_bytes(text) == size


@pytest.mark.parametrize("text", ["", "512", "lots", "-1g", "1.5g", "512mb", "512m -XX:Evil"])
def test_refuses_what_is_no_amount(text: str) -> None:
    with pytest.raises(ConfigError, match="not an amount of memory"):
        check_memory(text)


def test_refuses_too_little_and_too_much() -> None:
    with pytest.raises(ConfigError, match="too little"):
        check_memory("64m")
    with pytest.raises(ConfigError, match="more than this machine has"):
        check_memory("99999g")


@pytest.mark.parametrize(
    "options",
    [
        UpOptions(brokers=2),
        UpOptions(brokers=0),
        UpOptions(brokers=7),
        UpOptions(port=70_000),
        UpOptions(port=-1),
        UpOptions(memory="x"),
    ],
)
def test_refuses_options_that_cannot_work(options: UpOptions) -> None:
    with pytest.raises(ConfigError) as caught:
        options.check()
    assert caught.value.hint


def test_accepts_what_works() -> None:
    UpOptions().check()
    UpOptions(brokers=3, port=0, registry=True, data=Path("/a b"), memory="512m").check()
