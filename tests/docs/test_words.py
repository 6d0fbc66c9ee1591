"""Short sentences and lines in the documents, short sentences in public docstrings."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.tables import TABLES
from tests.docs.prose import cells, docstrings, paragraphs, sentences, without_code, words

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    path
    for folder, pattern in (
        (".", "*.md"),
        ("docs", "**/*.md"),
        ("scripts/benchmarks/about", "*.md"),
        ("tests/foreign", "*.md"),
        ("tests/simulation", "*.md"),
    )
    for path in (ROOT / folder).glob(pattern)
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
FOLDERS = (
    "common",
    "scheduler",
    "executor",
    "minute8",
    "scripts",
    "examples",
    "tests",
)
AVERAGE_WORDS, MAX_WORDS, LINE_CHARS = 18, 40, 120
# All pages, without tables that are generated: by scripts/tables.py, and by the benchmarks. A change that needs more
# raises this on purpose.
MAX_WORDS_OF_DOCS = 50_000


def short(sentence: str) -> str:
    return sentence if len(sentence) < 100 else f"{sentence[:97]}…"


@pytest.mark.parametrize("name", NAMES)
def test_sentences_are_short(name: str) -> None:
    text = (ROOT / name).read_text()
    prose = [sentence for block in paragraphs(text) for sentence in sentences(block)]
    everything = [*prose, *(sentence for cell in cells(text) for sentence in sentences(cell))]
    assert [short(sentence) for sentence in everything if words(sentence) > MAX_WORDS] == []
    if len(prose) >= 5:
        assert sum(map(words, prose)) / len(prose) <= AVERAGE_WORDS


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_prose_are_short(name: str) -> None:
    lines = enumerate(without_code((ROOT / name).read_text()).splitlines(), 1)
    long = [number for number, line in lines if len(line) > LINE_CHARS and not line.startswith("|")]
    assert long == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_sentences_of_public_docstrings_are_short(folder: str) -> None:
    long = {
        f"{path.relative_to(ROOT)}:{line}": short(sentence)
        for path in (ROOT / folder).rglob("*.py")
        for line, text in docstrings(path)
        for block in paragraphs(text)
        for sentence in sentences(block)
        if words(sentence) > MAX_WORDS
    }
    assert long == {}


def test_the_pages_do_not_grow_unnoticed() -> None:
    pages = (ROOT / "docs").rglob("*.md")
    generated = sum(words(row) for table in TABLES.values() for rows in table().values() for row in rows)
    for name in ("performance.md", "capacity.md"):
        lines = (ROOT / "docs" / name).read_text().splitlines()
        generated += sum(words(line) for line in lines if line.startswith("|"))
    assert sum(words(page.read_text()) for page in pages) - generated <= MAX_WORDS_OF_DOCS


def test_the_check_sees_what_it_is_for() -> None:
    long = " ".join(["word"] * (MAX_WORDS + 1)) + "."
    (sentence,) = [part for block in paragraphs(f"# Title\n\n- {long}\n") for part in sentences(block)]
    assert words(sentence) == MAX_WORDS + 1
    assert [
        sentences(block) for block in paragraphs("One `a. B` two. Three (e.g. four)\nfive.\n\n| x |")
    ] == [["One Code two.", "Three (eg four) five."]]
    assert list(cells("| a | b c |\n| --- | --- |")) == ["a ", " b c"]
    assert without_code("a\n```\nlong\n```\nb").splitlines() == ["a", "", "", "", "b"]
