"""Plain words: short sentences and lines in the documents, and no phrase that was given up, in documents and code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.prose import cells, docstrings, paragraphs, remarks, sentences, without_code, words

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks" / "about").glob("*.md")]
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
FOLDERS = (
    "common",
    "scheduler",
    "executor",
    "notifier",
    "api",
    "canary",
    "cli",
    "minute8_client",
    "scripts",
    "benchmarks",
    "examples",
    "tests",
)
AVERAGE_WORDS, MAX_WORDS, LINE_CHARS = 18, 40, 120

# What was given up -> what to write.
GIVEN_UP = {
    r"whose job it is": "owns jobs",
    r"[Tt]he data's way": "how data flows",
    r"\b[Ww]ho is calling\b": "authentication",
    r"\b[Ss]ent again\b\.?$": "idempotent requests",
    r"\bwhat is told\b": "events",
    r"\bis none of the\b": "does not count towards",
    r"\bis no (?:name|note|role|state|quota|field|boolean|revision|key|object|address|parameter)\b": "must be a …",
    r"\bis of no tenant's\b": "belongs to no tenant",
    r"\bnone says which\b": "it is not clear which",
    r"\bheld against\b": "compared with",
    r"\bthe very (?:message|end)\b": "the same message",
    r"\bgoes on by itself\b": "continues",
    r"\bas it stands\b": "as it is",
    r"\bwhat is another's\b": "what belongs to another tenant",
    r"\b(?:told|tells?) of\b": "given, recorded, published, describes, lists",
    r"\b(?:is|are) told\b": "is given, is reported, is published",
    r"\bbehind (?:it|the (?:record|call|write))\b": "after",
    r"\bby hand runs\b": "manual runs",
    r"\b[Nn]obody else's\b": "no other …",
    r"\b[Ww]hoever\b": "anybody, the caller, the process that …",
    r"\bis made for good\b": "is final",
}


def found(text: str, phrases: dict[str, str]) -> list[str]:
    """Each given-up phrase that the text holds, and what to write."""
    flat = " ".join(text.split())
    return [
        f"{match[0]!r}: {better}" for phrase, better in phrases.items() if (match := re.search(phrase, flat))
    ]


def short(sentence: str) -> str:
    return sentence if len(sentence) < 100 else f"{sentence[:97]}…"


@pytest.mark.parametrize("name", NAMES)
def test_sentences_are_short(name: str) -> None:
    text = (ROOT / name).read_text()
    prose = [sentence for block in paragraphs(text) for sentence in sentences(block)]
    everything = [*prose, *(sentence for cell in cells(text) for sentence in sentences(cell))]
    assert [short(one) for one in everything if words(one) > MAX_WORDS] == []
    if len(prose) >= 5:
        assert sum(map(words, prose)) / len(prose) <= AVERAGE_WORDS


@pytest.mark.parametrize("name", NAMES)
def test_lines_of_prose_are_short(name: str) -> None:
    lines = enumerate(without_code((ROOT / name).read_text()).splitlines(), 1)
    long = [number for number, line in lines if len(line) > LINE_CHARS and not line.startswith("|")]
    assert long == []


@pytest.mark.parametrize("name", NAMES)
def test_a_document_uses_no_phrase_that_was_given_up(name: str) -> None:
    text = without_code((ROOT / name).read_text())
    blocks = [*paragraphs(text), *cells(text), *re.findall(r"^#+ (.*)", text, re.MULTILINE)]
    assert [one for block in blocks for one in found(block, GIVEN_UP)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_code_uses_no_phrase_that_was_given_up(folder: str) -> None:
    bad = {
        f"{path.relative_to(ROOT)}:{line}": phrases
        for path in (ROOT / folder).rglob("*.py")
        for line, text in remarks(path)
        if (phrases := found(text, GIVEN_UP))
    }
    assert bad == {}


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


def test_the_check_sees_what_it_is_for() -> None:
    long = " ".join(["word"] * (MAX_WORDS + 1)) + "."
    (sentence,) = [one for block in paragraphs(f"# Title\n\n- {long}\n") for one in sentences(block)]
    assert words(sentence) == MAX_WORDS + 1
    assert [
        sentences(block) for block in paragraphs("One `a. B` two. Three (e.g. four)\nfive.\n\n| x |")
    ] == [["One Code two.", "Three (eg four) five."]]
    assert list(cells("| a | b c |\n| --- | --- |")) == ["a ", " b c"]
    assert without_code("a\n```\nlong\n```\nb").splitlines() == ["a", "", "", "", "b"]
    assert found("A tenant is whose\njob it is", GIVEN_UP)
