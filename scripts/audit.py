"""Look up the known vulnerabilities of every pinned package, and write the bill of materials of a release.

    make audit                      # what could not be looked up is named, and is no failure
    make audit ARGS=--complete      # it is a failure

pip-audit asks PyPI's advisories, npm the registry's. A registry mirror may have neither.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from scripts.build_layer import LAYERS, ROOT

# It has the packages of every other list.
_ALL_PACKAGES: Final = ROOT / "requirements" / "dev.txt"
_TIMEOUT_S: Final = 300


class Audit(NamedTuple):
    """What a scanner answered: vulnerabilities and unchecked packages, a line each."""

    vulnerabilities: list[str]
    unchecked: list[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the vulnerabilities; returns 1 if there are any, or if `--complete` and a package was not looked up."""
    parser = argparse.ArgumentParser(prog="python -m scripts.audit", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--complete", action="store_true", help="fail if a package could not be looked up")
    options = parser.parse_args(arguments)
    audits = [_audit_python(_ALL_PACKAGES), _audit_node()]
    vulnerabilities = [line for audit in audits for line in audit.vulnerabilities]
    unchecked = [line for audit in audits for line in audit.unchecked]
    for line in vulnerabilities:
        print(f"audit: vulnerable: {line}")
    if unchecked:
        print(f"audit: not looked up: {len(unchecked)}, such as {unchecked[0]}", file=sys.stderr)
    if not vulnerabilities and not unchecked:
        print("audit: no known vulnerability")
    return int(bool(vulnerabilities) or (options.complete and bool(unchecked)))


def of_pip_audit(report: Mapping[str, Any]) -> Audit:
    """Read pip-audit's JSON. Pure. A skipped package is unchecked: pip-audit itself calls a run of skips clean."""
    vulnerabilities, unchecked = [], []
    for package in report["dependencies"]:
        if "skip_reason" in package:
            unchecked.append(f"{package['name']} ({package['skip_reason']})")
        for vulnerability in package.get("vulns", ()):
            fixed_in = ", ".join(vulnerability["fix_versions"]) or "no version yet"
            name = f"{package['name']} {package['version']}"
            vulnerabilities.append(f"{name}: {vulnerability['id']}, fixed in {fixed_in}")
    return Audit(vulnerabilities, unchecked)


def of_npm_audit(report: Mapping[str, Any]) -> Audit:
    """Read npm's JSON: a report of its second version, or an error. Pure."""
    if "vulnerabilities" not in report:
        return Audit([], [f"the Node packages ({report.get('message', 'npm gave no report')})"])
    return Audit(
        [
            f"{name} {entry['range']}: {entry['severity']}"
            for name, entry in report["vulnerabilities"].items()
        ],
        [],
    )


def write_bills_of_materials(folder: Path) -> None:
    """Write a CycloneDX document of the layers' packages and one of the console's. Raises RuntimeError."""
    pinned = "".join(requirements.read_text() for requirements in LAYERS.values())
    commands = {
        "sbom-functions.cdx.json": [
            sys.executable,
            "-m",
            "cyclonedx_py",
            "requirements",
            "--output-reproducible",
            "-",
        ],
        "sbom-console.cdx.json": [
            *("npm", "sbom", "--sbom-format", "cyclonedx", "--omit", "dev"),
            *("--workspace", "minute8-console", "--package-lock-only"),
        ],
    }
    for name, command in commands.items():
        done = subprocess.run(command, cwd=ROOT, input=pinned, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command[:4])} failed: {done.stderr.strip()}")
        (folder / name).write_text(done.stdout)


def _audit_python(requirements: Path) -> Audit:
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--progress-spinner", "off", "-f", "json"]
    report = _json_of([*command, "-r", str(requirements)])
    return of_pip_audit(report) if report else Audit([], [f"{requirements.name} (pip-audit gave no report)"])


def _audit_node() -> Audit:
    return of_npm_audit(_json_of(["npm", "audit", "--json"]))


def _json_of(command: Sequence[str]) -> dict[str, Any]:
    """The JSON object that the command prints; empty if it prints another text, or takes too long."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
        report = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


if __name__ == "__main__":
    sys.exit(main())
