"""The table of Kafka's error codes is right, and it is the only place that names them."""

import re
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

import penstock
from penstock.kafka import error_codes
from penstock.kafka.error_codes import FINAL, Code

SOURCE = Path(penstock.__file__).parent
GROUPS = {name: group for name, group in vars(error_codes).items() if isinstance(group, frozenset)}
# "KafkaError._X" or "KafkaError.X", but not "kafka_python_errors.KafkaError" or a method such as "KafkaError.code".
CONSTANT = re.compile(r"(?<![\w.])KafkaError\._?[A-Z][A-Z_]+\b")
# A number that is compared with an error code.
NUMBER = re.compile(r"(?:\.code\(\)|error_code)\s*(?:==|!=|in)\s*[-({\[]*\d")


@pytest.mark.parametrize("code", Code, ids=lambda code: code.name)
def test_each_code_is_the_client_s_code_of_that_name(code: Code) -> None:
    name = code.name.replace("LOCAL_", "_", 1) if code.name.startswith("LOCAL_") else code.name
    assert getattr(KafkaError, name) == code
    assert (code < 0) == code.name.startswith("LOCAL_"), "librdkafka's own codes are negative"
    assert KafkaError(code).code() == code
    assert code.meaning


def test_each_name_has_its_own_code() -> None:
    """An enum would make the second name of a code an alias of the first, and hide a wrong row."""
    assert len(Code.__members__) == len(Code)


def test_groups_consist_of_codes_of_the_table() -> None:
    assert GROUPS
    for name, group in GROUPS.items():
        assert group, name
        assert all(isinstance(code, Code) for code in group), name


def test_no_final_error_is_retriable() -> None:
    # Except a missing topic: Kafka retries, as a new topic takes a moment; at the start of an app it must exist.
    assert {code for code in FINAL if code.retriable} == {Code.UNKNOWN_TOPIC_OR_PART}


def test_groups_that_are_waited_for_are_retriable() -> None:
    waited_for = error_codes.COORDINATOR_UNREACHABLE | error_codes.NO_LEADER_YET | error_codes.NOT_STABLE_YET
    assert [code for code in waited_for if not code.retriable] == []


@pytest.mark.parametrize("pattern", [CONSTANT, NUMBER], ids=["constant", "number"])
def test_only_the_table_names_error_codes(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == [], "import Code, or a group of codes, from penstock.kafka.error_codes"


def test_the_search_for_codes_finds_them() -> None:
    assert CONSTANT.search("if error.code() == KafkaError._PARTITION_EOF:")
    assert CONSTANT.search("{KafkaError.NOT_COORDINATOR}")
    assert not CONSTANT.search("except kafka_python_errors.KafkaError as error:")
    assert NUMBER.search("if answer.error_code == 16:")
    assert NUMBER.search("if error.code() in {15, 16}:")
