"""Why an engine or a share group does not support an option: the reasons that several options share."""

SHARE_HAS_NO_OFFSETS = "the broker tracks each record of a share group and keeps no offsets"
SHARE_ASSIGNS_ITSELF = "the broker assigns the partitions of a share group, each to several members"
