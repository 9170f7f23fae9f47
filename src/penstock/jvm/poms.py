"""Downloads poms for jgo with our own connection, and rewrites them where jgo needs it.

jgo's requests support no password, no folder as a mirror and no retries, and they only log a wrong checksum. jgo also
does not replace some things that Maven replaces: version ranges, relocated modules, and older names of a project's
version.
"""

import hashlib
import re
import time
from functools import cmp_to_key
from pathlib import Path
from urllib.error import URLError
from xml.etree import ElementTree as ET

from jgo.maven import POM, Artifact, Component, MetadataXML, PythonResolver, compare_versions, version_in_range

from penstock.errors import SetupError
from penstock.jvm.download_errors import DamagedError, is_missing, unknown
from penstock.jvm.maven_connection import ATTEMPTS, MavenConnection
from penstock.jvm.progress_callback import ProgressCallback

# The same limit as for the download of the jars.
_LOOKUP_SECONDS = 1800.0
_RANGE = re.compile(r"[\[(][^\])]*[\])]")
_SNAPSHOT = "-SNAPSHOT"


class Poms(PythonResolver):
    """Gives jgo the poms that it needs. ``folder`` is jgo's cache, which only this run uses.

    jgo treats a module that raises an OSError, ValueError or RuntimeError as one without dependencies. This class
    raises SetupError, which ends the run.
    """

    def __init__(self, title: str, connection: MavenConnection, folder: Path, progress: ProgressCallback) -> None:
        super().__init__()
        self._title = title
        self._connection = connection
        self._folder = folder
        self._progress = progress
        self._files: dict[str, bytes | None] = {}
        self._deadline = time.monotonic() + _LOOKUP_SECONDS

    def download(self, artifact: Artifact) -> Path:
        """Return the pom of this module. Replace a relocated module, and a version range, by the right module."""
        component = artifact.component
        self._choose_version(component)
        self._name_snapshot(component)
        pom_file = self._folder / component.path_prefix / artifact.cached_filename
        if pom_file.exists():
            return pom_file
        pom_file.parent.mkdir(parents=True, exist_ok=True)
        pom_file.write_bytes(self._content(artifact))
        pom = POM(pom_file)
        if pom.element("distributionManagement/relocation") is not None:
            pom_file.unlink()  # otherwise jgo would use it the next time
            _relocate(component, pom)
            return component.artifact(packaging=artifact.packaging).resolve()
        _name_properties(pom)
        pom_file.write_text(pom.dump(), "utf-8")
        return pom_file

    def has(self, path: str) -> bool:
        """Return whether the registry has this file."""
        return self._connection.persist(
            lambda: self._connection.has(path),
            title=self._title,
            what=path,
            on_retry=self._tell_retry,
            pause=time.sleep,
        )

    def _content(self, artifact: Artifact) -> bytes:
        path = _path(artifact)
        content = self._fetch(path)
        if content is not None:
            return content
        jar = artifact.component.artifact()
        if self.has(_path(jar)):  # some old modules are a jar without a pom: they have no dependencies
            return _bare_pom(artifact)
        raise self._missing(artifact.component)

    def _choose_version(self, component: Component) -> None:
        """Replace a range, such as ``[1.0,2.0)``, by the newest version in it."""
        ranges = _RANGE.findall(component.version)
        if not ranges:
            return
        if len(ranges) == 1 and "," not in ranges[0]:
            component.version = ranges[0][1:-1].strip()
            return
        content = self._fetch(f"{component.project.path_prefix.as_posix()}/maven-metadata.xml")
        versions = MetadataXML(content.decode()).versions if content else []
        fitting = [version for version in versions if any(version_in_range(version, each) for each in ranges)]
        if not fitting:
            raise self._missing(component)
        component.version = max(fitting, key=cmp_to_key(compare_versions))

    def _name_snapshot(self, component: Component) -> None:
        """Download the metadata with the timestamp of a snapshot; jgo looks for it in its cache."""
        if not component.version.endswith(_SNAPSHOT) or component.snapshot_metadata:
            return
        content = self._fetch(f"{component.path_prefix.as_posix()}/maven-metadata.xml")
        if content is not None:
            metadata_file = self._folder / component.path_prefix / "maven-metadata-registry.xml"
            metadata_file.parent.mkdir(parents=True, exist_ok=True)
            metadata_file.write_bytes(content)

    def _fetch(self, path: str) -> bytes | None:
        """Return the file, checked by its SHA-1, or None if the registry does not have it."""
        if path not in self._files:
            self._check_time()
            self._files[path] = self._connection.persist(
                lambda: self._read(path), title=self._title, what=path, on_retry=self._tell_retry, pause=time.sleep
            )
            self._progress(f"Looking up {self._title}", done=len(self._files), unit="poms")
        return self._files[path]

    def _read(self, path: str) -> bytes | None:
        try:
            content = self._connection.read(path)
        except URLError as error:
            if is_missing(error):
                return None
            raise
        expected = self._connection.sha1(path)
        found = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        if expected not in {None, found}:
            raise DamagedError(f"its SHA-1 is {found}, not {expected}")
        return content

    def _check_time(self) -> None:
        if time.monotonic() > self._deadline:
            raise SetupError(
                f"Cannot fetch {self._title}: looking up its dependencies took longer than "
                f"{_LOOKUP_SECONDS / 60:.0f} minutes.",
                hint="Use a faster network or a mirror (PENSTOCK_MAVEN_URL), then run the command again.",
            )

    def _tell_retry(self, attempt: int, reason: str) -> None:
        self._progress(f"Trying again ({attempt} of {ATTEMPTS}): {reason}")

    def _missing(self, component: Component) -> SetupError:
        what = f"{component.groupId}:{component.artifactId}:{component.version}"
        return unknown(self._title, what, self._connection.registry.describe()).error


def _path(artifact: Artifact) -> str:
    return (artifact.component.path_prefix / artifact.filename).as_posix()


def _relocate(component: Component, pom: POM) -> None:
    """Replace the module by the one that its pom names. Parts that the pom leaves out stay."""
    moved = "distributionManagement/relocation"
    group = pom.value(f"{moved}/groupId") or component.groupId
    name = pom.value(f"{moved}/artifactId") or component.artifactId
    component.project = component.context.project(group, name)
    component.version = pom.value(f"{moved}/version") or component.version


def _bare_pom(artifact: Artifact) -> bytes:
    project = ET.Element("project")
    for tag, text in (
        ("groupId", artifact.groupId),
        ("artifactId", artifact.artifactId),
        ("version", artifact.version),
    ):
        ET.SubElement(project, tag).text = text
    return ET.tostring(project)


def _name_properties(pom: POM) -> None:
    """Define the property names of a project's and its parent's coordinates that jgo does not know."""
    own = {"groupId": pom.groupId, "artifactId": pom.artifactId, "version": pom.version}
    named = {f"{prefix}{tag}": text for prefix in ("pom.", "") for tag, text in own.items()}
    for tag in own:
        text = pom.value(f"parent/{tag}")
        named |= {f"{prefix}parent.{tag}": text for prefix in ("project.", "pom.", "")}
    properties, root = pom.element("properties"), pom.tree.getroot()
    if root is None:
        return
    if properties is None:
        properties = ET.SubElement(root, "properties")
    for name, text in named.items():
        if text is not None and properties.find(name) is None:
            ET.SubElement(properties, name).text = text
