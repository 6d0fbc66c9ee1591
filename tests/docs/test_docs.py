"""The documentation is correct: links have targets, commands exist, the code reads the variables."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
_MAKE = re.compile(r"\bmake ([a-z][a-z-]*)\b")
_VARIABLE = re.compile(r"\b(MINUTE8_[A-Z0-9_]+)\b")
_PATH = re.compile(r"`((?:common|scheduler|executor|minute8|scripts|tests|examples)/[\w./]+)`")


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name: str) -> None:
    document = ROOT / name
    for target, _ in _LINK.findall(document.read_text()):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{name} links to {target}"


def headings(document: Path) -> set[str]:
    """The anchors of a document, as GitHub makes them of its headings."""
    titles = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", NAMES)
def test_anchors_are_headings(name: str) -> None:
    document = ROOT / name
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)]*)\)", document.read_text()):
        assert anchor in headings(document.parent / target if target else document), f"{target}#{anchor}"


@pytest.mark.parametrize("name", NAMES)
def test_files_that_are_named_exist(name: str) -> None:
    for path in _PATH.findall((ROOT / name).read_text()):
        assert (ROOT / path).exists(), f"{name} names {path}"


@pytest.mark.parametrize("name", NAMES)
def test_make_commands_exist(name: str) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = "\n".join(re.findall(r"```.*?```|`[^`]+`", (ROOT / name).read_text(), re.DOTALL))
    for verb in _MAKE.findall(code):
        assert verb in verbs, f"{name} says make {verb}"


@cache
def code() -> str:
    return "\n".join(
        path.read_text()
        for folder in ("common", "minute8", "scripts", "tests")
        for path in (ROOT / folder).rglob("*.py")
    )


@pytest.mark.parametrize("name", NAMES)
def test_variables_are_read_by_the_code(name: str) -> None:
    for variable in _VARIABLE.findall((ROOT / name).read_text()):
        assert variable in code(), f"{name} documents {variable}"


def test_each_make_command_is_documented() -> None:
    verbs = re.findall(r"^([a-z-]+):.*?## (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    everything = "\n".join(path.read_text() for path in DOCUMENTS)
    for verb, purpose in verbs:
        assert purpose
        assert f"make {verb}" in everything, f"no document tells of make {verb}"


def test_each_promise_links_to_a_test() -> None:
    promises = re.findall(r"^\| \d \| .* \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(promises) == 7
    for held_by in promises:
        assert "](tests/" in held_by


def test_each_test_folder_is_listed() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    folders = [path for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()]
    assert [path.name for path in folders if f"`tests/{path.name}`" not in text] == []


def test_each_room_is_listed() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = [path for path in (ROOT / "common").iterdir() if (path / "__init__.py").exists()]
    assert [path.name for path in rooms if f"`common/{path.name}/`" not in text] == []


def test_each_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()
