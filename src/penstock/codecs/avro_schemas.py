"""Properties of Avro schemas in fastavro's parsed form."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

NUMBERS = ("int", "long", "float", "double")


def kind_of(schema: Any) -> str:
    """Return ``record``, ``union``, ``string``... or the name of a type that is defined elsewhere."""
    if isinstance(schema, list):
        return "union"
    return kind_of(schema["type"]) if isinstance(schema, Mapping) else str(schema)


def described(schema: Any) -> str:
    """Return the name of a type for error messages."""
    if isinstance(schema, list):
        return " or ".join(map(described, schema))
    if not isinstance(schema, Mapping):
        return str(schema)
    kind = str(schema.get("logicalType") or kind_of(schema))
    return f"{kind} {schema['name']}" if "name" in schema else kind


def as_json(schema: Any) -> str:
    """Return the schema as JSON for other libraries, without the keys that fastavro adds."""
    return json.dumps(_without_private_keys(schema))


def _without_private_keys(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {name: _without_private_keys(each) for name, each in schema.items() if not name.startswith("__")}
    return [_without_private_keys(each) for each in schema] if isinstance(schema, list) else schema


def named_types(schema: Any) -> dict[str, Any]:
    """Return the types that the schema defines, by name."""
    return {str(each["name"]): each for each in _types(schema) if isinstance(each, Mapping) and "name" in each}


def names_of(raw: Any) -> list[str]:
    """Return the full names that other schemas can use for an unparsed schema."""
    if not isinstance(raw, Mapping) or "name" not in raw:
        return []
    name, space = str(raw["name"]), raw.get("namespace")
    return [f"{space}.{name}"] if space and "." not in name else [name]


def resolved(schema: Any, names: Mapping[str, Any]) -> Any:
    return names.get(schema, schema) if isinstance(schema, str) else schema


def is_recursive(schema: Any) -> bool:
    """Whether a type of the schema contains itself, so that values can be nested to any depth."""
    names = named_types(schema)
    return any(_reaches(name, inner, names, set()) for name, inner in names.items())


def _reaches(name: str, schema: Any, names: Mapping[str, Any], seen: set[str]) -> bool:
    for inner in _inner(schema):
        if isinstance(inner, str):
            if inner == name:
                return True
            if inner in names and inner not in seen:
                seen.add(inner)
                if _reaches(name, names[inner], names, seen):
                    return True
        elif _reaches(name, inner, names, seen):
            return True
    return False


def smallest(schema: Any, names: Mapping[str, Any], inside: tuple[str, ...] = ()) -> int:
    """Return how many bytes a value takes at least; callers only compare it with 0."""
    schema = resolved(schema, names)
    kind = kind_of(schema)
    if kind == "null":
        return 0
    if kind == "fixed":
        return int(schema["size"])
    if kind == "record":
        name = str(schema.get("name"))
        if name in inside:  # a union or array around it ends the recursion, and takes a byte
            return 0
        return sum(smallest(each["type"], names, (*inside, name)) for each in schema["fields"])
    return 1


def _types(schema: Any) -> Iterator[Any]:
    found = [schema]
    while found:
        each = found.pop()
        yield each
        found.extend(_inner(each))


def _inner(schema: Any) -> list[Any]:
    if isinstance(schema, list):
        return list(schema)
    if not isinstance(schema, Mapping):
        return []
    inner = [field["type"] for field in schema.get("fields", ())]
    inner += [schema[part] for part in ("items", "values") if part in schema]
    if not isinstance(schema["type"], str):
        inner.append(schema["type"])
    return inner


def arrays_in(schema: Any) -> Iterator[Mapping[str, Any]]:
    return (each for each in _types(schema) if isinstance(each, Mapping) and kind_of(each) == "array")
