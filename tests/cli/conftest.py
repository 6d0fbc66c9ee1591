"""The command over the API's real handler, and over tables in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from common import telemetry
from common.storage import aws
from minute8 import client as http_client
from minute8.cli import platform, session
from minute8.cli.main import app
from minute8.client import Client, Operator
from tests.api.calls import HandlerTransport, Office
from tests.api.conftest import few_at_once as few_at_once
from tests.api.conftest import open_office
from tests.worlds import TABLES, World


def no_sleep(_: float) -> None:
    """What the client does in the place of waiting; a test can replace it."""


# What no command may print: it would move the cursor, set a title, or turn the direction of reading.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class CommandResult:
    """A command's output and exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Desk:
    """A terminal with alice's key in the environment."""

    office: Office
    transport: HandlerTransport
    environment: dict[str, str]

    def __call__(self, *words: str, stdin: str | None = None, name: str | None = None) -> CommandResult:
        done = CliRunner().invoke(app, words, input=stdin, env=self.environment, prog_name=name)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert not OBEYED.search(done.stdout + done.stderr), (words, done.stdout, done.stderr)
        return CommandResult(done.exit_code, done.stdout, done.stderr)


@pytest.fixture
def desk(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Desk:
    office, transport = open_office(world, monkeypatch), HandlerTransport()
    telemetry.logger()  # it keeps the standard output of now, not one that the runner of a command closes

    def over_the_handler(url: str, key: str) -> Client:
        return Client(url, key, transport=transport, sleep=lambda s: no_sleep(s))

    monkeypatch.setattr(http_client, "Client", over_the_handler)

    def operator_over_the_handler(url: str, key: str) -> Operator:
        return Operator(url, key, transport=transport, sleep=lambda _: None)

    monkeypatch.setattr(platform, "Operator", operator_over_the_handler)
    monkeypatch.setattr(session, "SystemClock", lambda: world.clock)
    monkeypatch.setattr(aws, "dynamodb", lambda: world.dynamodb)
    environment = {
        "MINUTE8_URL": "https://api.test",
        "MINUTE8_KEY": office.alice.key or "",
        **{f"{kind.upper()}_TABLE": f"test-{kind}" for kind in TABLES},
        "XDG_CONFIG_HOME": str(tmp_path),
        "EDITOR": "false",
    }
    return Desk(office, transport, environment)


Say = Callable[..., CommandResult]
