"""What a deployment will do, before it does it: what it creates, what it changes, and what that costs. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from common.config import OFF
from scripts.build_layer import ROOT
from scripts.measure.result import kept

Template = Mapping[str, Any]

# For people: the kinds that matter, and all the rest under one word.
_WORDS: Final = {
    "AWS::Lambda::Function": "functions",
    "AWS::DynamoDB::Table": "tables",
    "AWS::SQS::Queue": "queues",
    "AWS::CloudWatch::Alarm": "alarms",
    "AWS::CloudWatch::CompositeAlarm": "alarms",
    "AWS::CloudWatch::Dashboard": "dashboards",
    "AWS::IAM::Role": "roles",
    "AWS::Events::Rule": "rules",
    "AWS::ApiGatewayV2::Api": "API",
    "AWS::S3::Bucket": "bucket",
}
_NAMED: Final = re.compile(r"\$\{(\w+)\}")
# Where the archives of a deployment are: another place each time.
_PLACES: Final = ("S3Key", "S3Bucket")
_IDLE_LINE: Final = re.compile(r"^\| ([a-zA-Z][^|]+) \| [\d.,]+ \| ([\d.]+) \|$", re.MULTILINE)


def lines(template: Template, deployed: Template | None, params: Mapping[str, str]) -> list[str]:
    """The plan in lines. `deployed` is the template of the stage's stack; None before the first deployment.

    Both have values in place of their parameters.
    """
    return [
        *(_created(template) if deployed is None else _changed(template, deployed)),
        f"costs idle about ${idle_dollars(params):.2f} a month by list prices of us-east-1, without a free tier"
        " (docs/idle-cost.md)",
        f"costs for a million runs of `Event` targets ${million_dollars(int(params['packFrom']))} by the same prices"
        " (docs/performance.md)",
    ]


def with_values(template: Template, values: Mapping[str, Any]) -> dict[str, Any]:
    """The template with the values of its parameters in their places; those that are not given have their defaults."""
    declared = template.get("Parameters", {})
    known = {
        name: str(values.get(name, parameter.get("Default", ""))) for name, parameter in declared.items()
    }

    def filled(value: Any) -> Any:
        match value:
            case {"Ref": str(name)} if name in known:
                return known[name]
            case {"Fn::Sub": str(text)}:
                text = _NAMED.sub(lambda match: known.get(match[1], match[0]), text)
                return {"Fn::Sub": text} if "${" in text else text
            case dict():
                return {name: filled(part) for name, part in value.items()}
            case list():
                return [filled(part) for part in value]
        return value

    return {**filled({**template, "Parameters": {}}), "Parameters": known}


def holds(template: Template, name: str) -> bool:
    """Whether a condition of a template with values holds; they compare only constants."""
    ((function, arguments),) = template["Conditions"][name].items()
    return _evaluated(template, function, arguments)


def _evaluated(template: Template, function: str, arguments: Any) -> bool:
    if function == "Condition":
        return holds(template, arguments)
    if function == "Fn::Equals":
        return str(arguments[0]) == str(arguments[1])
    parts = [_evaluated(template, *next(iter(part.items()))) for part in arguments]
    return not parts[0] if function == "Fn::Not" else all(parts) if function == "Fn::And" else any(parts)


def resources(template: Template) -> dict[str, Mapping[str, Any]]:
    """Those whose condition holds, by their names in the template."""
    return {
        name: resource
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or holds(template, resource["Condition"])
    }


def _created(template: Template) -> Iterator[str]:
    counts = Counter(_WORDS.get(resource["Type"], "others") for resource in resources(template).values())
    words = [*dict.fromkeys(_WORDS.values()), "others"]
    yield "creates " + ", ".join(f"{counts[word]} {word}" for word in words if counts[word])


def _changed(template: Template, deployed: Template) -> Iterator[str]:
    now, before = resources(template), resources(deployed)
    values, former = template.get("Parameters", {}), deployed.get("Parameters", {})
    for name in sorted(values):
        if former.get(name, values[name]) != values[name]:
            yield f"{name}={values[name]}, which was {former[name]}"
    for verb, names in (("adds", now.keys() - before.keys()), ("removes", before.keys() - now.keys())):
        if names:
            yield f"{verb} {', '.join(sorted(names))}"
    changes = []
    for name in sorted(now.keys() & before.keys()):
        if different := _differences(now[name], before[name], template, deployed):
            changes.append(f"{name} ({', '.join(different)})")
    if changes:
        yield f"changes {', '.join(changes)}"
    versions = [_version(before), _version(now)]
    yield f"uploads code and layers of version {versions[1]}" + (
        f"; version {versions[0]} runs now" if versions[0] != versions[1] else ""
    )


def _differences(
    resource: Mapping[str, Any], former: Mapping[str, Any], template: Template, deployed: Template
) -> list[str]:
    """The properties that differ; other attributes of the resource under their own names."""
    pairs = [
        (_folded(resource.get("Properties", {}), template), _folded(former.get("Properties", {}), deployed)),
        *(
            ({name: resource.get(name)}, {name: former.get(name)})
            for name in ("DeletionPolicy", "UpdateReplacePolicy")
        ),
    ]
    return sorted(
        name
        for now, before in pairs
        for name in now.keys() | before.keys()
        if _text(now.get(name)) != _text(before.get(name))
    )


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _folded(value: Any, template: Template) -> Any:
    """A value with its conditions evaluated, without the place of archives. Numbers are texts, as AWS gives some so."""
    match value:
        case {"Fn::If": [name, yes, no]}:
            return _folded(yes if holds(template, name) else no, template)
        case dict():
            parts = {name: _folded(part, template) for name, part in value.items() if name not in _PLACES}
            return {name: part for name, part in parts.items() if part != {"Ref": "AWS::NoValue"}}
        case list():
            return [_folded(part, template) for part in value]
        case bool():
            return str(value).lower()
    return str(value)


def _version(named: Mapping[str, Mapping[str, Any]]) -> str:
    """That of Minute8, which each function has in its environment."""
    environment = named["ExecutorLambdaFunction"]["Properties"].get("Environment", {})
    return str(environment.get("Variables", {}).get("VERSION", "before 0.2"))


def idle_dollars(params: Mapping[str, str]) -> float:
    """A month without runs: the lines of docs/idle-cost.md, which a test computes, for what these parameters leave."""
    text = (ROOT / "docs" / "idle-cost.md").read_text()
    dollars = 0.0
    for title, line_dollars in _IDLE_LINE.findall(text):
        is_off = (params["canary"] == OFF and "canary" in title) or (
            params["dashboards"] == OFF and title == "dashboards"
        )
        dollars += 0.0 if is_off else float(line_dollars)
    return dollars


def million_dollars(pack_from: int) -> str:
    """A million runs of the benchmark's mix, from full batches to batches of a fifth: `0.95 to 1.01`."""
    (day,) = kept(["day"])
    table = next(table for table in day.tables if table.title.startswith("The mix by"))
    measured = {int(row[0]): row[3] for row in table.rows}
    near = min(measured, key=lambda value: abs(value - pack_from) if pack_from else -value)
    return str(measured[near])
