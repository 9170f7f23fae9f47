"""The Spark schema of a JSON Schema, with its types and required fields, so that Spark itself reads the JSON.

Spark cannot express ranges, patterns and alternatives, so nothing checks them.
"""

import json
from collections.abc import Mapping
from typing import Any

from penstock.app.pipelines.spark_schema import Shape
from penstock.errors import ConfigError

_SCALARS = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}
_VARIANT = "variant"


def json_shape(text: str) -> Shape:
    content = json.loads(text)
    schema = _Reader(content).type(content)
    if not isinstance(schema, dict) or schema["type"] != "struct":
        raise ConfigError(
            "JsonSchema: the schema has no properties for columns.",
            hint='Give it "type": "object" and "properties", or read the values with value=dict.',
        )
    return Shape(schema, {})


class _Reader:
    """Walks through a schema. ``inside`` are the references that lead to the current part."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def type(self, schema: Any, inside: tuple[str, ...] = ()) -> Any:
        """The Spark type of a schema; VARIANT if the schema allows several types."""
        schema, inside = self._followed(schema, inside)
        kinds = _kinds(schema)
        if len(kinds) != 1:
            return _VARIANT
        if kinds == {"array"}:
            items = schema.get("items", True)
            return {"type": "array", "elementType": self.type(items, inside), "containsNull": self._may_be_null(items)}
        return self._object(schema, inside) if kinds == {"object"} else _SCALARS.get(kinds.pop(), _VARIANT)

    def _object(self, schema: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
        fields, required = schema.get("properties"), schema.get("required", ())
        if fields:
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": name,
                        "type": self.type(inner, inside),
                        "nullable": name not in required or self._may_be_null(inner),
                        "metadata": {},
                    }
                    for name, inner in fields.items()
                ],
            }
        values = schema.get("additionalProperties")
        if not isinstance(values, Mapping):
            return _VARIANT
        inner = self.type(values, inside)
        nulls = self._may_be_null(values)
        return {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": nulls}

    def _may_be_null(self, schema: Any) -> bool:
        schema, _ = self._followed(schema, ())
        said = schema.get("type") if isinstance(schema, Mapping) else None
        return said is None or said == "null" or (isinstance(said, list) and "null" in said)

    def _followed(self, schema: Any, inside: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
        """The target of a reference within the schema. A circle, or a reference to elsewhere, allows any value."""
        while isinstance(schema, Mapping) and "$ref" in schema:
            name = str(schema["$ref"])
            if name in inside or not name.startswith("#/"):
                return True, inside
            inside = (*inside, name)
            schema = self._root
            for part in name[2:].split("/"):
                schema = schema.get(part, True) if isinstance(schema, Mapping) else True
        return schema, inside


def _kinds(schema: Any) -> set[str]:
    """The JSON types that the schema allows, without null; empty if it names none."""
    if not isinstance(schema, Mapping):
        return set()
    said = schema.get("type", "object" if "properties" in schema else [])
    return {said} - {"null"} if isinstance(said, str) else set(said) - {"null"}
