"""Starts Kafka, the registry and Spark once, so that tests find their jars and class archives.

With an archive a JVM needs half of the processor time to start, and a run of all tests starts about 200 of them.
"""

import os
import tempfile
from pathlib import Path
from unittest.mock import patch

from jvms import QUICK_OPTIONS, SPARK_PACKAGES
from penstock.devkit import Embedded, UpOptions
from penstock.spark.session.spark_session import spark_session


def main() -> None:
    os.environ.setdefault("SPARK_SUBMIT_OPTS", QUICK_OPTIONS)
    # Otherwise Penstock writes an archive only at the second start.
    often = patch("penstock.jvm.class_archive._was_seen", return_value=True)
    with often, tempfile.TemporaryDirectory(prefix="penstock-warm-up-") as folder:
        os.environ["PENSTOCK_HOME"] = folder
        kafka = Embedded(Path(folder) / "kafka")
        kafka.up(UpOptions(port=0, registry=True))
        kafka.down()
        # `penstock run` and the fixture have different class paths, and so different archives.
        for packages in (None, SPARK_PACKAGES):
            with spark_session("warm-up", packages=packages) as session:
                rows = session.createDataFrame([(number % 3, number) for number in range(100)], ["key", "number"])
                rows.groupBy("key").sum("number").collect()
                rows.mapInArrow(lambda batches: batches, rows.schema).collect()


if __name__ == "__main__":
    main()
