"""Tests of the handler: on the bench it runs in the process of the test."""

from paint import paint
from thumbs import SIZE, app, read_png, write_png

from penstock.testing import Bench


def test_a_picture_becomes_a_small_one_with_its_key() -> None:
    bench = Bench(app)
    bench.produce("pictures", paint(3, side=100), key="a")
    bench.run_until_idle()
    (small,) = bench.records("thumbnails")
    rows = read_png(small.value or b"")
    assert (small.key, len(rows), len(rows[0])) == (b"a", 25, 25)
    assert max(len(rows), len(rows[0])) <= SIZE


def test_a_picture_of_one_shade_keeps_it() -> None:
    bench = Bench(app)
    bench.produce("pictures", write_png([bytes([7]) * 64] * 64))
    bench.run_until_idle()
    (small,) = bench.records("thumbnails")
    assert set(b"".join(read_png(small.value or b""))) == {7}


def test_what_is_no_picture_is_a_dead_letter() -> None:
    bench = Bench(app)
    bench.produce("pictures", b"GIF89a")
    bench.run_until_idle()
    assert [each.reason for each in bench.dead_letters("pictures.dlq")] == ["Reject: this is not a PNG file"]
