"""Running Ivy, the resolver that ships inside PySpark, for packages that no lock lists, such as a user's own.

It resolves as ``spark-submit --packages`` does. Neither ``~/.m2`` nor ``~/.ivy2`` is read or written: a half-filled one
makes Ivy fail on jars whose pom is there.
"""

import re
import subprocess
import threading
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from penstock.jvm.coordinates import Artifact
from penstock.jvm.installed_spark import pyspark_jars
from penstock.jvm.ivy_failures import explain
from penstock.jvm.java import find_java
from penstock.jvm.progress import Progress
from penstock.jvm.registry import find_registry

FETCH_SECONDS = 1800
_ATTEMPTS = 3
_CONNECT_MS = 15_000
_READ_MS = 60_000
_LAYOUT = "[orgPath]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
_FOUND = re.compile(r"^\s*found \S+#")


@dataclass(frozen=True)
class Outcome:
    succeeded: bool
    output: str


def resolve_by_ivy(title: str, artifacts: Iterable[Artifact], *, work: Path, target: Path, progress: Progress) -> None:
    """Fetch the artifacts and all that they depend on into ``target``; ``work`` is Ivy's scratch folder."""
    java = find_java()
    (work / "ivysettings.xml").write_text(render_settings(work / "cache"), "utf-8")
    (work / "ivy.xml").write_text(render_wish(artifacts), "utf-8")
    for attempt in range(1, _ATTEMPTS + 1):
        outcome = _run_ivy(java, title, work=work, target=target, progress=progress)
        if outcome.succeeded:
            return
        failure = explain(title, outcome.output, cache=target.parent.parent)
        if not failure.passing or attempt == _ATTEMPTS:
            raise failure.error
        # What arrived whole is in Ivy's scratch folder, so the next attempt only fetches the rest.
        progress(f"The download broke off, trying again ({attempt + 1} of {_ATTEMPTS})")


def _run_ivy(java: Path, title: str, *, work: Path, target: Path, progress: Progress) -> Outcome:
    command: list[str | Path] = [
        java,
        *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *_proxy_flags(),
        f"-Divy.default.ivy.user.dir={work}",
        *("-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main"),
        *("-settings", work / "ivysettings.xml", "-ivy", work / "ivy.xml", "-confs", "default"),
        *("-retrieve", f"{target}/{_LAYOUT}"),
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # A Ctrl+C is for us: we end Ivy ourselves, and its stack trace stays out of the terminal.
        start_new_session=True,
    ) as process:
        watchdog = threading.Timer(FETCH_SECONDS, process.kill)
        watchdog.start()
        try:
            output = _follow(process, title, progress)
        except BaseException:
            process.kill()
            raise
        finally:
            watchdog.cancel()
    return Outcome(process.returncode == 0, output)


def render_settings(cache: Path) -> str:
    return f"""<ivysettings>
  <property name="ivy.checksums" value="sha1"/>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="{_CONNECT_MS}" readTimeout="{_READ_MS}"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" timeoutConstraint="bounded"
             root={quoteattr(find_registry().root)}/>
  </resolvers>
</ivysettings>
"""


def render_wish(artifacts: Iterable[Artifact]) -> str:
    """Write the ``ivy.xml`` that asks for the artifacts."""
    dependencies = "\n".join(_dependency(artifact) for artifact in artifacts)
    return f"""<ivy-module version="2.0">
  <info organisation="penstock" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _dependency(artifact: Artifact) -> str:
    return (
        f"    <dependency org={quoteattr(artifact.organisation)} name={quoteattr(artifact.name)} "
        f'rev={quoteattr(artifact.version)} conf="default->default"/>'
    )


def _follow(process: "subprocess.Popen[str]", title: str, progress: Progress) -> str:
    lines = []
    found = downloading = 0
    for line in process.stdout or ():
        lines.append(line)
        if _FOUND.match(line):
            found += 1
            progress(f"Looking up {title}", done=found, unit="jars")
        elif line.startswith("downloading "):
            downloading += 1
            progress(f"Fetching {title}", done=downloading, total=found, unit="jars")
    return "".join(lines)


def _proxy_flags() -> list[str]:
    """Hand over the proxy of the environment, which pip obeys and Java does not."""
    if urllib.request.proxy_bypass(urlsplit(find_registry().root).hostname or ""):
        return []
    flags = []
    for scheme, address in urllib.request.getproxies().items():
        parts = urlsplit(address)
        if scheme in {"http", "https"} and parts.hostname and parts.port:
            flags += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={parts.port}"]
    return flags
