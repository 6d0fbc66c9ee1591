"""The code that a benchmark measures: a figure of other code than today's is old, and `make release` refuses it."""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# Ours, without what only writes results and documents.
_OWN: Final = ("common", "scheduler", "executor", "minute8", "scripts.benchmarks")
_HANDLERS: Final = tuple(
    f"{function}.handler" for function in ("scheduler", "executor", "minute8.api", "minute8.notifier")
)
# What runs in other processes than the benchmark's own, which names it in no import.
_STARTED: Final = {
    "cold_start": _HANDLERS,
    "direct": _HANDLERS,
    "lateness": _HANDLERS,
    "model_check": _HANDLERS,
    "reading": ("minute8.api.handler",),
    "strict_lateness": ("executor.handler",),
}


def digest(benchmark: str) -> str:
    """Of all modules that the benchmark runs, also of those that it imports late."""
    files = modules((f"scripts.benchmarks.{benchmark}", *_STARTED.get(benchmark, ())))
    names = sorted(file.relative_to(ROOT).as_posix() for file in files)
    content = b"".join(f"{name}\n".encode() + (ROOT / name).read_bytes() for name in names)
    return hashlib.sha256(content).hexdigest()[:16]


def commit() -> str:
    """The commit that is checked out, with a + if files differ from it; empty: this is no clone."""
    words = ["git", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+"]
    named = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return named.stdout.strip()


def modules(names: Sequence[str]) -> set[Path]:
    """The files of these modules of ours, and of all that they import, wherever in their text."""
    files, waiting = set[Path](), list(names)
    while waiting:
        file = _file(waiting.pop())
        if file and file not in files:
            files.add(file)
            waiting += _imported(file)
    return files


@cache
def _imported(file: Path) -> tuple[str, ...]:
    return tuple(_names_in(ast.parse(file.read_text())))


def _names_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _file(module: str) -> Path | None:
    if not f"{module}.".startswith(tuple(f"{own}." for own in _OWN)):
        return None
    path = ROOT / module.replace(".", "/")
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
