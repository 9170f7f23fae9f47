"""A real YARN on this machine: a resource manager and two node managers, from Hadoop's own jars."""

import os
import subprocess
import time
from pathlib import Path
from typing import Self

from jvms import QUICK
from penstock.jvm.coordinates import Artifact, Coordinates
from penstock.jvm.installed_spark import pyspark_jars
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java

# The version of the Hadoop client in PySpark.
_HADOOP = "3.4.1"
_JARS = Coordinates(
    f"YARN {_HADOOP}",
    (
        Artifact("org.apache.hadoop", "hadoop-client-minicluster", _HADOOP),
        # Libraries that it uses and does not declare.
        Artifact("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"),
        Artifact("javax.xml.bind", "jaxb-api", "2.3.1"),
        Artifact("org.glassfish.jaxb", "jaxb-runtime", "2.3.9"),
    ),
)
_START_SECONDS = 240.0
_END_SECONDS = 60.0
_LOOK_SECONDS = 0.1


class YarnCluster:
    """``with YarnCluster(folder) as yarn:`` starts it and ends it; ``HADOOP_CONF_DIR`` is then ``yarn.folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        brought = {path.name for path in pyspark_jars().iterdir()}
        jars = [str(path) for path in resolve(_JARS) if path.name not in brought]
        with (self.folder / "yarn.log").open("wb") as log:
            self._process = subprocess.Popen(
                [find_java(), "-Xmx512m", *QUICK, "--add-opens", "java.base/java.lang=ALL-UNNAMED",
                 str(Path(__file__).with_name("Yarn.java"))],
                cwd=self.folder,
                env={**os.environ, "CLASSPATH": os.pathsep.join([*jars, f"{pyspark_jars()}/*"])},
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
                # Ctrl+C in the terminal must reach only the test run, which then stops this process.
                start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + _START_SECONDS
        while b"ready" not in self._log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise TimeoutError(f"YARN did not start: {self._log.read_text(errors='replace')[-3000:]}")
            time.sleep(_LOOK_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _log(self) -> Path:
        return self.folder / "yarn.log"

    def close(self) -> None:
        """Close its standard input: it then ends its containers and itself."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
