"""`minute8 check`: compares all tables of a stage with each other, and repairs what contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from common.errors import Minute8Error
from common.planning.quarantine import Quarantine
from common.truth.contradiction import Contradiction
from minute8.cli import output
from minute8.cli.doctor.deployment import Deployment, connect
from minute8.cli.doctor.examine import losses
from minute8.cli.doctor.truth import Contradicted, listed, repair_outcome, repaired
from minute8.cli.options import AsJson, ExitCode, Yes
from minute8.cli.output import confirm, console, plural, print_json
from minute8.cli.session import api_url, session


def check(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    fixes: Annotated[
        bool, typer.Option("--fix", help="Repair what can be repaired; asks first. It can be repeated.")
    ] = False,
    put_back: Annotated[
        list[str] | None,
        typer.Option("--put-back", help="Put this unreadable item back; the next tick tries to read it."),
    ] = None,
    discard: Annotated[
        list[str] | None, typer.Option("--discard", help="Delete this unreadable item.")
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Compare jobs, due entries, groups, tenants, audit and runs with each other. Needs AWS credentials.

    Exits with 0 if nothing contradicts anything at the end, else with 1.
    """
    if as_json and fixes and not yes:
        raise typer.BadParameter("--fix asks first, which --json cannot; add --yes")
    current = session(ctx)
    deployment = connect(stage, current.clock, api_url(current.url, current.profile))
    _decide(deployment.planning().quarantine(), put_back, discard, as_json)
    contradicted = list(deployment.truth().all())
    contradictions = listed(contradicted)
    if not as_json:
        _print(contradictions)
    if fixes and contradictions and (yes or confirm(f"Repair {_repairable(contradictions)}?")):
        contradictions = _fixed(deployment, contradicted, as_json)
    elif as_json:
        print_json({"contradictions": [_view(item) for item in contradictions]})
    if contradictions:
        raise typer.Exit(ExitCode.FAILED)


def _fixed(
    deployment: Deployment, contradicted: Sequence[Contradicted], as_json: bool
) -> list[Contradiction]:
    """Repair, and look at everything again. Nothing is sent while something loses messages. Returns what is left."""
    loss = losses(deployment) if any(item.sends for item in listed(contradicted)) else ""

    def repair(item: Contradiction) -> str:
        return f"left: what is sent could be lost: {loss}" if loss and item.sends else repair_outcome(item)

    results, remaining = repaired(deployment.truth(), contradicted, repair)
    _report(results, as_json)
    return remaining


def _decide(
    quarantine: Quarantine, put_back: list[str] | None, discard: list[str] | None, as_json: bool
) -> None:
    """Do what a person has decided about unreadable items, and say so. Raises NotFound, Conflict."""
    decisions = (("put back", quarantine.put_back, put_back), ("discarded", quarantine.discard, discard))
    for done, decide, names in decisions:
        for name in names or ():
            decide(name)
            if not as_json:
                console().print(f"{done}: {name}", soft_wrap=True)


def _repairable(contradictions: Sequence[Contradiction]) -> str:
    count = sum(item.repair is not None for item in contradictions)
    return f"{plural(count, 'contradiction')} of {len(contradictions)}"


def _print(contradictions: Sequence[Contradiction]) -> None:
    if not contradictions:
        console().print("jobs, due entries, groups, tenants, audit and runs agree")
        return
    rows = [(item.name, item.subject.name, (item.detail, f"→ {_effect(item)}")) for item in contradictions]
    console().print(output.table(("CONTRADICTION", "OF", "FOUND"), rows))


def _effect(item: Contradiction) -> str:
    """What its repair does, and the fire times that it affects."""
    if item.repair is None:
        return item.remedy
    try:
        return f"{item.remedy}: {item.foresee()}"
    except Minute8Error as error:
        return f"{item.remedy}: it is not known what that affects: {error}"


def _report(repaired: Sequence[tuple[Contradiction, str]], as_json: bool) -> None:
    if as_json:
        print_json({"contradictions": [{**_view(item), "result": result} for item, result in repaired]})
        return
    for item, result in repaired:
        console().print(f"{item.name} {item.subject.name}: {result}", soft_wrap=True)


def _view(item: Contradiction) -> dict[str, Any]:
    return {
        "name": item.name,
        "kind": item.subject.kind,
        "of": item.subject.name,
        "found": item.detail,
        "remedy": item.remedy,
        "has_repair": item.repair is not None,
    }
