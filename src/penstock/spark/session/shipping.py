"""Sends an app's code to executors: one archive with the app's own modules and Penstock itself.

Spark pickles a handler as the name of its module, so each executor must be able to import that module. Installed
packages are not sent: executors have them, or get them as an environment (docs/spark-clusters.md).
"""

import hashlib
import importlib.metadata
import platform
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pyspark.sql import SparkSession

import penstock
from penstock.app import App, called
from penstock.jvm.coordinates import spark_package
from penstock.spark.internals import is_connect
from penstock.spark.session.user_modules import find_own_code, package_files

# The libraries that Penstock and Spark import in a task.
NEEDED_MODULES = ("confluent_kafka", "msgspec", "pandas", "platformdirs", "pyarrow")

# The earliest time that a zip can store: the same code always makes the same archive.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_TAG_LENGTH = 12


@dataclass(frozen=True)
class Shipment:
    """The code to send to the executors, and what executors must have already.

    ``files`` maps paths in the archive to local files; ``modules`` are the modules with the app's handlers,
    resources and middleware; ``requirements`` are lines of a requirements file.
    """

    files: dict[str, Path]
    modules: tuple[str, ...]
    requirements: tuple[str, ...]
    python: str
    spark_packages: tuple[str, ...]

    def own(self) -> list[str]:
        """Return the names of the app's modules in it."""
        tops = {path.partition("/")[0] for path in self.files}
        return sorted(top.removesuffix(".py") for top in tops - {"penstock"})


def shipment_of(app: App) -> Shipment:
    functions = [*(each.function for each in app.declared_handlers), *(each.function for each in app.pipelines)]
    functions += app.functions_around_handlers
    modules = tuple(dict.fromkeys(called(function).__module__ for function in functions))
    code = find_own_code(modules)
    penstock_files = (
        dict(package_files("penstock", folder)) if (folder := Path(penstock.__file__).parent).is_dir() else {}
    )
    return Shipment(
        files={**code.files, **penstock_files},
        modules=tuple(module for module in modules if module != "__main__"),
        requirements=_requirements({*code.installed, *NEEDED_MODULES}),
        python=".".join(platform.python_version_tuple()[:2]),
        # Handlers need no jars.
        spark_packages=tuple(
            str(spark_package(name).artifacts[0]) for name in (("kafka", *app.packages) if app.pipelines else ())
        ),
    )


def write_archive(shipment: Shipment, target: Path) -> None:
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        # Folders need entries too: without them Python finds no package that has no __init__.py.
        for folder in _folders(shipment.files):
            archive.writestr(ZipInfo(f"{folder}/", _NO_TIME), b"")
        for path in sorted(shipment.files):
            entry = ZipInfo(path, _NO_TIME)
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, shipment.files[path].read_bytes())


@contextmanager
def shipped(session: SparkSession, shipment: Shipment) -> Iterator[None]:
    """In the block, every executor of this session can import the app, also one that starts later."""
    if not shipment.files:  # spark-submit brought the app in an archive, and gave that to the executors
        yield
        return
    with tempfile.TemporaryDirectory(prefix="penstock-ship-") as folder:
        draft = Path(folder, "draft.zip")
        write_archive(shipment, draft)
        # Named by its content, because a session serves each name once.
        tag = hashlib.sha256(draft.read_bytes()).hexdigest()[:_TAG_LENGTH]
        archive = str(draft.rename(Path(folder, f"penstock-app-{tag}.zip")))
        if is_connect(session):
            session.addArtifacts(archive, pyfile=True)
        else:
            session.sparkContext.addPyFile(archive)
        yield


def _folders(paths: Iterable[str]) -> list[str]:
    return sorted({str(parent) for path in paths for parent in Path(path).parents if parent != Path()})


def _requirements(modules: Iterable[str]) -> tuple[str, ...]:
    distributions = importlib.metadata.packages_distributions()
    names = {name for module in modules for name in distributions.get(module, [])}
    return tuple(sorted(f"{name}=={importlib.metadata.version(name)}" for name in names))
