"""Tests of the function. A bench has no share groups; the test on Kafka is in tests/integration."""

import pytest
from jobs import Job, Report, work

from penstock import Reject


def test_a_job_has_a_report() -> None:
    assert work(Job(7)) == Report(7)


def test_an_impossible_job_is_rejected() -> None:
    with pytest.raises(Reject):
        work(Job(7, -1.0))
