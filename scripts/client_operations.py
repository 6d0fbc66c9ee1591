"""Write the Python client's methods from the routes: `python -m scripts.client_operations`.

A method is called as its route's handler. Routes with a cursor become two methods: `list_x` yields the entries of all
pages, `list_x_page` has one. What needs more than a request is written in minute8/client/jobs.py and runs.py.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any, Final

from common.platform.api_keys import OPERATOR
from minute8.api.app import ROUTES
from minute8.api.http.openapi import document
from minute8.api.http.routing import NDJSON, Handler, Route
from minute8.client import operations
from scripts import client_types
from scripts.client_types import CALLED, formatted, type_of

OUTPUT: Final = Path(__file__).resolve().parents[1] / "minute8" / "client" / "generated.py"
# Bodies that a caller passes in one piece, by the parameter's name. The fields of others are parameters.
_WHOLE: Final = {
    "NewJob": "definition",
    "JobPatch": "changes",
    "NewCalendar": "calendar",
    "NewSubscription": "subscription",
    "NewTenant": "settings",
    "TenantPatch": "changes",
    "NewBackfill": "backfill",
}
# The id in a body of these, where the path has none.
_IDS: Final = {"NewJob": "job_id", "NewTenant": "tenant_id"}
# Of pages with several lists, the one that goes on; pages that only make sense in one piece.
_ENTRIES: Final = {"Overview": "tenants"}
_WHOLE_PAGES: Final = frozenset(
    {"RunSummary", "ExpectedOfJob", "ExpectedPage", "PlatformDensity", "RebuiltRuns"}
)
# Their lists are merged by hand.
_MERGED: Final = frozenset({"list_runs", "list_failure_groups"})
_TYPES: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "Json"}
_HEAD: Final = '''"""The operations of the API, one method each.

