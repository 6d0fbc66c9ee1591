"""A stage on the embedded AWS, and the shell of the engineer on call."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

from common.clock import SystemClock
from common.platform.tenants import Tenants
from common.storage.table import Table
from scripts.demo.stage import Stage
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from scripts.newcomer import Shell
from tests.runbook.pages import commands

# They look back: at metrics of an hour, and at alarms that take minutes to go OK.
_LOOK_BACK = ("last hour", "alarms")


class Site:
    """Breaks are made by AWS's API. Repairs are the commands of pages alone."""

    def __init__(
        self,
        embedded: Embedded,
        directory: Path,
        stage: str = "test",
        programs: Mapping[str, str] | None = None,
    ) -> None:
        assert embedded.api_url
        self.name = stage
        self.url = embedded.api_url
        self.stage = Stage(embedded.env(), stage)
        self.tenants = Tenants(Table(client(embedded, "dynamodb"), f"minute8-{stage}-tenants"))
        self._embedded = embedded
        operator_key = self.tenants.api_keys.create_operator_key(SystemClock().now())[0]
        environment = {
            "MINUTE8_URL": embedded.api_url,
            "MINUTE8_STAGE": stage,
            "MINUTE8_OPERATOR_KEY": operator_key,
        }
        directory.mkdir(exist_ok=True)
        known = {"aws": "tests.runbook.aws", **(programs or {})}
        self.shell = Shell(directory, embedded.env() | environment, known)
        python = directory / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)

    def client(self, service: str) -> Any:
        return client(self._embedded, service)

    def named(self, name: str) -> str:
        return f"minute8-{self.name}-{name}"

    def queue_url(self, name: str) -> str:
        return str(self.client("sqs").get_queue_url(QueueName=self.named(name))["QueueUrl"])

    def know(self, **variables: str) -> None:
        """Set what the pages name as `$NAME`."""
        for name, value in variables.items():
            self.shell.run(f"export {name}='{value}'")

    def follow(self, page: str, *parts: str, checks: Collection[str] = ()) -> str:
        """Run a page's commands. Returns all they print. Repairs of other checks than these are refused."""
        return "".join(self.run(command, checks) for command in commands(page, self.name, *parts))

    def run(self, command: str, checks: Collection[str] = ()) -> str:
        """Run a command. Returns it and what it prints.

        A command that looks exits with 1 if it finds something. Any other failure is the page's.
        """

        def answer(question: str) -> str:
            """The doctor asks with the check before its finding: `rule: it is disabled`."""
            return "y" if any(f"\n{check}: " in question for check in checks) else "n"

        try:
            output = self.shell.run(command, answer)
        except CalledProcessError as error:
            output = error.output
            assert error.returncode == 1, f"$ {command} exits with {error.returncode}\n{output}"
            assert "Usage:" not in output and "Traceback" not in output, f"$ {command}\n{output}"
        return f"$ {command}\n{output}"

    def problems(self) -> dict[str, str]:
        """What the doctor finds failed or doubtful, apart from what looks back: check -> what it found."""
        try:
            output = self.shell.run("minute8 doctor --json --timeout 120")
        except CalledProcessError as error:
            output = error.output
        assert output.startswith("{"), f"the doctor did not look: {output}"
        findings = json.loads(output)["findings"]
        bad = [finding for finding in findings if finding["level"] in ("failed", "warning")]
        return {finding["check"]: finding["found"] for finding in bad if finding["check"] not in _LOOK_BACK}

    def alarms(self) -> dict[str, str]:
        """Alarm -> its state."""
        answer = self.client("cloudwatch").describe_alarms(
            AlarmNamePrefix=self.named(""), AlarmTypes=["MetricAlarm", "CompositeAlarm"], MaxRecords=100
        )
        every = [*answer["MetricAlarms"], *answer["CompositeAlarms"]]
        return {alarm["AlarmName"].removeprefix(self.named("")): alarm["StateValue"] for alarm in every}
