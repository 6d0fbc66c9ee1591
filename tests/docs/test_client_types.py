"""The client's types and methods are those of the routes."""

from __future__ import annotations

import inspect

from minute8.api.app import ROUTES
from minute8.client import Client, Operator
from scripts import client_operations, client_types, console_fields


def test_the_committed_types_are_generated_from_the_document() -> None:
    assert client_types.OUTPUT.read_text() == client_types.generated(), "run: python -m scripts.client_types"


def test_the_committed_boxes_of_the_editor_are_generated_from_the_declaration() -> None:
    assert console_fields.OUTPUT.read_text() == console_fields.generated(), (
        "run: python -m scripts.console_fields"
    )


def test_the_committed_methods_are_generated_from_the_routes() -> None:
    expected = client_operations.generated()
    assert client_operations.OUTPUT.read_text() == expected, "run: python -m scripts.client_operations"


def test_each_operation_has_a_method_with_its_name_and_its_path_s_ids() -> None:
    for route, handler in ROUTES.items():
        if route.path == "/v1/openapi.json":
            continue
        method = getattr(Operator if route.role == "operator" else Client, handler.__name__)
        parameters = inspect.signature(method.__wrapped__).parameters
        assert set(route.parameters) <= parameters.keys(), handler.__name__
