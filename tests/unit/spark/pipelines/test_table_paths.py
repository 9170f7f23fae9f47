"""Where a table lies, as Spark gets it."""

from pathlib import Path

from penstock.spark.pipelines.sinks.table_paths import absolute, table_folder


def test_a_plain_path_is_a_folder_of_this_machine_without_escapes(tmp_path: Path) -> None:
    folder = tmp_path / "käse + brot"
    assert absolute(str(folder)) == f"file://{folder}"


def test_a_url_stays_as_it_is() -> None:
    assert table_folder("s3a://bucket/a+b/", "shop.orders") == "s3a://bucket/a+b/shop/orders"
