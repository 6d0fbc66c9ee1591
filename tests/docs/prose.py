"""The sentences of a Markdown document, and the docstrings of a Python file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_LIST = re.compile(r"(?:[-*]|\d+\.) +")
_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`]*[A-Z0-9`])")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|No)\.")


def plain(markdown: str) -> str:
    """Inline Markdown as it is read: code is one word, a link is its text."""
    text = re.sub(r"`[^`]*`", "Code", markdown)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"<br>|\*\*|(?<!\w)_|_(?!\w)", " ", text)
    return _ABBREVIATION.sub(lambda match: match[0].replace(".", ""), text)


def without_code(markdown: str) -> str:
    """The document without its code blocks; their lines stay, empty."""
    return re.sub(r"^```.*?^```", lambda block: "\n" * block[0].count("\n"), markdown, flags=re.M | re.S)


def sentences(block: str) -> list[str]:
    return [part.strip() for part in _END.split(plain(block)) if re.search(r"\w", part)]


def words(sentence: str) -> int:
    return len([word for word in sentence.split() if re.search(r"\w", word)])


def paragraphs(markdown: str) -> Iterator[str]:
    """Paragraphs and list items; no headings, tables or code."""
    block: list[str] = []
    for line in [*without_code(markdown).splitlines(), ""]:
        text = line.strip()
        begins = _LIST.match(text)
        if not text or begins or text.startswith(("#", "|", "![", "<")):
            if block:
                yield " ".join(block)
            block = []
        if text and not text.startswith(("#", "|", "![", "<")):
            block.append(_LIST.sub("", text, count=1) if begins else text)


def cells(markdown: str) -> Iterator[str]:
    """The cells of all tables."""
    for line in without_code(markdown).splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|\s:-]+", line):
            yield from re.split(r"(?<!\\)\|", line.strip("| "))


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line numbers and texts of the docstrings of a Python file's public classes and functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        if text := ast.get_docstring(node):
            yield node.lineno, text
