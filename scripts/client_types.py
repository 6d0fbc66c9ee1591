"""Write the client's types from the OpenAPI document: `python -m scripts.client_types`.

A generator of our own: existing ones install a dozen packages. What a client writes (schemas without further fields)
stays a plain dict: the API validates it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from minute8.api.app import ROUTES
from minute8.api.http.openapi import document
from minute8.api.http.routing import JSON

OUTPUT: Final = Path(__file__).resolve().parents[1] / "minute8" / "client" / "shapes.py"
CALLED: Final = {"KeyView": "Key"}
_HEAD: Final = '''"""What the API answers, as it comes: an answer of a newer API may hold more.

Generated from the OpenAPI document by `python -m scripts.client_types`; a test holds that it is up to date.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
_PLAIN: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def generated() -> str:
    """The module's text."""
    return formatted(_HEAD + "".join(f"\n\n{text}" for text in classes().values()), OUTPUT)


def formatted(text: str, path: Path) -> str:
    """The text of a generated module, with its imports sorted, as ruff formats it."""
    for arguments in (("check", "--fix", "--quiet", "--select", "I"), ("format",)):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(path), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return text


def classes() -> dict[str, str]:
    """The texts of the classes by their names: what the routes answer, and what that refers to."""
    schemas = document(ROUTES)["components"]["schemas"]
    texts: dict[str, str] = {}
    for route in ROUTES:
        if "properties" in schemas.get(route.response, {}) and route.response_type == JSON:
            _write(route.response, schemas, texts)
    return texts


def type_of(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """The Python type of a part of an answer."""
    return _type(schema, schemas, {})


def _write(name: str, schemas: dict[str, Any], classes: dict[str, str]) -> None:
    """Add the class of a schema after those that it refers to."""
    called = CALLED.get(name, name)
    if called in classes:
        return
    schema = schemas[name]
    lines = [f"class {called}(TypedDict):", f'    """{schema["description"]}"""', ""]
    for field, value in schema["properties"].items():
        text = _type(value, schemas, classes)
        if field not in schema.get("required", ()):  # the API leaves such fields out instead of sending null
            text = f"NotRequired[{text.removesuffix(' | None')}]"
        lines.append(f"    {field}: {text}")
    classes[called] = "\n".join(lines) + "\n"


def _type(schema: dict[str, Any], schemas: dict[str, Any], classes: dict[str, str]) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        if "properties" not in schemas[name]:
            return "Any"
        if schemas[name].get("additionalProperties") is False:
            return "dict[str, Any]"
        _write(name, schemas, classes)
        return CALLED.get(name, name)
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(_type(shape, schemas, classes) for shape in several))
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    kind = schema.get("type")
    if kind == "array" and "prefixItems" in schema:
        return f"tuple[{', '.join(_type(item, schemas, classes) for item in schema['prefixItems'])}]"
    if kind == "array":
        return f"list[{_type(schema['items'], schemas, classes)}]"
    if kind == "object":
        values = schema.get("additionalProperties", True)
        return f"dict[str, {_type(values, schemas, classes) if isinstance(values, dict) else 'Any'}]"
    return _PLAIN.get(str(kind), "Any")


if __name__ == "__main__":
    OUTPUT.write_text(generated())
