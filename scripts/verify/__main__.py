"""Verify Minute8 in an AWS account: deploy a stage of its own, try everything, report, and remove it all again.

    make verify STAGE=trial                            # in the account of your AWS credentials
    make verify STAGE=test ARGS='--embedded --small'   # on an embedded AWS, as CI does

Asks first if it would cost more than a dollar. Ctrl-C removes everything too.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from scripts import parameters
from scripts.build_layer import ROOT
from scripts.demo import functions
from scripts.demo.stage import Stage
from scripts.measure.engine import Engine
from scripts.verify import costs
from scripts.verify.environment import Account, Embedded, Environment, StageError, leftovers
from scripts.verify.report import Report
from scripts.verify.results import TrialResult
from scripts.verify.trials import SMALL, Size, Trials

# Above this it asks.
_DOLLARS: Final = 1.0
# CloudWatch shows a minute's figures some minutes later.
_FIGURES_AFTER_S: Final = 240
# How long an invocation may still log after its function was deleted.
_LAST_WORDS_S: Final = 3


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns 0 if no problem was found, 1 if one was, 2 if it did not begin, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m scripts.verify", description=__doc__)
    parser.add_argument("--stage", required=True, help="a name that does not exist yet")
    parser.add_argument("--region", "-r")
    parser.add_argument("--aws-profile")
    parser.add_argument("--embedded", action="store_true", help="on an embedded AWS: stage local or test")
    parser.add_argument("--small", action="store_true", help="in a minute, as CI does")
    parser.add_argument("--bursts", help="such as 40,500,5000")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "verify")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="of serverless.yml"
    )
    options = parser.parse_args(arguments)
    size = SMALL if options.small else Size()
    if options.bursts:
        size = replace(size, bursts=tuple(int(count) for count in options.bursts.split(",")))
    try:
        params = parameters.given_in([f"--param={param}" for param in options.param])
        environment: Environment = (
            Embedded(options.stage)
            if options.embedded
            else Account(options.stage, options.region, options.aws_profile)
        )
        if not may_cost(costs.estimate(size), options.yes):
            return 2
        environment.open()
    except (StageError, ValueError, BotoCoreError, ClientError) as error:
        print(f"verify: {error}", file=sys.stderr)
        return 2
    report = Report(
        options.stage, environment.region, "AWS" if environment.is_aws else "the embedded AWS", params,
        estimated_dollars=costs.estimate(size),
    )  # fmt: skip
    try:
        return verify(environment, size, report, options.output)
    finally:
        environment.close()


def may_cost(dollars: float, is_agreed: bool, ask: Callable[[str], str] = input) -> bool:
    """Print the estimate; ask if it is more than a dollar."""
    print(f"verify: this costs about ${dollars:.2f} on AWS")
    if dollars <= _DOLLARS or is_agreed:
        return True
    try:
        return ask("verify: go on? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def verify(environment: Environment, size: Size, report: Report, output: Path) -> int:
    """Deploy, try, remove, count, write the report. Removes whatever way the trials end; returns the exit status."""
    names = f"verify-{environment.stage}-target", f"verify-{environment.stage}-bare"
    began_at, memory_mb = time.time(), {}
    stopped = False
    try:
        with _stopped_by_signals():
            say("deploying …")
            api_url = environment.deploy(report.params)
            report.deployed_s = time.time() - began_at
            engine = Engine(Stage({}, environment.stage, names[0]), names[1])
            memory_mb = costs.memories(engine.stage.client, environment.stage, *names)
            _try_all(Trials(engine, api_url, size), report)
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
        _remove(environment, names, report)
    if environment.is_aws and memory_mb and not stopped:
        _count(environment, memory_mb, report, began_at)
    page = report.write(output)
    print(f"\n{report.markdown()}\nverify: written to {page} and {page.with_suffix('.json').name}")
    return 130 if stopped else 0 if report.is_well else 1


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())}  verify: {text}", flush=True)


def _try_all(trials: Trials, report: Report) -> None:
    """Run each trial; one that breaks is a problem, and the others go on."""
    for name, trial in trials.all():
        began = time.monotonic()
        try:
            result = trial()
        except Exception as error:  # noqa: BLE001  whatever broke, the report says so
            result = TrialResult(name, problems=[f"the trial broke: {error!r}"])
        report.results.append(result)
        report.problems += [f"{name}: {problem}" for problem in result.problems]
        say(f"{name}: {len(result.problems) or 'no'} problems, {time.monotonic() - began:.0f} s")


def _remove(environment: Environment, names: tuple[str, str], report: Report) -> None:
    """Remove the stage and everything beside it, and look at what is left."""
    say("removing everything …")
    steps: list[tuple[str, Callable[[], object]]] = [
        ("the bare path", lambda: _remove_bare(names[1])),
        *((name, lambda name=name: functions.remove(_client, name)) for name in names),
        ("the stage", environment.remove),
        ("the last logs", lambda: _remove_logs(environment.stage)),
    ]
    for title, step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001  the other steps have to be taken all the same
            report.problems.append(f"could not remove {title}: {error}")
    try:
        report.left_behind = leftovers(environment.stage, *names)
    except Exception as error:  # noqa: BLE001  the report has to be written all the same
        report.problems.append(f"could not look at what is left: {error}")


def _remove_bare(name: str) -> None:
    """The bare path's mapping and queue, if they exist."""
    queues, mappings = _client("sqs"), _client("lambda")
    for mapping in mappings.list_event_source_mappings(FunctionName=name)["EventSourceMappings"]:
        mappings.delete_event_source_mapping(UUID=mapping["UUID"])
    with suppress(queues.exceptions.QueueDoesNotExist):
        queues.delete_queue(QueueUrl=queues.get_queue_url(QueueName=name)["QueueUrl"])


def _remove_logs(stage: str) -> None:
    """Log groups that invocations made again which ended after the stack was gone."""
    time.sleep(_LAST_WORDS_S)
    logs = _client("logs")
    for group in logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/minute8-{stage}-")["logGroups"]:
        logs.delete_log_group(logGroupName=group["logGroupName"])


def _count(environment: Environment, memory_mb: dict[str, int], report: Report, began_at: float) -> None:
    say(f"waiting {_FIGURES_AFTER_S} s for CloudWatch's figures; everything is removed already …")
    try:
        ended_at = time.time()
        time.sleep(_FIGURES_AFTER_S)
        report.charged = costs.charged(
            _client("cloudwatch"), environment.stage, memory_mb, began_at - 60, ended_at + 60
        )
    except (BotoCoreError, ClientError, KeyboardInterrupt) as error:
        say(f"no figures: {error!r}")


def _client(service: str) -> Any:
    return boto3.client(service)  # type: ignore[call-overload]


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
    sys.exit(main())
