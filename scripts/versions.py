"""The published versions of a stage's functions, and the alias by which they are called (deploy/live.js).

All versions of one deployment have its digest as their description.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from common.config import LIVE
from minute8.cli.doctor.inventory import FUNCTIONS

# The last few deployments can be gone back to.
MAX_VERSIONS: Final = 6
# An older executor may not read what newer ones write, so what writes goes back before it.
_WRITERS_FIRST: Final = sorted(FUNCTIONS, key=lambda function: function == "executor")


class Version(NamedTuple):
    """A published version of a function."""

    number: int
    deployment: str


def published(functions: Any, name: str) -> list[Version]:
    """Versions of a function of this full name, the oldest first; empty without the function."""
    pages = functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
    try:
        listed = [version for page in pages for version in page["Versions"]]
    except functions.exceptions.ResourceNotFoundException:
        return []
    return sorted(
        Version(int(version["Version"]), version.get("Description", ""))
        for version in listed
        if version["Version"].isdigit()
    )


def live(functions: Any, name: str) -> int:
    """The number of the version that is called; 0 if the function has no alias."""
    try:
        return int(functions.get_alias(FunctionName=name, Name=LIVE)["FunctionVersion"])
    except functions.exceptions.ResourceNotFoundException:
        return 0


def go_back(functions: Any, stage: str) -> str:
    """Move all aliases to the deployment before the one that is called; returns its digest. Raises LookupError."""
    executor = f"minute8-{stage}-executor"
    current = live(functions, executor)
    older = [version for version in published(functions, executor) if version.number < current]
    if not older:
        raise LookupError("no published version is before the one that runs")
    moves: dict[str, int] = {}
    for function in _WRITERS_FIRST:
        name = f"minute8-{stage}-{function}"
        current = live(functions, name)
        numbers = [
            version.number
            for version in published(functions, name)
            if version.number < current and version.deployment == older[-1].deployment
        ]
        if numbers:
            moves[name] = max(numbers)
    _move(functions, moves)
    return older[-1].deployment


def go_forward(functions: Any, stage: str, deployment: str) -> bool:
    """Move all aliases to the deployment of this digest; returns whether any was elsewhere.

    A deployment that changes nothing moves no alias, also where `go_back` has moved it.
    """
    moves: dict[str, int] = {}
    for function in reversed(_WRITERS_FIRST):
        name = f"minute8-{stage}-{function}"
        numbers = [
            version.number for version in published(functions, name) if version.deployment == deployment
        ]
        if numbers and live(functions, name) != max(numbers):
            moves[name] = max(numbers)
    _move(functions, moves)
    return bool(moves)


def prune(functions: Any, stage: str) -> int:
    """Delete versions that are neither called nor among the last few; returns how many. They count as storage."""
    deleted = 0
    for function in FUNCTIONS:
        name = f"minute8-{stage}-{function}"
        called = live(functions, name)
        for version in published(functions, name)[:-MAX_VERSIONS]:
            if version.number != called:
                functions.delete_function(FunctionName=name, Qualifier=str(version.number))
                deleted += 1
    return deleted


@contextmanager
def changed(functions: Any, name: str, **configuration: Any) -> Iterator[None]:
    """Call a function with this configuration during the block, and as before after it.

    No version is left: a rollback would take one of the same deployment for an earlier one.
    """
    former = functions.get_function_configuration(FunctionName=name)
    called, version = live(functions, name), 0
    try:
        _configure(functions, name, configuration)
        version = int(functions.publish_version(FunctionName=name)["Version"])
        _move(functions, {name: version})
        yield
    finally:
        _configure(functions, name, {field: former[field] for field in configuration})
        _move(functions, {name: called})
        # Lambda publishes nothing where nothing has changed.
        if version not in (0, called):
            functions.delete_function(FunctionName=name, Qualifier=str(version))


def _configure(functions: Any, name: str, configuration: Mapping[str, Any]) -> None:
    functions.update_function_configuration(FunctionName=name, **configuration)
    functions.get_waiter("function_updated_v2").wait(FunctionName=name, WaiterConfig={"Delay": 1})


def _move(functions: Any, moves: Mapping[str, int]) -> None:
    for name, number in moves.items():
        functions.update_alias(FunctionName=name, Name=LIVE, FunctionVersion=str(number))
