"""A second opinion on the template: cfn-lint finds no error in it, whatever the parameters."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.package_for_aws import package

pytestmark = pytest.mark.embedded

EVERYTHING = {
    "minimumPollers": "2",
    "maximumPollers": "20",
    "warmReads": "20000",
    "warmWrites": "10000",
    "apiReservedConcurrency": "50",
    "executorReservedConcurrency": "100",
    "executorTimeoutS": "900",
    "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:pager",
    "jwtIssuer": "https://issuer.example",
    "jwtAudience": "minute8",
}


@pytest.mark.parametrize(
    ("stage", "params"),
    [("prod", {}), ("prod", EVERYTHING), ("dev", {"maximumConcurrency": "50"})],
    ids=["defaults", "everything", "maximum concurrency"],
)
def test_cfn_lint_finds_no_error(tmp_path: Path, stage: str, params: dict[str, str]) -> None:
    archives = package(stage, tmp_path, params)
    template = json.loads((archives / "cloudformation-template-update-stack.json").read_text())
    given = tmp_path / "template.json"
    given.write_text(json.dumps(as_evaluated(template)))
    lint = Path(sys.executable).with_name("cfn-lint")
    found = subprocess.run(
        # Warnings are of the framework's own: needless DependsOn.
        [str(lint), "--regions", "us-east-1", "--ignore-checks", "W", "--", str(given)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def as_evaluated(template: dict[str, Any]) -> dict[str, Any]:
    """The template without its conditions, which compare nothing but constants by now."""
    conditions = template.pop("Conditions")
    folded = _folded(template, {name: _holds(one, conditions) for name, one in conditions.items()})
    assert isinstance(folded, dict)
    return folded


def _holds(condition: dict[str, Any], all_of_them: dict[str, Any]) -> bool:
    ((function, arguments),) = condition.items()
    match function:
        case "Fn::Equals":
            return str(arguments[0]) == str(arguments[1])
        case "Fn::Not":
            return not _holds(arguments[0], all_of_them)
        case "Fn::And":
            return all(_holds(one, all_of_them) for one in arguments)
    raise AssertionError(function)


_NOTHING = {"Ref": "AWS::NoValue"}


def _folded(value: Any, holds: dict[str, bool]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"Fn::If"}:
            name, yes, no = value["Fn::If"]
            return _folded(yes if holds[name] else no, holds)
        parts = {name: _folded(part, holds) for name, part in value.items()}
        return {name: part for name, part in parts.items() if part != _NOTHING}
    if isinstance(value, list):
        return [part for part in (_folded(one, holds) for one in value) if part != _NOTHING]
    return value
