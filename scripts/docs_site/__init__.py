"""Builds the documentation site: `make docs`.

``docs/index.md`` lists the pages section by section, and the site has its structure from there (``contents``).
``assembly`` collects the pages of the repository and those of the reference (``reference``) in one folder, Sphinx makes
HTML of them, and ``site_check`` checks every link of the result.
"""