Generated from the routes by `python -m scripts.client_operations`; a test holds that it is up to date.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from minute8.client.operations import *
from minute8.client.shapes import *
'''
_WIDTH: Final = 110


def generated() -> str:
    """The module's text."""
    schemas = document(ROUTES)["components"]["schemas"]
    tenant, platform = "", ""
    for route, handler in ROUTES.items():
        if NDJSON in (route.body_type, route.response_type) or handler.__name__ == "get_openapi":
            continue
        text = _Method(route, handler, schemas).text()
        if route.role == OPERATOR:
            platform += text
        else:
            tenant += text
    text = f'{_HEAD}\n\nclass TenantOperations:\n    """What a tenant\'s keys may call."""\n{tenant}'
    text += f'\n\nclass PlatformOperations:\n    """What an operator\'s keys may call."""\n{platform}'
    return formatted(_with_imports(text), OUTPUT)


def _with_imports(text: str) -> str:
    """The text with the names that it uses in the place of stars."""
    types = set(client_types.classes())
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    for module, names in (("operations", set(vars(operations))), ("shapes", types)):
        imported = ", ".join(sorted((used & names) - {"Any"}))
        text = text.replace(
            f"from minute8.client.{module} import *", f"from minute8.client.{module} import ({imported})"
        )
    return text


class _Method:
    """The methods of a route."""

    def __init__(self, route: Route, handler: Handler, schemas: dict[str, Any]) -> None:
        self.route, self.name, self.schemas = route, handler.__name__, schemas
        self.doc = inspect.getdoc(handler) or ""
        self.answer = schemas[route.response]["properties"] if route.response else {}
        self.query = [query.name for query in route.query]
        # Parameters by how they are passed, and the fields of the body.
        self.required: list[str] = [f"{name}: str" for name in route.parameters]
        self.optional: list[str] = []
        self.sent: list[str] = []
        self.body = ""
        if route.body:
            self._take_body()
        self.flags = self._filters()
        if "cursor" not in self.query:
            self.optional += [flag for flag in self.flags if not flag.endswith("False")]
            self.flags = [flag for flag in self.flags if flag.endswith("False")]

    def text(self) -> str:
        if "cursor" in self.query:
            page = self._operation(f"{self.name}_page", f"A page of it.\n\n{self.doc}")
            return page if self.name in _MERGED else page + self._listing()
        if self.route.response == "ManyDone":
            return self._many()
        return self._operation(self.name, self.doc)

    def _take_body(self) -> None:
        body = self.schemas[self.route.body]
        needed = body.get("required", [])
        if parameter := _WHOLE.get(self.route.body):
            self._take_whole(parameter, needed)
            return
        nullable: list[str] = []
        for name, schema in body["properties"].items():
            kind = self._kind(schema)
            if name in needed:
                self.required.append(f"{name}: {kind}")
            elif kind == "Any":
                self.optional.append(f"{name}: Any = UNSET")
                nullable.append(f' | ({{}} if {name} is UNSET else {{"{name}": {name}}})')
                continue
            else:
                self.optional.append(
                    f"{name}: bool = False" if kind == "bool" else f"{name}: {kind} | None = None"
                )
            self.sent.append(f"{name}={name}")
        self.body = f"fields_of({', '.join(self.sent)}){''.join(nullable)}"

    def _take_whole(self, parameter: str, needed: list[str]) -> None:
        self.body = parameter
        key = _IDS.get(self.route.body, "")
        if not key or key in self.route.parameters:
            self.required.append(f"{parameter}: Json")
        elif key in needed:
            self.required.append(f"{key}: str")
            self.optional.append(f"{parameter}: Json | None = None")
            self.body = f'{{**({parameter} or {{}}), "{key}": {key}}}'
        else:
            self.required.append(f"{parameter}: Json")
            self.optional.append(f"{key}: str | None = None")
            self.body = f"{{**{parameter}, **fields_of({key}={key})}}"

    def _kind(self, schema: dict[str, Any]) -> str:
        """What a parameter takes: words are plain texts."""
        if "$ref" in schema:
            target = self.schemas[str(schema["$ref"]).rpartition("/")[2]]
            return self._kind(target)
        kinds = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
        if len(kinds) != 1:
            return "Json" if all("$ref" in part or part.get("type") == "object" for part in kinds) else "Any"
        if kinds[0] is not schema:
            return self._kind(kinds[0])
        if schema.get("type") == "array":
            return f"Sequence[{self._kind(schema['items'])}]"
        if "enum" in schema or "const" in schema:
            return "str"
        return _TYPES.get(str(schema.get("type")), "Any")

    def _path(self) -> str:
        parts = self.route.path.split("/")[2:]
        return f"path_of({', '.join(part[1:-1] if part[:1] == '{' else repr(part) for part in parts)})"

    def _filters(self, leave_out: tuple[str, ...] = ()) -> list[str]:
        """The parameters of the query."""
        return [
            f"{query.name}: bool = False"
            if query.schema["type"] == "boolean"
            else f"{query.name}: {_TYPES[query.schema['type']]} | None = None"
            for query in self.route.query
            if query.name not in leave_out
        ]

    def _signature(self, name: str, keywords: list[str], result: str) -> str:
        with_revision = ["revision: int | None = None"] if self.route.if_match else []
        parameters = ["self", *self.required, *self.optional, *with_revision]
        parameters += ["*", *keywords] if keywords else []
        return f"def {name}({', '.join(parameters)}) -> {result}:\n"

    def _result(self) -> tuple[str, str]:
        """The type of what a method returns, and of which field of the answer that is. One field is the answer."""
        if not self.route.response:
            return "None", ""
        if len(self.answer) == 1:
            (field,) = self.answer
            return type_of(self.answer[field], self.schemas), field
        return CALLED.get(self.route.response, self.route.response), ""

    def _operation(self, name: str, doc: str) -> str:
        result, field = self._result()
        keywords = list(self.flags)
        arguments = [repr(self.route.method), self._path()]
        if self.body:
            arguments.append(f"body={self.body}")
        if self.route.if_match:
            arguments.append("revision=revision")
        if self.query:
            arguments.append(f"query=fields_of({', '.join(f'{name}={name}' for name in self.query)})")
        if self.route.if_none_match:
            keywords.append("only_new: bool = False")
            arguments.append("only_new=only_new")
        if self.route.idempotency_key:
            arguments.append("key=str(uuid.uuid4())")
        elif not self.route.repeatable:
            arguments.append(f"repeatable={self._is_repeatable()}")
        if field:
            arguments.append(f"shape=field_of({field!r})")
        signature = self._signature(name, keywords, f"Request[{result}]")
        return _method("Operation", signature, doc, f"return Request({', '.join(arguments)})")

    def _is_repeatable(self) -> str:
        fields = self.schemas[self.route.body]["properties"] if self.route.body else {}
        if "nonce" in fields:
            return "nonce is not None"
        return f"bool({self.body}.get('dry_run'))" if "dry_run" in fields else "False"

    def _listing(self) -> str:
        of = _ENTRIES.get(self.route.response) or next(
            (name for name, schema in self.answer.items() if schema.get("type") == "array"), ""
        )
        filters = [name for name in self.query if name not in ("limit", "cursor")]
        limits = [f"limit={query.schema['maximum']}" for query in self.route.query if query.name == "limit"]
        query = f"fields_of({', '.join([*limits, *(f'{name}={name}' for name in filters)])})"
        keywords = self._filters(("limit", "cursor"))
        if self.route.response in _WHOLE_PAGES:
            result, of = CALLED.get(self.route.response, self.route.response), ""
            call = f"whole_pages({self.route.method!r}, {self._path()}, {query})"
            doc = "All pages, each when it is consumed."
        else:
            result = type_of(self.answer[of]["items"], self.schemas)
            call = f"entries_of({self._path()}, {of!r}, {query})"
            doc = "All entries, page by page while they are consumed."
        signature = self._signature(self.name, keywords, f"ListSteps[{result}]")
        return _method("Listing", signature, f"{doc}\n\n{self.doc}", f"return {call}")

    def _many(self) -> str:
        """A method that repeats its request until all is done."""
        fields = [field for field in self.required + self.optional if not field.startswith("cursor:")]
        sent = [field for field in self.sent if not field.startswith("cursor=")]
        sent = [f"{field} or uuid.uuid4().hex" if field.startswith("nonce=") else field for field in sent]
        self.required, self.optional = [], []
        signature = self._signature(self.name, fields, "Steps[ManyDone]")
        doc = f"{self.doc}\n\nIn as many requests as needed."
        return _method(
            "Operation", signature, doc, f"return all_of({self._path()}, fields_of({', '.join(sent)}))"
        )


def _method(decorator: str, signature: str, doc: str, body: str) -> str:
    paragraphs = [
        textwrap.fill(" ".join(part.split()), _WIDTH - 8, break_long_words=False, break_on_hyphens=False)
        for part in doc.strip().split("\n\n")
    ]
    text = textwrap.indent("\n\n".join(paragraphs), "    ").strip()
    quotes = f'"""{text}\n    """' if "\n" in text else f'"""{text}"""'
    return textwrap.indent(f"\n@{decorator}\n{signature}    {quotes}\n    {body}\n", "    ")


if __name__ == "__main__":
    OUTPUT.write_text(generated())
