"""Builds the site with Sphinx, the theme Furo and the reader of Markdown MyST, and without a network."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs_site.assembly import assemble
from docs_site.contents import Section
from docs_site.diagrams import put_diagrams_into
from docs_site.site_check import problems_of

_CONFIGURATION = Path(__file__).parent / "theme"
_TOCTREE = re.compile(r"\n```\{toctree\}.*?\n```\n", re.DOTALL)
ABOUT = "Reliable, massively parallel Kafka consumption for Python, from one process to a Spark cluster."


def build(folder: Path) -> list[str]:
    """Replace the folder by a new site. Return what is wrong with it: Sphinx's warnings, links without a target."""
    with tempfile.TemporaryDirectory() as made:
        source, site = Path(made) / "source", Path(made) / "site"
        sections = assemble(source)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto"),
                *("-c", str(_CONFIGURATION), "-d", str(Path(made) / "doctrees"), str(source), str(site)),
            ],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        if done.returncode != 0:
            return (done.stdout + done.stderr).strip().splitlines() or [f"Sphinx ended with {done.returncode}."]
        for page in site.rglob("*.html"):
            put_diagrams_into(page)
        for page in source.rglob("*.md"):
            text = _TOCTREE.sub("", page.read_text("utf-8")).replace("](/", f"]({_up(page.relative_to(source))}")
            (site / page.relative_to(source)).write_text(text, "utf-8")
        for picture in (each for kind in ("*.svg", "*.png") for each in source.rglob(kind)):
            target = site / picture.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, target)
        (site / "llms.txt").write_text(llms_text(sections), "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(site, folder)
    return problems_of(folder)


def _up(page: Path) -> str:
    return "../" * (len(page.parts) - 1)


def llms_text(sections: list[Section]) -> str:
    """The list of all pages for programs that read documentation: https://llmstxt.org."""
    lines = ["# Penstock", "", f"> {ABOUT}", "", "Each page of this site exists as HTML and, with .md, as Markdown."]
    for section in sections:
        lines += ["", f"## {section.title}", ""]
        lines += [f"- [{each.title}]({each.name}.md): {each.about}".rstrip(": ") for each in section.entries]
    return "\n".join(lines) + "\n"
