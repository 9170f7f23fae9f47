"""Options of an app from outside of its code: ``penstock.toml``, environment variables, command line."""

from penstock.app.config.effective import Configured, Effective, Part, configured
from penstock.app.config.environment import from_environment
from penstock.app.config.flags import from_flags
from penstock.app.config.given_values import APP, Given, Names
from penstock.app.config.toml_file import from_file

__all__ = [
    "APP",
    "Configured",
    "Effective",
    "Given",
    "Names",
    "Part",
    "configured",
    "from_environment",
    "from_file",
    "from_flags",
]
