"""The executor's own concurrency and the API's ceiling: what `make deploy` and the template make of an account."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from scripts import concurrency, parameters
from scripts.build_layer import ROOT
from scripts.concurrency import Account, described, parameters_for

OWN, CEILING = "executorReservedConcurrency", "apiReservedConcurrency"
MAXIMUM, QUOTA = "maximumConcurrency", "accountConcurrency"


@pytest.mark.parametrize(
    ("quota", "free", "chosen", "own", "ceiling", "at_once"),
    [
        (1_000, 1_000, (), "500", "100", "500"),
        (10_000, 9_000, (), "1000", "1000", "1000"),
        # AWS keeps a hundred unreserved.
        (1_000, 700, (), "500", "100", "500"),
        (1_000, 699, (), "500", "off", "500"),
        (1_000, 599, (), "off", "100", "399"),
        (1_000, 150, (), "off", "off", "75"),
        # Small accounts have nothing to reserve.
        (999, 999, (), "off", "off", "899"),
        (10, 10, (), "off", "off", "5"),
        (10, 3, (), "off", "off", "2"),
        # What somebody has chosen stays.
        (1_000, 1_000, (OWN,), None, "100", "800"),
        (1_000, 1_000, (OWN, CEILING, MAXIMUM, QUOTA), None, None, None),
        (1_000, 1_000, ("minimumPollers", "maximumPollers"), "off", "100", "800"),
    ],
)
def test_what_a_stage_gets_of_an_account(
    quota: int, free: int, chosen: tuple[str, ...], own: str | None, ceiling: str | None, at_once: str | None
) -> None:
    params = parameters_for(Account(quota, free), frozenset(chosen))
    account_quota = {QUOTA: str(quota)} if QUOTA not in chosen else {}
    expected = {OWN: own, CEILING: ceiling, MAXIMUM: at_once}
    assert params == account_quota | {name: value for name, value in expected.items() if value is not None}
    assert parameters.problems("prod", parameters.read("prod", params)) == []
    reserved = sum(int(params[name]) for name in (OWN, CEILING) if params.get(name, "off") != "off")
    assert reserved == 0 or free - reserved >= 100


class Lambda:
    """An account of 1,000 in which this stage has reserved 500, and others 50."""

    class exceptions:
        class ResourceNotFoundException(Exception):
            """There is no such function."""

    def get_account_settings(self) -> dict[str, Any]:
        return {"AccountLimit": {"ConcurrentExecutions": 1_000, "UnreservedConcurrentExecutions": 450}}

    def get_function_concurrency(self, FunctionName: str) -> dict[str, Any]:
        if FunctionName == "minute8-prod-executor":
            return {"ReservedConcurrentExecutions": 500}
        if FunctionName == "minute8-prod-api":
            return {}
        raise self.exceptions.ResourceNotFoundException


def test_the_next_deployment_counts_its_own_part_as_free() -> None:
    assert concurrency.account_of(Lambda(), "prod") == Account(1_000, 950)
    assert concurrency.account_of(Lambda(), "new") == Account(1_000, 450)


def test_who_deploys_reads_what_the_stage_gets() -> None:
    account = Account(1_000, 1_000)
    assert described(account, parameters_for(account, frozenset())) == (
        "Of the account's concurrency of 1000, the executor has 500 for itself and the API has at most 100"
    )
    assert "share what others" in described(Account(10, 10), parameters_for(Account(10, 10), frozenset()))


def test_the_stage_dev_takes_nothing_from_others() -> None:
    assert {OWN, CEILING} <= parameters.chosen("dev", {})
    assert parameters.chosen("prod", {"canary": "off"}) == {"canary"}


@pytest.mark.parametrize(
    ("chosen", "at_once"),
    [
        ({}, "900"),  # the bare template, in an account of 1,000
        ({OWN: "500"}, "500"),
        ({OWN: "1"}, "2"),
        ({MAXIMUM: "20"}, "20"),
        ({MAXIMUM: "20", OWN: "10"}, "10"),
        ({QUOTA: "10"}, "5"),
        ({QUOTA: "5000"}, "1000"),
        ({MAXIMUM: "off"}, "off"),
    ],
)
def test_the_queue_starts_no_more_executors_than_there_can_be(chosen: dict[str, str], at_once: str) -> None:
    declared = {name: dict(parameter.declaration) for name, parameter in parameters.PARAMETERS.items()}
    values = {f"param:{name}": value for name, value in parameters.read("prod", chosen).items()}
    script = (
        "const values = JSON.parse(process.argv[1]);"
        "require('./deploy/parameters.js').resources({resolveVariable: async (name) => values[name]})"
        ".then((template) => console.log(JSON.stringify(template)))"
    )
    known = json.dumps(values | {"file(./deploy/parameters.yml):Parameters": declared})
    done = subprocess.run(["node", "-e", script, known], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["Parameters"][MAXIMUM]["Default"] == at_once
