"""The client's types are those of the OpenAPI document."""

from __future__ import annotations

from scripts.client_types import OUTPUT, generated


def test_the_committed_types_are_generated_from_the_document() -> None:
    assert OUTPUT.read_text() == generated(), "run: python -m scripts.client_types"
