"""From a record's bytes to what a handler's type hint asks for, and back."""

from penstock.serde.decoding import Decode, decoder_for
from penstock.serde.encoding import encode

__all__ = ["Decode", "decoder_for", "encode"]
