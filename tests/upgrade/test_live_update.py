"""An update under load, and a way back: no call meets old code with a newer configuration, since all go by the alias.

Under the strict layer Lambda updates `$LATEST` in two steps, a second apart: its configuration, and then its code.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from common.runs.states import SUCCEEDED
from minute8.client import Client, Minute8Problem
from scripts import stack, versions
from scripts.demo.stage import Stage
from scripts.demo.witness import ENDED
from scripts.demo.workload import Registration
from scripts.embedded import Embedded, deploy, kill, start
from scripts.embedded.deployment import client, run_osls
from tests.waiting import wait_until

pytestmark = [pytest.mark.embedded, pytest.mark.release]
API, EXECUTOR = "minute8-test-api", "minute8-test-executor"
# Each version's code runs with its own configuration alone.
CHECK = """
import os
if os.environ["{variable}"] != "{value}":
    raise RuntimeError("another version's configuration")
"""
VARIABLES = {"minute8/api": "SPREAD_S", "executor": "SERVICE_LATENESS_S"}


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    state_dir: Path = tmp_path_factory.mktemp("live")
    instance = start(state_dir, 0, strict=True, tied=True)
    try:
        yield deploy(instance, stage="test")
    finally:
        kill(state_dir)


def update(embedded: Embedded, number: int) -> None:
    """Deploy a version whose code and configuration go together, under this number."""
    service = Path(embedded.state_dir) / "service-test"
    for room, variable in VARIABLES.items():
        handler = service / room / "handler.py"
        code = handler.read_text().partition("\nimport os\n")[0]
        handler.write_text(code + CHECK.format(variable=variable, value=number))
    numbers = [f"--param={name}={number}" for name in ("spreadS", "serviceLatenessS")]
    run_osls(["deploy", "--stage", "test", *numbers], service, embedded)


class Load:
    """Somebody who runs a job again and again, while this is entered."""

    def __init__(self, run: Callable[[], str]) -> None:
        self.executions: list[str] = []
        self.failures: list[str] = []
        self._run = run
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._go_on)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ends.set()
        self._thread.join()

    def _go_on(self) -> None:
        while not self._ends.wait(0.1):
            try:
                self.executions.append(self._run())
            except Minute8Problem as error:
                self.failures.append(repr(error))


def latest_fails(embedded: Embedded, name: str, ends: threading.Event, failures: list[str]) -> None:
    """Call a function as it was called before there was an alias."""
    functions = client(embedded, "lambda")
    while not ends.wait(0.1):
        if "FunctionError" in (answer := functions.invoke(FunctionName=name, Payload=b"{}")):
            failures.append(answer["Payload"].read().decode())


def open_runs(api: Client, executions: list[str]) -> list[str]:
    """Those that have not ended."""
    return [execution for execution in executions if api.get_run(execution)["status"] not in ENDED]


def test_an_update_and_the_way_back_fail_no_call(deployed: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(deployed.env(), "test")
    target = {"kind": "lambda", "arn": stage.deploy_target(), "invocation": "RequestResponse"}
    stage.allow(["alice"], target["arn"])
    stage.register([Registration("alice", "hello", {"schedule": {"every": "1d"}, "target": target})])
    functions = client(deployed, "lambda")
    update(deployed, 1)
    assert deployed.api_url
    ends = threading.Event()
    unaliased: list[str] = []
    caller = threading.Thread(target=latest_fails, args=(deployed, EXECUTOR, ends, unaliased), daemon=True)
    with Client(deployed.api_url, stage.key_for_a_day("alice")) as api:
        with Load(lambda: str(api.run_job("hello")["execution_id"])) as load:
            caller.start()
            update(deployed, 2)
            ends.set()
            caller.join()
            newest = versions.live(functions, EXECUTOR)
            for name, value in deployed.env().items():
                monkeypatch.setenv(name, value)
            assert stack.main(["rollback", "--stage", "test"]) == 0
            count = len(load.executions)
            wait_until(lambda: len(load.executions) > count + 5, "no calls after the way back")
        wait_until(lambda: not open_runs(api, load.executions), lambda: open_runs(api, load.executions))
        runs = [api.get_run(execution) for execution in load.executions]
    assert unaliased, "old code never met the new configuration"
    assert not load.failures
    assert len(load.executions) > 20
    assert {run["status"] for run in runs} == {SUCCEEDED}
    assert {run["attempt"] for run in runs} == {1}
    assert versions.live(functions, EXECUTOR) < newest
    for name, variable in ((API, "SPREAD_S"), (EXECUTOR, "SERVICE_LATENESS_S")):
        configuration = functions.get_function_configuration(FunctionName=name, Qualifier="live")
        assert configuration["Environment"]["Variables"][variable] == "1"
    # A deployment that changes nothing goes forward again.
    assert versions.go_forward(functions, "test", versions.published(functions, EXECUTOR)[-1].deployment)
    assert versions.live(functions, EXECUTOR) == newest
