"""The options of an app from outside of its code: a file, the environment, the command line."""

from penstock.app.configuring.applying import Configured, Effective, Part, configured
from penstock.app.configuring.environment import from_environment
from penstock.app.configuring.file import from_file
from penstock.app.configuring.flags import from_flags
from penstock.app.configuring.given import Given

__all__ = [
    "Configured",
    "Effective",
    "Given",
    "Part",
    "configured",
    "from_environment",
    "from_file",
    "from_flags",
]
