"""Settings of Sphinx for the documentation site; ``docs_site`` passes the rest."""

# ruff: noqa: INP001, A001 - Sphinx decides the names

from penstock import __version__

project = "Penstock"
author = "the Penstock project"
copyright = "the Penstock project, Apache-2.0"
version = release = __version__
language = "en"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns: list[str] = []
templates_path = ["templates"]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
# Anchors such as <a id="lane"></a> are unknown to MyST; site_check.py checks every link of the finished site.
suppress_warnings = ["myst.xref_missing"]

html_theme = "furo"
html_title = f"Penstock {__version__}"
html_static_path = ["static"]
html_css_files = ["penstock.css"]
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b6e8f", "color-brand-content": "#0b6e8f"},
    "dark_css_variables": {"color-brand-primary": "#5cc3e6", "color-brand-content": "#5cc3e6"},
}
pygments_style = "tango"
pygments_dark_style = "monokai"
