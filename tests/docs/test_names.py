"""A binding says what it holds: no variable, parameter, function or class has a name that fits everything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    "common",
    "scheduler",
    "executor",
    "minute8",
    "scripts",
    "examples",
    "tests",
)
# Pronouns, participles and adverbs. They leave the reader to look up what the binding holds.
EMPTY_NAMES = frozenset(
    [
        "asked",
        "begun",
        "came",
        "found",
        "given",
        "gone",
        "here",
        "it",
        "left",
        "lost",
        "made",
        "mine",
        "one",
        "ones",
        "others",
        "ours",
        "said",
        "some",
        "taken",
        "that",
        "the",
        "theirs",
        "there",
        "these",
        "thing",
        "things",
        "this",
        "those",
        "told",
        "wanted",
        "what",
        "which",
        "whole",
    ]
)
# `w` was the name of every test's world.
EMPTY_LETTERS = frozenset("lw")
# A bound is named by what it bounds and by its unit: MAX_RETRIED_RECORDS, not MOST.
EMPTY_CONSTANT = re.compile(
    r"_?(MOST|LONGEST|SHORTEST|FEWEST|LEAST|SHOWN|PARTS|TRIES|GIVEN|TAKEN|KEPT|AT_ONCE)(_[A-Z]+)*"
)


# Fields of the API's bodies. Public words do not change.
PUBLIC_FIELDS = frozenset(["found", "left", "others", "wanted"])


def is_public(name: str, path: Path) -> bool:
    """Whether the name is a field in a file that declares bodies of the API."""
    is_of_the_api = (
        path.is_relative_to(ROOT / "minute8" / "api" / "shapes")
        or path == ROOT / "minute8" / "client" / "shapes.py"
    )
    return is_of_the_api and name in PUBLIC_FIELDS


def bindings(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Each name that the module binds, and its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield name, node.lineno


def says_nothing(name: str) -> bool:
    bare = name.strip("_").lower()
    if name.isupper() and len(name) > 1:
        return bool(EMPTY_CONSTANT.fullmatch(name))
    return bare in EMPTY_NAMES or bare in EMPTY_LETTERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_binding_says_what_it_holds(folder: str) -> None:
    """For one folder: `pytest tests/docs/test_names.py -k cli`."""
    empty = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name, line in bindings(ast.parse(path.read_text()))
        if says_nothing(name) and not is_public(name, path)
    ]
    assert empty == []


# Biome has no rule about the words of names: parameters, constants and members of loops, by their spelling.
TYPESCRIPT_BINDING = re.compile(
    r"\b(?:const|let) (?:it|ones?|things?|those|what)(?: [oi][fn] |[;,])|\b(?:ones?|things?|those|what)\.\w"
    r"|\b(?:it|ones?|things?|those|what)(?:(?:, \w+)*[\])]* =>?(?: |$)|\??: \w[^ ]*[,;)])"
)


@pytest.mark.parametrize("folder", ["console/src", "console/tests", "clients/typescript"])
def test_bindings_of_typescript_say_what_they_hold(folder: str) -> None:
    empty = [
        f"{path.relative_to(ROOT)}:{number} {empty_name[0]}"
        for path in sorted((ROOT / folder).rglob("*.ts*"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (empty_name := TYPESCRIPT_BINDING.search(line))
    ]
    assert empty == []
