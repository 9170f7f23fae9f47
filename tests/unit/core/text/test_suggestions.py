"""Names that are unknown: the error says which name was meant."""

import pickle
from dataclasses import replace
from typing import Any

import pytest

from penstock import Avro, Breaker, JsonSchema, Maintenance, Protobuf, Reference, Registry, Retry, Source, Table, Topic
from penstock.app import Console, ForeachBatch, Jdbc
from penstock.errors import ConfigError

CALLED_BY_USERS = [
    *(Avro, Breaker, Console, ForeachBatch, Jdbc, JsonSchema, Maintenance, Protobuf, Reference, Registry),
    *(Retry, Source, Table, Topic),
]


@pytest.mark.parametrize("kind", CALLED_BY_USERS)
def test_a_misspelt_option_is_an_error_that_names_it(kind: Any) -> None:
    with pytest.raises(ConfigError, match=f"^{kind.__name__} has no option 'no_such_option'. There are: "):
        kind(no_such_option=1)


def test_the_right_name_is_suggested() -> None:
    with pytest.raises(ConfigError, match=r"^Retry has no option 'attempt'\. Did you mean 'attempts'\?$"):
        Retry(attempt=5)  # type: ignore[call-arg]


def test_values_are_still_copied_and_sent_to_other_processes() -> None:
    retry = replace(Retry(5, first="2s"), factor=3)
    assert retry == Retry(attempts=5, first="2s", factor=3) == pickle.loads(pickle.dumps(retry))
