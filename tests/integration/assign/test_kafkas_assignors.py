"""Penstock's form of Kafka's assignors gives the same answers as Kafka's.

`make fuzz-assignors` tries many more groups.
"""

import pytest

from assignors.fuzz import KAFKAS, fuzz
from penstock.assign import Assignor

CASES = 1_000


@pytest.mark.parametrize("assignor", KAFKAS, ids=lambda assignor: assignor.name)
def test_random_groups_get_the_answer_that_java_gives(assignor: Assignor) -> None:
    tally = fuzz(assignor, count=CASES, seed=7, tell=lambda _: None)
    assert not tally.differing, min(tally.differing, key=len)
    assert tally.same + tally.same_but_for_claims + tally.unsound == CASES
    assert tally.same > 0.97 * CASES
