"""The `aws` commands of the runbook and of the pages about operation are what AWS's own model of the service takes."""

from __future__ import annotations

import re
import shlex

import boto3
import pytest
from botocore.validate import ParamValidator

from tests.docs.test_docs import ROOT
from tests.runbook.aws import request

PAGES = sorted((ROOT / "docs" / "runbook").glob("*.md")) + [
    ROOT / "docs" / name for name in ("restore.md", "deploying.md", "service-levels.md", "first-hour.md")
]
# What a command is given in the place of a variable, and of a time.
STAND_IN = "arn:aws:dynamodb:us-east-1:123456789012:table/minute8"
INSTANT = "2026-11-21T04:00:00Z"


def commands_in(text: str) -> list[str]:
    """Those of its blocks, and those within a sentence."""
    joined = re.sub(r"\\\n\s*", "", text)
    commands = re.findall(r"(?:^\s*(?:\$ )?|\$\(|`)(aws [a-z0-9]+ [a-z-]+[^`\n]*)", joined, re.MULTILINE)
    # `name=$(aws …)`
    closed = [
        command.removesuffix(")") if command.count(")") > command.count("(") else command
        for command in commands
    ]
    return [re.sub(r"\$\w+", STAND_IN, command.replace("$T", INSTANT)) for command in closed]


COMMANDS = sorted({command for page in PAGES for command in commands_in(page.read_text())})


@pytest.mark.parametrize("command", COMMANDS)
def test_aws_takes_the_command(command: str) -> None:
    _, name, operation, *words = shlex.split(command)
    client = boto3.client(name)  # type: ignore[call-overload]
    if (name, operation) == ("logs", "tail"):
        assert words[0].startswith("/aws/") and words[1] == "--since"
        return
    if operation == "wait":
        assert words[0].replace("-", "_") in client.waiter_names
        return
    _, _, arguments = request(client.meta.service_model, operation, words)
    name_of_api = client.meta.method_to_api_mapping[operation.replace("-", "_")]
    shape = client.meta.service_model.operation_model(name_of_api).input_shape
    report = ParamValidator().validate(arguments, shape)
    assert not report.has_errors(), report.generate_report()


def test_the_pages_have_commands() -> None:
    services = {command.split()[1] for command in COMMANDS}
    assert services >= {"ce", "cloudwatch", "dynamodb", "events", "health", "lambda", "logs"}
