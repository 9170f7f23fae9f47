"""Numbers in sentences."""

from penstock.core.text.plurals import at_most, counted


def test_singular_and_plural_agree() -> None:
    assert [counted(number, "record") for number in (0, 1, 2, 1_000)] == [
        "0 records",
        "1 record",
        "2 records",
        "1,000 records",
    ]
    assert counted(2, "retry", "retries") == "2 retries"


def test_a_count_of_offsets_is_an_upper_bound_of_records() -> None:
    assert [at_most(number, "record") for number in (0, 1, 5)] == ["0 records", "up to 1 record", "up to 5 records"]
