"""``python -m docs_site FOLDER``: build the site into the folder."""

import sys
from pathlib import Path

from docs_site.build import build

if __name__ == "__main__":
    *_, folder = sys.argv
    problems = build(Path(folder))
    for problem in problems:
        print(problem, file=sys.stderr)  # noqa: T201 - a program of its own
    if not problems:
        print(f"Open {Path(folder).resolve() / 'index.html'}")  # noqa: T201
    sys.exit(1 if problems else 0)
