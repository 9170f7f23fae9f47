"""How many records go to a worker at once."""

from penstock.core.scheduling.bundle_size import BundleSize


def test_until_something_is_known_records_go_one_by_one() -> None:
    pace = BundleSize()
    assert pace.size == 1
    pace.observe(0, 5.0)
    assert pace.size == 1


def test_slow_handlers_get_records_one_by_one_and_quick_ones_in_bundles() -> None:
    slow, quick, instant = BundleSize(), BundleSize(), BundleSize()
    slow.observe(1, 0.01)
    quick.observe(10, 0.0001)
    instant.observe(1_000, 0.0)
    assert (slow.size, quick.size, instant.size) == (1, 400, 2_000)


def test_bundles_shrink_if_a_handler_becomes_slow() -> None:
    pace = BundleSize()
    pace.observe(1_000, 0.001)
    assert pace.size == 2_000
    pace.observe(1, 1.0)
    assert pace.size == 1
    for _ in range(60):
        pace.observe(1, 0.00001)
    assert pace.size > 100
