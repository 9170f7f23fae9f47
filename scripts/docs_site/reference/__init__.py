"""The pages of the reference, made from the code when the site is built, so that they are never out of date."""

from docs_site.reference.api import api_page
from docs_site.reference.commands import commands_page
from docs_site.reference.messages import errors_page
from docs_site.reference.tables import events_page, headers_page, metrics_page, options_page, settings_page

__all__ = ["reference_pages"]


def reference_pages() -> dict[str, str]:
    """The Markdown of each page by its name, in the order of the sidebar."""
    return {
        "api": api_page(),
        "options": options_page(),
        "settings": settings_page(),
        "commands": commands_page(),
        "events": events_page(),
        "metrics": metrics_page(),
        "headers": headers_page(),
        "errors": errors_page(),
    }
