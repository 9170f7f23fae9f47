"""The options of ``App.consume``, each declared once: type, default, group, description, and support by engine.

Everything else about options follows from this table: the signature and the help of ``App.consume``, the check of
unknown names, what each engine refuses, what a file, a variable or a flag may say, and the tables in the docs.
To add an option, add it to its group in this package and as a field of ``Handler``.
"""

from penstock.app.options.all_options import (
    HANDLER_OPTIONS,
    OPTION_GROUPS,
    ConsumeOptions,
    refuse_unsupported,
    with_defaults,
)
from penstock.app.options.concurrency import Concurrency, RawField, Scale, WorkerKind
from penstock.app.options.consuming import Mode
from penstock.app.options.delivery import CommitMode, Delivery
from penstock.app.options.group_membership import SETTINGS

__all__ = [
    "HANDLER_OPTIONS",
    "OPTION_GROUPS",
    "SETTINGS",
    "CommitMode",
    "Concurrency",
    "ConsumeOptions",
    "Delivery",
    "Mode",
    "RawField",
    "Scale",
    "WorkerKind",
    "refuse_unsupported",
    "with_defaults",
]
