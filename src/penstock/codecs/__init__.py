"""Encodes and decodes Avro, JSON Schema and Protobuf, with a schema registry or without."""

from penstock.codecs.codec_factory import RECORDS, codec_of, decoder_of, prepare_formats, registry_checks

__all__ = ["RECORDS", "codec_of", "decoder_of", "prepare_formats", "registry_checks"]
