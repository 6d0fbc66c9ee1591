"""cfn-lint finds no error in the template, for any parameters."""

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
    "maximumConcurrency": "50",
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
    "outcomeSenders": "210987654321,arn:aws:iam::123456789012:role/acme-functions",
}


def test_cfn_lint_finds_no_error(tmp_path: Path) -> None:
    """One compilation and one process: other parameters only change the template's conditions."""
    archives = package("prod", tmp_path, EVERYTHING)
    template = json.loads((archives / "cloudformation-template-update-stack.json").read_text())
    conditions = template.pop("Conditions")
    everything = {name: _holds(one, conditions) for name, one in conditions.items()}
    assert {name for name, holds in everything.items() if not holds} == {"HasMaximumConcurrency"}
    chosen = {
        "everything": everything,
        "defaults": dict.fromkeys(everything, False),
        "maximum-concurrency": {**everything, "HasPollers": False, "HasMaximumConcurrency": True},
    }
    given = []
    for name, holds in chosen.items():
        given.append(tmp_path / f"{name}.json")
        given[-1].write_text(json.dumps(as_evaluated(template, holds)))
    lint = Path(sys.executable).with_name("cfn-lint")
    found = subprocess.run(
        # The framework itself causes warnings: needless DependsOn.
        [str(lint), "--regions", "us-east-1", "--ignore-checks", "W", "--", *map(str, given)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def as_evaluated(template: dict[str, Any], holds: dict[str, bool]) -> dict[str, Any]:
    """The template without its conditions, which compare only constants."""
    resources = {
        name: resource
        for name, resource in template["Resources"].items()
        if holds.get(resource.get("Condition", ""), True)
    }
    folded = _folded({**template, "Resources": resources}, holds)
    assert isinstance(folded, dict)
    for resource in folded["Resources"].values():
        resource.pop("Condition", None)
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
