"""`make verify` without an AWS: what it may cost, that it removes everything however it ends, and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts.demo.witness import Call
from scripts.measure.prices import PRICES
from scripts.verify import __main__ as command
from scripts.verify import costs
from scripts.verify.account import StageError
from scripts.verify.report import Report
from scripts.verify.results import TrialResult, allowed
from scripts.verify.trials import SMALL, Size


class FakeAccount:
    """An account that notes each deployment and removal."""

    stage, region = "trial", "eu-central-1"

    def __init__(self, fails: BaseException | None = None) -> None:
        self.done: list[str] = []
        self._fails = fails

    def deploy(self, params: Mapping[str, str]) -> str:
        self.done.append("deployed")
        if self._fails:
            raise self._fails
        return "https://api.example"

    def remove(self) -> tuple[list[Any], list[str]]:
        self.done.append("removed")
        return [], []


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The trials to run; nothing reaches an AWS."""
    planned: list[tuple[str, Any]] = []

    class Trials:
        def __init__(self, *_: object) -> None: ...

        def all(self) -> list[tuple[str, Any]]:
            return planned

    monkeypatch.setattr(command, "Trials", Trials)
    for name in ("Stage", "Engine"):
        monkeypatch.setattr(
            command, name, lambda *_: type("Any", (), {"stage": type("S", (), {"client": None})})
        )
    monkeypatch.setattr(command.costs, "memories", lambda *_: {})
    return planned


def verified(account: FakeAccount, output: Path) -> tuple[int, dict[str, Any], str]:
    """The exit status, the JSON and the page."""
    report = Report(account.stage, account.region, "the embedded AWS", {})
    status = command.verify(account, SMALL, report, output)  # type: ignore[arg-type]
    page = (output / "verify-trial.md").read_text()
    return status, json.loads((output / "verify-trial.json").read_text()), page


def test_a_good_verification_says_so_and_removes_all(trials: list[Any], tmp_path: Path) -> None:
    for load in ("40", "500"):
        trials.append((load, lambda load=load: TrialResult("Bursts", ["load", "p50"], [[load, "0.2"]])))
    status, content, page = verified(account := FakeAccount(), tmp_path)
    assert (status, content["is_well"], account.done) == (0, True, ["deployed", "removed"])
    assert page.count("**Bursts**") == 1
    assert "| 40 | 0.2 |\n| 500 | 0.2 |" in page


@pytest.mark.parametrize(
    ("raised", "status", "later"),
    [(KeyboardInterrupt(), 130, False), (ValueError("odd answer"), 1, True), (None, 1, True)],
)
def test_whatever_happens_in_a_trial_everything_is_removed(
    trials: list[Any], tmp_path: Path, raised: BaseException | None, status: int, later: bool
) -> None:
    def first() -> TrialResult:
        if raised:
            raise raised
        return TrialResult("First", problems=["it was early"])

    called: list[str] = []
    trials += [("first", first), ("second", lambda: called.append("second") or TrialResult("Second"))]
    code, content, page = verified(account := FakeAccount(), tmp_path)
    assert (code, content["is_well"], account.done) == (status, False, ["deployed", "removed"])
    assert bool(called) == later
    assert content["problems"] and content["problems"][0] in page


def test_a_deployment_that_fails_or_is_stopped_is_removed(trials: list[Any], tmp_path: Path) -> None:
    broken = RuntimeError("the console does not build")
    for fails, status in ((StageError("no such region"), 1), (broken, 1), (KeyboardInterrupt(), 130)):
        code, content, _ = verified(account := FakeAccount(fails), tmp_path)
        assert (code, content["is_complete"], account.done) == (status, False, ["deployed", "removed"])


def test_above_a_dollar_it_asks() -> None:
    def never(_: str) -> str:
        raise AssertionError

    assert command.may_cost(1.0, False, never)
    assert command.may_cost(20.0, True, never)
    assert command.may_cost(1.01, False, lambda _: "yes")
    assert not command.may_cost(1.01, False, lambda _: "")


def test_the_estimate_grows_with_what_is_done() -> None:
    usual = costs.estimate(Size())
    assert 0.1 < usual < 1
    assert costs.estimate(SMALL) < 0.01
    assert costs.estimate(replace(Size(), bursts=(100_000,))) > 5


def test_charged_adds_up_what_cloudwatch_counted() -> None:
    class CloudWatch:
        def get_paginator(self, operation: str) -> CloudWatch:
            return self

        def paginate(self, MetricDataQueries: list[Any], **_: object) -> Any:
            for query in MetricDataQueries:
                metric = query["MetricStat"]["Metric"]
                values = {"Invocations": [3.0, 4.0], "Duration": [2_000.0]}.get(metric["MetricName"], [])
                yield {"MetricDataResults": [{"Id": query["Id"], "Values": values}]}

    charged = costs.charged(CloudWatch(), "trial", {"minute8-trial-executor": 512}, 0, 60)
    lines = {title: (count, dollars) for title, count, dollars in charged["lines"]}
    assert lines["Lambda invocations"][0] == 7
    assert lines["Lambda GB-seconds"][0] == 1.0
    assert charged["dollars"] == round(7 * PRICES["lambda_request"] + PRICES["lambda_gb_s_arm64"], 6)


def test_without_figures_nothing_is_charged() -> None:
    class Empty:
        def get_paginator(self, operation: str) -> Empty:
            return self

        def paginate(self, **_: object) -> list[Any]:
            return [{"MetricDataResults": []}]

    assert costs.charged(Empty(), "trial", {"f": 128}, 0, 60) == {}


@pytest.mark.parametrize(
    ("status", "lost_at", "later_s", "kept"),
    [
        ("dispatched", None, 15, 1),
        ("dispatched", None, 3, 2),
        # The first call waited for an environment of the target's.
        ("dispatched", 88, 3, 1),
        ("dispatched", 99, 8, 2),
        ("dispatched", 99, 10, 1),
        # An awaited call is made again only after its executor died, which the record shows.
        ("succeeded", 88, 15, 1),
        ("succeeded", None, 15, 2),
    ],
)
def test_a_call_again_after_a_lease_is_no_problem(
    status: str, lost_at: int | None, later_s: int, kept: int
) -> None:
    calls = [Call("a:b:1", 1, 100.0), Call("a:b:1", 1, 100.0 + later_s)]
    run: dict[str, Any] = {"status": status} | (
        {"lost_calls": [{"attempt": 1, "started_at": lost_at, "lateness_s": 0}]} if lost_at else {}
    )
    assert len(allowed(calls, {"a:b:1": run})) == kept
