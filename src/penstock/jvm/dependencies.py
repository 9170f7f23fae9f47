"""Which files a set without a lock consists of: its artifacts and all that they depend on. jgo reads their poms.

It resolves as Maven does: of two versions of a module, the one that is nearer to the set's own artifacts counts.
``~/.m2`` is neither read nor written. Import this module only where something is resolved: jgo takes half a second.
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
from penstock.jvm.progress_callback import Progress

# What a pom calls the kind of a dependency is not always how its file ends.
_JARS = {"bundle", "ejb", "ejb-client", "eclipse-plugin", "jar", "maven-plugin", "test-jar"}
_IMPLIED_CLASSIFIERS = {"ejb-client": "client", "test-jar": "tests"}

logging.getLogger("jgo").addHandler(logging.NullHandler())  # else Python prints its warnings on the terminal


def find_files(title: str, artifacts: Iterable[Artifact], *, work: Path, progress: Progress) -> list[Unlocked]:
    """Return the artifacts' files and those of all they depend on; ``work`` is jgo's cache, an empty folder."""
    poms = Poms(title, connect(), work, progress)
    # Without registries of its own, jgo asks for nothing but through ``poms``.
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
    model = Model(_wish(artifacts), context)
    dependencies, _ = model.dependencies()
    for each in dependencies:
        # jgo takes a module whose pom it cannot use for one that depends on nothing. Here, the same raises.
        Model(each.artifact.component.pom(), context, model.dep_mgmt)
    return dependencies


def _wish(artifacts: Iterable[Artifact]) -> POM:
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
    """Return where the file is in the registry, or None for a module that only brings others."""
    component, kind = dependency.artifact.component, dependency.type
    if kind == "pom":
        return None
    extension = "jar" if kind in _JARS else kind
    artifact = component.artifact(dependency.classifier or _IMPLIED_CLASSIFIERS.get(kind, ""), extension)
    path = (component.path_prefix / artifact.filename).as_posix()
    if component.pom().value("packaging") == "pom" and not poms.has(path):
        return None
    return path
