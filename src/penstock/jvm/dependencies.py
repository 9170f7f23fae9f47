"""Resolves the dependencies of a set without a lock, with jgo, which reads the poms.

jgo resolves as Maven does: of two versions of a module, the one nearer to the set's artifacts wins. ``~/.m2`` is not
used. Import this module only to resolve something: importing jgo takes half a second.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as ET

from jgo.maven import POM, Dependency, MavenContext, Model

from penstock.errors import PenstockError
from penstock.jvm.coordinates import Artifact
from penstock.jvm.download import Unlocked
from penstock.jvm.download_errors import unresolvable
from penstock.jvm.maven_connection import connect
from penstock.jvm.poms import Poms
from penstock.jvm.progress_callback import ProgressCallback

# The type of a dependency in a pom is not always the extension of its file.
_JARS = {"bundle", "ejb", "ejb-client", "eclipse-plugin", "jar", "maven-plugin", "test-jar"}
_IMPLIED_CLASSIFIERS = {"ejb-client": "client", "test-jar": "tests"}

logging.getLogger("jgo").addHandler(logging.NullHandler())  # otherwise Python prints jgo's warnings on the terminal


def find_files(title: str, artifacts: Iterable[Artifact], *, work: Path, progress: ProgressCallback) -> list[Unlocked]:
    """Return the files of the artifacts and of all their dependencies. ``work`` is an empty folder for jgo's cache."""
    poms = Poms(title, connect(), work, progress)
    # Without registries, jgo makes all its requests through ``poms``.
    context = MavenContext(resolver=poms, repo_cache=work, local_repos=[], remote_repos={})
    try:
        found = _resolve(artifacts, context)
        paths = [path for each in found if (path := _path(each, poms))]
    except (PenstockError, OSError):
        raise
    except Exception as error:
        raise unresolvable(title, str(error).rstrip(".") or type(error).__name__) from error
    return [Unlocked(path) for path in dict.fromkeys(paths)]


def _resolve(artifacts: Iterable[Artifact], context: MavenContext) -> list[Dependency]:
    model = Model(_pom_of(artifacts), context)
    dependencies, _ = model.dependencies()
    for each in dependencies:
        # jgo treats a module with an unusable pom as one without dependencies. Loading it here raises instead.
        Model(each.artifact.component.pom(), context, model.dep_mgmt)
    return dependencies


def _pom_of(artifacts: Iterable[Artifact]) -> POM:
    """Return the pom of a project that depends on the artifacts."""
    project = ET.Element("project")
    _add(project, groupId="penstock", artifactId="jars", version="1")
    dependencies = ET.SubElement(project, "dependencies")
    for each in artifacts:
        dependency = ET.SubElement(dependencies, "dependency")
        _add(dependency, groupId=each.organisation, artifactId=each.name, version=each.version)
    return POM(ET.tostring(project, encoding="unicode"))


def _add(parent: ET.Element, **children: str) -> None:
    for tag, text in children.items():
        ET.SubElement(parent, tag).text = text


def _path(dependency: Dependency, poms: Poms) -> str | None:
    """Return the path of the file in the registry, or None for a module that has no jar, only dependencies."""
    component, kind = dependency.artifact.component, dependency.type
    if kind == "pom":
        return None
    extension = "jar" if kind in _JARS else kind
    artifact = component.artifact(dependency.classifier or _IMPLIED_CLASSIFIERS.get(kind, ""), extension)
    path = (component.path_prefix / artifact.filename).as_posix()
    if component.pom().value("packaging") == "pom" and not poms.has(path):
        return None
    return path
