"""Verify Minute8 in an AWS account: deploy a stage of its own, try everything, report, and remove it all again.

    make verify STAGE=trial                            # in the account of your AWS credentials
    make verify STAGE=trial ARGS=--dry-run              # look, and create nothing
    make verify STAGE=trial ARGS='--embedded --small'  # on an embedded AWS that stands in for an account, as CI does
    make verify STAGE=trial ARGS=--remove              # remove what a verification that died has left

Asks first if it would cost more than a dollar. Ctrl-C removes everything too.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from common.platform.findings import Finding, Level, failed
from scripts import parameters, precheck
from scripts.build_layer import ROOT
from scripts.demo.stage import Stage
from scripts.embedded import EmbeddedError, as_account
from scripts.measure.engine import Engine
from scripts.precheck import POLICIES, print_findings
from scripts.session import caller_problem, exit_status
from scripts.verify import costs
from scripts.verify.account import THROWAWAY, Account, StageError
from scripts.verify.made import client, target_names
from scripts.verify.report import Report
from scripts.verify.results import TrialResult
from scripts.verify.trials import SMALL, Deployed, Size, Trials

# Above this it asks.
_DOLLARS: Final = 1.0
# CloudWatch shows a minute's figures some minutes later.
_FIGURES_AFTER_S: Final = 240


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns 0 if no problem was found, 1 if one was, 2 if it did not begin, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m scripts.verify", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--stage", required=True, help="a name that does not exist yet")
    parser.add_argument("--region", "-r")
    parser.add_argument("--aws-profile")
    parser.add_argument(
        "--embedded", action="store_true", help="on an embedded AWS that stands in for an account"
    )
    parser.add_argument("--small", action="store_true", help="in two minutes, as CI does")
    parser.add_argument("--bursts", help="such as 40,500,5000")
    parser.add_argument("--dry-run", action="store_true", help="look, and create nothing")
    parser.add_argument("--remove", action="store_true", help="remove what a verification that died has left")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "verify")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="of serverless.yml"
    )
    options = parser.parse_args(arguments)
    with ExitStack() as stack:
        try:
            if options.embedded:
                _, environment = stack.enter_context(as_account.account(POLICIES))
                os.environ.pop("AWS_PROFILE", None)
                os.environ |= environment
                options.param += parameters.pairs(as_account.PARAMS)
            return _run(options)
        except (StageError, EmbeddedError, ValueError, BotoCoreError, ClientError) as error:
            print(f"verify: {error}", file=sys.stderr)
            return 2


def _run(options: argparse.Namespace) -> int:
    """The command in the account that the environment names."""
    size = SMALL if options.small else Size()
    if options.bursts:
        size = replace(size, bursts=tuple(int(count) for count in options.bursts.split(",")))
    params = parameters.given_in([f"--param={param}" for param in options.param])
    account = Account(options.stage, options.region, options.aws_profile)
    if problem := caller_problem(partial(client, "sts"), account.region):
        raise StageError(problem)
    if options.remove:
        return remove(account, options.output)
    estimate = costs.estimate(size)
    findings = looks(account, THROWAWAY | params)
    print_findings("verify", findings)
    if any(finding.level == Level.FAILED for finding in findings):
        return 2
    if options.dry_run or not may_cost(estimate, options.yes):
        return 0 if options.dry_run else 2
    where = "the embedded AWS" if options.embedded else "AWS"
    report = Report(account.stage, account.region, where, params, estimated_dollars=estimate)
    return verify(account, size, report, options.output)


def looks(account: Account, params: Mapping[str, str]) -> list[Finding]:
    """What can be known before anything is created: parameters, names, permissions, quotas."""
    findings = [
        failed(problem, "") for problem in parameters.refusals(account.stage, parameters.arguments_of(params))
    ]
    return findings or precheck.of_new_stage(client, account.stage, account.region, params)


def remove(account: Account, output: Path) -> int:
    """Remove what a verification has left that died; returns the exit status.

    Only of a stage of which `output` has a report: a verification makes its stage itself, so all of it may go.
    """
    if not Report.is_in(output, account.stage):
        raise StageError(
            f"{output} has no report of a verification of stage {account.stage}: nothing was removed"
        )
    say("removing everything …")
    with _ignoring_signals():
        resources, problems = account.remove()
    print("\n".join([*problems, *(f"left: {resource}" for resource in resources)]) or "nothing is left")
    return 1 if resources or problems else 0


def may_cost(dollars: float, is_agreed: bool, ask: Callable[[str], str] = input) -> bool:
    """Print the estimate; ask if it is more than a dollar."""
    print(f"verify: this costs about ${dollars:.2f} on AWS")
    if dollars <= _DOLLARS or is_agreed:
        return True
    try:
        return ask("verify: go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def verify(account: Account, size: Size, report: Report, output: Path) -> int:
    """Deploy, try, remove, count, write the report. Removes whatever way the trials end; returns the exit status.

    The report is written before each step that creates something, so that it is there if this process dies.
    """
    names = target_names(account.stage)
    began_at, memory_mb = time.time(), {}
    stopped = False
    try:
        with _stopped_by_signals():
            print(f"verify: if this process dies, this removes what it made: {report.removal}", flush=True)
            report.write(output)
            say("deploying …")
            api_url = account.deploy(report.params)
            report.deployed_s = time.time() - began_at
            report.write(output)
            engine = Engine(Stage({}, account.stage, names[0]), names[1])
            memory_mb = costs.memories(engine.stage.client, account.stage, *names)
            deployed = Deployed(
                api_url, report.deployed_s, lambda more: account.deploy({**report.params, **more})
            )
            _try_all(Trials(engine, deployed, size), report, output)
            report.is_complete = True
    except KeyboardInterrupt:
        stopped = True
        report.problems.append("it was stopped by a signal")
    except StageError as error:
        report.problems.append(f"it could not go on: {error}")
    except Exception as error:  # noqa: BLE001  whatever broke, the stage has to be removed and the report to say so
        traceback.print_exc()
        report.problems.append(f"it could not go on: {error!r}")
    with _ignoring_signals():
        say("removing everything …")
        resources, problems = account.remove()
        report.left_behind = [str(resource) for resource in resources]
        report.problems += problems
        report.write(output)
    if report.is_aws and memory_mb and not stopped:
        _count(account, memory_mb, report, began_at)
    page = report.write(output)
    print(f"\n{report.markdown()}\nverify: written to {page} and {page.with_suffix('.json').name}")
    return 130 if stopped else 0 if report.is_well else 1


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())}  verify: {text}", flush=True)


def _try_all(trials: Trials, report: Report, output: Path) -> None:
    """Run each trial; one that breaks is a problem, and the others go on."""
    for name, trial in trials.all():
        began = time.monotonic()
        try:
            result = trial()
        except Exception as error:  # noqa: BLE001  whatever broke, the report says so
            result = TrialResult(name, problems=[f"the trial broke: {error!r}"])
        report.results.append(result)
        report.problems += [f"{name}: {problem}" for problem in result.problems]
        report.write(output)
        say(f"{name}: {len(result.problems) or 'no'} problems, {time.monotonic() - began:.0f} s")


def _count(account: Account, memory_mb: dict[str, int], report: Report, began_at: float) -> None:
    say(f"waiting {_FIGURES_AFTER_S} s for CloudWatch's figures; everything is removed already …")
    try:
        ended_at = time.time()
        time.sleep(_FIGURES_AFTER_S)
        report.charged = costs.charged(
            client("cloudwatch"), account.stage, memory_mb, began_at - 60, ended_at + 60
        )
    except (BotoCoreError, ClientError, KeyboardInterrupt) as error:
        say(f"no figures: {error!r}")


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end the trials as Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _ignoring_signals() -> Iterator[None]:
    """While everything is removed, a second Ctrl-C only says that it is under way."""

    def wait(*_: object) -> None:
        say("still removing; it ends by itself …")

    before = {
        number: signal.signal(number, wait) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(exit_status(main, "verify: stopped. If it has made anything, ARGS=--remove removes it"))
