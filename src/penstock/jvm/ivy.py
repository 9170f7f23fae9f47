"""Running Ivy, the resolver that ships inside PySpark, with settings of our own.

Neither ``~/.m2`` nor ``~/.ivy2`` is read or written: a half-filled one makes Ivy fail on jars whose pom is there.
"""

import importlib.util
import os
import re
import subprocess
import threading
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from penstock.errors import ConfigError
from penstock.jvm.coordinates import Artifact, pyspark_missing
from penstock.jvm.progress import Progress

MIRROR_VARIABLE = "PENSTOCK_MAVEN_URL"
FETCH_SECONDS = 1800
_CONNECT_MS = 15_000
_READ_MS = 60_000
_LAYOUT = "[orgPath]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
_FOUND = re.compile(r"^\s*found \S+#")


@dataclass(frozen=True)
class Request:
    """``exact`` means that the artifacts are all there is to fetch: no poms, no transitive dependencies."""

    title: str
    artifacts: tuple[Artifact, ...]
    exact: bool


@dataclass(frozen=True)
class Outcome:
    succeeded: bool
    output: str


def run_ivy(java: Path, request: Request, *, work: Path, target: Path, progress: Progress) -> Outcome:
    """Fetch into ``target``; ``work`` is Ivy's scratch folder, which a second attempt may reuse."""
    settings, wish = work / "ivysettings.xml", work / "ivy.xml"
    settings.write_text(render_settings(work / "cache", exact=request.exact), "utf-8")
    wish.write_text(render_wish(request), "utf-8")
    command: list[str | Path] = [
        java,
        *("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *_proxy_flags(),
        f"-Divy.default.ivy.user.dir={work}",
        *("-cp", f"{pyspark_jars()}/*", "org.apache.ivy.Main"),
        *("-settings", settings, "-ivy", wish, "-confs", "default"),
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
            output = _follow(process, request, progress)
        except BaseException:
            process.kill()
            raise
        finally:
            watchdog.cancel()
    return Outcome(process.returncode == 0, output)


def pyspark_jars() -> Path:
    """Return PySpark's jar folder without importing PySpark, which takes a second."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise pyspark_missing()
    return Path(spec.origin).parent / "jars"


def render_settings(cache: Path, *, exact: bool) -> str:
    mirror = os.environ.get(MIRROR_VARIABLE, "")
    if mirror and not mirror.startswith(("http://", "https://", "file:")):
        raise ConfigError(
            f"{MIRROR_VARIABLE} is not an address.",
            hint="Set it to the http(s) address of a Maven mirror, or unset it.",
        )
    root = f"root={quoteattr(mirror.rstrip('/') + '/')}" if mirror else ""
    poms = "false" if exact else "true"
    return f"""<ivysettings>
  <property name="ivy.checksums" value="sha1"/>
  <settings defaultResolver="maven"/>
  <caches defaultCacheDir={quoteattr(str(cache))}/>
  <timeout-constraints>
    <timeout-constraint name="bounded" connectionTimeout="{_CONNECT_MS}" readTimeout="{_READ_MS}"/>
  </timeout-constraints>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="{poms}" timeoutConstraint="bounded" {root}/>
  </resolvers>
</ivysettings>
"""


def render_wish(request: Request) -> str:
    """Write the ``ivy.xml`` that asks for the artifacts; only there can a classifier or another type be named."""
    dependencies = "\n".join(_dependency(artifact, exact=request.exact) for artifact in request.artifacts)
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="penstock" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _dependency(artifact: Artifact, *, exact: bool) -> str:
    head = (
        f"    <dependency org={quoteattr(artifact.organisation)} name={quoteattr(artifact.name)} "
        f'rev={quoteattr(artifact.version)} conf="default->default"'
    )
    if not exact:
        return f"{head}/>"
    extension = quoteattr(artifact.extension)
    classifier = f" m:classifier={quoteattr(artifact.classifier)}" if artifact.classifier else ""
    return (
        f'{head} transitive="false">'
        f"<artifact name={quoteattr(artifact.name)} type={extension} ext={extension}{classifier}/></dependency>"
    )


def _follow(process: "subprocess.Popen[str]", request: Request, progress: Progress) -> str:
    lines = []
    found = downloading = 0
    total = len(request.artifacts) if request.exact else 0
    for line in process.stdout or ():
        lines.append(line)
        if _FOUND.match(line):
            found += 1
            progress(f"Looking up {request.title}", done=found, total=total)
        elif line.startswith("downloading "):
            downloading += 1
            progress(f"Fetching {request.title}", done=downloading, total=total or found)
    return "".join(lines)


def _proxy_flags() -> list[str]:
    """Hand over the proxy of the environment, which pip obeys and Java does not."""
    flags = []
    for scheme, address in urllib.request.getproxies().items():
        parts = urlsplit(address)
        if scheme in {"http", "https"} and parts.hostname and parts.port:
            flags += [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={parts.port}"]
    return flags
