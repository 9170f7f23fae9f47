"""mode="share": members of a share group, Kafka's queues. A preview, as the client says of its part."""

from penstock.engine.share.share_member import ShareMember

__all__ = ["ShareMember"]
