"""The report of a verification: one page for people, and the same figures as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import botocore

from common.platform.signing_masters import parameter_name
from common.version import VERSION
from scripts.build_layer import ROOT
from scripts.measure.result import Table, this_machine
from scripts.verify.made import target_names
from scripts.verify.results import TrialResult


@dataclass(slots=True)
class Report:
    """What is known so far. It is written even if the verification was stopped."""

    stage: str
    region: str
    where: str
    params: dict[str, str]
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    versions: dict[str, str] = field(default_factory=lambda: versions())
    deployed_s: float = 0.0
    results: list[TrialResult] = field(default_factory=list)
    charged: dict[str, Any] = field(default_factory=dict)
    estimated_dollars: float = 0.0
    problems: list[str] = field(default_factory=list)
    left_behind: list[str] | None = None
    is_complete: bool = False

    @property
    def is_aws(self) -> bool:
        return self.where == "AWS"

    @property
    def removal(self) -> str:
        """The command that removes what this verification made."""
        return f"make verify STAGE={self.stage} ARGS='--remove --region {self.region}'"

    @staticmethod
    def is_in(directory: Path, stage: str) -> bool:
        """Whether there is a report of a verification of this stage."""
        return (directory / f"verify-{stage}.json").exists()

    @property
    def is_well(self) -> bool:
        return self.is_complete and not self.problems and self.left_behind == []

    def write(self, directory: Path) -> Path:
        """Write verify-<stage>.md and .json; returns the page."""
        directory.mkdir(parents=True, exist_ok=True)
        page = directory / f"verify-{self.stage}.md"
        page.write_text(self.markdown())
        content = asdict(self) | {"is_well": self.is_well}
        content["found"] = content.pop("results")
        page.with_suffix(".json").write_text(json.dumps(content, indent=2) + "\n")
        return page

    def markdown(self) -> str:
        """The page. It names no account."""
        verdict = "No problem was found." if self.is_well else "**Not everything was well: see Problems.**"
        parts = [f"# Minute8 verified on {self.where}, {self.region}, {self.at}", verdict]
        rows = [
            *self.versions.items(),
            *((f"parameter {name}", value) for name, value in self.params.items()),
        ]
        rows.append(("deployed in", f"{self.deployed_s:.0f} s"))
        parts.append(Table("Versions and parameters", ["", ""], [list(row) for row in rows]).markdown())
        if not self.is_complete:
            parts.append("It was stopped before its end.")
        for result in self._tables():
            parts.append(Table(result.title, result.head, result.rows).markdown())
        parts.append(self._dollars())
        parts.append("**Problems**\n\n" + ("\n".join(f"- {problem}" for problem in self.problems) or "none"))
        parts.append(self._remaining())
        return "\n\n".join(parts) + "\n"

    def _tables(self) -> list[TrialResult]:
        """Trials of one title share a table."""
        shared: dict[str, TrialResult] = {}
        for result in self.results:
            if result.rows:
                table = shared.setdefault(result.title, TrialResult(result.title, result.head))
                table.rows += result.rows
        return list(shared.values())

    def _remaining(self) -> str:
        if self.left_behind is None:
            beside = ", ".join(target_names(self.stage))
            return (
                f"It has not ended. If its process died, `{self.removal}` removes what it made: the stack"
                f" minute8-{self.stage}, the functions, roles, logs and the queue {beside},"
                f" and the parameter {parameter_name(self.stage)}."
            )
        if not self.left_behind:
            return "Left behind: nothing."
        return (
            f"Left behind, each with the command that removes it (or all: `{self.removal}`):\n\n"
            + "\n".join(f"- {resource}" for resource in self.left_behind)
        )

    def _dollars(self) -> str:
        if not self.charged:
            return f"CloudWatch has no figures here. Estimated before: ${self.estimated_dollars:.2f}."
        rows = [[title, f"{count:,.0f}", f"{dollars:.4f}"] for title, count, dollars in self.charged["lines"]]
        rows.append(["**sum**", "", f"**{self.charged['dollars']:.4f}**"])
        heading = "Charged, by CloudWatch's counts and the list prices of us-east-1"
        return Table(heading, ["what", "count", "$"], rows).markdown()


def versions() -> dict[str, str]:
    """Of Minute8, the tools and this machine."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    package = json.loads((ROOT / "package.json").read_text())
    return {
        "Minute8": f"{VERSION}, commit {git.stdout.strip() or 'unknown'}",
        "osls": str(
            {**package.get("dependencies", {}), **package.get("devDependencies", {})}.get("osls", "")
        ),
        "botocore here": botocore.__version__,
        "Python here": sys.version.split()[0],
        "from": this_machine(),
    }
