"""Resources: what handlers need besides the record, such as a database pool.

This package reads their declarations, finds out which handler needs which, and makes and closes them.
"""

from penstock.app.resources.open_resources import AsyncResources, OpenResources
from penstock.app.resources.partition_resources import AsyncPartitionResources, PartitionResources
from penstock.app.resources.resource import Resource, Scope, never_closed, read_resource, resource_error
from penstock.app.resources.resource_graph import check_resources, needed_by

__all__ = [
    "AsyncPartitionResources",
    "AsyncResources",
    "OpenResources",
    "PartitionResources",
    "Resource",
    "Scope",
    "check_resources",
    "needed_by",
    "never_closed",
    "read_resource",
    "resource_error",
]
