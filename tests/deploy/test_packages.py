"""What the pinned lists hold, and what the scan for vulnerabilities makes of the scanners' answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts import audit, build_layer
from scripts.build_layer import ROOT

FOLDER = ROOT / "requirements"
NAMES = sorted(path.stem for path in FOLDER.glob("*.in"))
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)", re.M)


def pins(path: Path) -> dict[str, str]:
    """Versions by the packages' names as PyPI writes them."""
    return {re.sub(r"[._-]+", "-", name).lower(): version for name, version in PIN.findall(path.read_text())}


@pytest.mark.parametrize("name", NAMES)
def test_a_list_pins_what_its_input_names_with_hashes_alone(name: str) -> None:
    listed = pins(FOLDER / f"{name}.txt")
    assert pins(FOLDER / f"{name}.in").items() <= listed.items(), "run make locks"
    entries = re.split(r"\n(?=\S)", (FOLDER / f"{name}.txt").read_text().strip())
    assert all(PIN.match(entry) and "--hash=sha256:" in entry for entry in entries)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"dev"}))
def test_all_lists_have_the_versions_with_which_everything_was_tested(name: str) -> None:
    assert pins(FOLDER / f"{name}.txt").items() <= pins(FOLDER / "dev.txt").items()


def package(**members: Any) -> dict[str, Any]:
    return {"dependencies": [{"name": "httpx", "version": "0.28.1", "vulns": [], **members}]}


@pytest.mark.parametrize(
    ("report", "answer"),
    [
        (package(), ([], [])),
        # pip-audit ends with "no known vulnerabilities" if it could look up none.
        (package(skip_reason="not found"), ([], ["httpx (not found)"])),
        (
            package(vulns=[{"id": "PYSEC-1", "fix_versions": ["0.29.0"]}]),
            (["httpx 0.28.1: PYSEC-1, fixed in 0.29.0"], []),
        ),
        (
            package(vulns=[{"id": "PYSEC-1", "fix_versions": []}]),
            (["httpx 0.28.1: PYSEC-1, fixed in no version yet"], []),
        ),
    ],
)
def test_what_pip_audit_reports(report: dict[str, Any], answer: tuple[list[str], list[str]]) -> None:
    assert audit.of_pip_audit(report) == answer


@pytest.mark.parametrize(
    ("report", "answer"),
    [
        ({"vulnerabilities": {}}, ([], [])),
        (
            {"vulnerabilities": {"vite": {"range": "<8", "severity": "high"}}},
            (["vite <8: high"], []),
        ),
        ({"message": "405 Method Not Allowed"}, ([], ["the Node packages (405 Method Not Allowed)"])),
        ({}, ([], ["the Node packages (npm gave no report)"])),
    ],
)
def test_what_npm_reports(report: dict[str, Any], answer: tuple[list[str], list[str]]) -> None:
    assert audit.of_npm_audit(report) == answer


@pytest.mark.parametrize(
    ("unchecked", "arguments", "status"),
    [([], [], 0), (["httpx"], [], 0), (["httpx"], ["--complete"], 1)],
)
def test_what_was_not_looked_up_fails_only_on_demand(
    monkeypatch: pytest.MonkeyPatch, unchecked: list[str], arguments: list[str], status: int
) -> None:
    for scan in ("_audit_python", "_audit_node"):
        monkeypatch.setattr(audit, scan, lambda *_: audit.Audit([], unchecked))
    assert audit.main(arguments) == status


def test_a_release_names_what_is_in_it(tmp_path: Path) -> None:
    audit.write_bills_of_materials(tmp_path)
    documents = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    named = {name: {part["name"] for part in document["components"]} for name, document in documents.items()}
    assert named["sbom-functions.cdx.json"] == {
        name for layer in build_layer.LAYERS.values() for name in pins(layer)
    }
    assert "preact" in named["sbom-console.cdx.json"]
