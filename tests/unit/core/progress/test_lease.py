"""How long a member may assume that it owns its partitions."""

from penstock.core.progress.lease import Lease


def test_before_the_first_poll_nothing_runs_out() -> None:
    assert Lease(10).renew(1e9)


def test_each_poll_renews_it_and_one_that_comes_too_late_does_not() -> None:
    lease = Lease(10)
    assert lease.renew(0)
    assert lease.renew(10)
    assert lease.until == 20
    assert not lease.renew(20.1)
    assert not lease.renew(20.2), "polls alone do not renew it"
    assert lease.until == 20
    lease.restore(30)
    assert lease.renew(35)
    assert lease.until == 45
