"""Random and damaged bytes: every decoder returns a value or a reason. ``python -m fuzzing`` tries many more."""

import os

import pytest

from fuzzing import check, targets

TARGETS = targets()
COUNT = int(os.environ.get("PENSTOCK_TEST_HOSTILE_BYTES", "300"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_lead_to_a_value_or_a_reason(name: str) -> None:
    found = check(TARGETS[name], COUNT, seed=COUNT)
    assert found["Done"]
    assert found["Failed"]
