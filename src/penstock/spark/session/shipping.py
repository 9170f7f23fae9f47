"""An app's code on its way to executors: one archive with the app's own modules and Penstock itself.

Handlers travel by the name of their module, so each executor must be able to import it. What is installed here is not
shipped: executors have it, or get it as an environment (docs/spark-clusters.md).
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

from pyspark import SparkContext

import penstock
from penstock.app import App, called
from penstock.jvm.coordinates import spark_package
from penstock.spark.session.user_modules import find_own_code, package_files

# What Penstock's part of a task imports, and what Spark's own part needs for it.
NEEDED_MODULES = ("confluent_kafka", "msgspec", "pandas", "platformdirs", "pyarrow")

# The oldest moment that a zip can tell: the same code gives the same archive, whenever it is built.
_NO_MOMENT = (1980, 1, 1, 0, 0, 0)
_TAG_LENGTH = 12


@dataclass(frozen=True)
class Shipment:
    """What goes to the executors, and what has to be there already.

    ``files`` goes from the place in the archive to the file here; ``modules`` are those that hold the app's handlers;
    ``requirements`` are lines of a requirements file.
    """

    files: dict[str, Path]
    modules: tuple[str, ...]
    requirements: tuple[str, ...]
    python: str
    spark_packages: tuple[str, ...]

    def own(self) -> list[str]:
        """What of it is the app's, by the names that it is imported by."""
        tops = {place.partition("/")[0] for place in self.files}
        return sorted(top.removesuffix(".py") for top in tops - {"penstock"})


def shipment_of(app: App) -> Shipment:
    functions = [*(each.function for each in app.handlers), *(each.function for each in app.pipelines)]
    modules = tuple(dict.fromkeys(called(function).__module__ for function in functions))
    code = find_own_code(modules)
    ours = dict(package_files("penstock", folder)) if (folder := Path(penstock.__file__).parent).is_dir() else {}
    return Shipment(
        files={**code.files, **ours},
        modules=tuple(module for module in modules if module != "__main__"),
        requirements=_requirements({*code.installed, *NEEDED_MODULES}),
        python=".".join(platform.python_version_tuple()[:2]),
        spark_packages=tuple(str(spark_package(name).artifacts[0]) for name in ("kafka", *app.packages)),
    )


def write_archive(shipment: Shipment, target: Path) -> None:
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        # Folders are entries too: without them Python finds no package that has no __init__.py.
        for folder in _folders(shipment.files):
            archive.writestr(ZipInfo(f"{folder}/", _NO_MOMENT), b"")
        for place in sorted(shipment.files):
            entry = ZipInfo(place, _NO_MOMENT)
            entry.compress_type = ZIP_DEFLATED
            archive.writestr(entry, shipment.files[place].read_bytes())


@contextmanager
def shipped(context: SparkContext, shipment: Shipment) -> Iterator[None]:
    """For the block, every executor of this context can import the app; those that come later too."""
    if not shipment.files:  # it came here in an archive itself, by spark-submit, which gave it to the executors
        yield
        return
    with tempfile.TemporaryDirectory(prefix="penstock-ship-") as folder:
        draft = Path(folder, "draft.zip")
        write_archive(shipment, draft)
        # By its content, since a context serves each name once.
        tag = hashlib.sha256(draft.read_bytes()).hexdigest()[:_TAG_LENGTH]
        context.addPyFile(str(draft.rename(Path(folder, f"penstock-app-{tag}.zip"))))
        yield


def _folders(places: Iterable[str]) -> list[str]:
    return sorted({str(parent) for place in places for parent in Path(place).parents if parent != Path()})


def _requirements(modules: Iterable[str]) -> tuple[str, ...]:
    distributions = importlib.metadata.packages_distributions()
    names = {name for module in modules for name in distributions.get(module, [])}
    return tuple(sorted(f"{name}=={importlib.metadata.version(name)}" for name in names))
