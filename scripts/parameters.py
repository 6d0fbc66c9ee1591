"""The parameters of a deployment, with values of its stage and the command line, checked before they reach AWS.

deploy/parameters.yml declares them in CloudFormation's words; serverless.yml has the stages.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from common.config import EMBEDDED_STAGES, OFF, Config
from common.errors import InvalidInput
from minute8.api.auth.tokens import TokenSettings
from scripts.build_layer import ROOT

# As the value of a text, this is a slip.
_MEANT_AS_OFF: Final = ("none", "null", "false", "no", "disabled")
_DECLARED: Final[Mapping[str, Any]] = yaml.safe_load((ROOT / "deploy" / "parameters.yml").read_text())


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a parameter accepts, as CloudFormation has it."""

    declaration: Mapping[str, Any]

    @property
    def meaning(self) -> str:
        """What it does."""
        return str(self.declaration["Description"])

    @property
    def accepted(self) -> str:
        """What it accepts, in words."""
        if values := self.declaration.get("AllowedValues"):
            return ", ".join(map(str, values))
        least, most = (self.declaration.get(bound) for bound in ("MinValue", "MaxValue"))
        return str(self.declaration.get("ConstraintDescription", f"a whole number from {least} to {most}"))

    @property
    def pattern(self) -> str:
        """Which texts it accepts; empty for words and numbers."""
        return str(self.declaration.get("AllowedPattern", ""))

    def refusal(self, name: str, value: str) -> str | None:
        """Why the value is none; None if it is one. Of a list, the first text that is none."""
        is_list = "(^|,)" in self.pattern
        for text in value.split(",") if is_list else [value]:
            if not self._accepts(text):
                parameter_text = f"{name}: {text!r}" if is_list else f"{name}={text}"
                return f"{parameter_text} is not valid; accepted: {self.accepted}"
        return None

    def _accepts(self, text: str) -> bool:
        if values := self.declaration.get("AllowedValues"):
            return text in map(str, values)
        if self.pattern:
            is_slip = self.pattern.startswith(OFF) and text.lower() in _MEANT_AS_OFF
            return not is_slip and re.fullmatch(self.pattern, text, re.ASCII) is not None
        if "ConstraintDescription" not in self.declaration and not text.isdecimal():
            return False
        try:
            return bool(self.declaration["MinValue"] <= float(text) <= self.declaration["MaxValue"])
        except ValueError:
            return False


PARAMETERS: Final[Mapping[str, Parameter]] = {
    name: Parameter(declaration)
    for part in ("Parameters", "OfTheTool")
    for name, declaration in _DECLARED[part].items()
}
DEFAULTS: Final[Mapping[str, Any]] = {
    name: parameter.declaration["Default"] for name, parameter in PARAMETERS.items()
}
# Each parameter that can be off.
OPTIONAL: Final = frozenset(
    name
    for name, parameter in PARAMETERS.items()
    if parameter.pattern.startswith(OFF) or OFF in parameter.declaration.get("AllowedValues", ())
)
# Those of signed tokens; the settings of the API have the same names.
OF_TOKENS: Final = frozenset(name for name in PARAMETERS if name.startswith("jw") and "Path" not in name)
# Each has three metrics, which CloudWatch sells.
_MAX_GROUP_METRICS: Final = 100
_STAGE: Final = re.compile(r"[a-z][a-z0-9-]{0,19}\Z")


def read(stage: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """All parameters of a stage, as text: the defaults, then the stage's, then these overrides."""
    merged = {**DEFAULTS, **_stored(stage), **overrides}
    # PyYAML reads an unquoted `off` as false; osls does not.
    return {
        name: OFF if value is False and name in OPTIONAL else _yaml_text(value)
        for name, value in merged.items()
        if not isinstance(value, dict)
    }


def chosen(stage: str, overrides: Mapping[str, str]) -> frozenset[str]:
    """The parameters that the stage has in `serverless.yml`, and the overrides. They can be off, too."""
    return frozenset(_stored(stage)) | overrides.keys()


def _stored(stage: str) -> Mapping[str, Any]:
    params = yaml.safe_load((ROOT / "serverless.yml").read_text())["params"]
    values: Mapping[str, Any] = {**params, "default": {}}.get(stage, {})
    return values


def given_in(arguments: Sequence[str]) -> dict[str, str]:
    """The values of `--param name=value` and `--param=name=value`, as in osls. Raises ValueError."""
    given_values: dict[str, str] = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name != "--param":
            continue
        text = (value if equals else next(rest, "")).strip("\"'")
        parameter, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"--param wants name=value, not {text!r}")
        if not value:
            raise ValueError(
                f"--param {parameter}= has no value; accepted: {parameter}={OFF} where it can be off"
            )
        given_values[parameter] = value
    return given_values


def pairs(params: Mapping[str, str]) -> list[str]:
    """`name=value` of each."""
    return [f"{name}={value}" for name, value in sorted(params.items())]


def arguments_of(params: Mapping[str, str]) -> list[str]:
    """What osls takes for these parameters."""
    return [f"--param={pair}" for pair in pairs(params)]


def refusals(stage: str, osls_options: Sequence[str]) -> list[str]:
    """What is wrong with a stage and the parameters on the command line, one sentence each."""
    try:
        return problems(stage, read(stage, given_in(osls_options)))
    except ValueError as error:
        return [str(error)]


def problems(stage: str, params: Mapping[str, str]) -> list[str]:
    """What AWS would refuse or what could not work, one sentence each. Pure."""
    if stage in EMBEDDED_STAGES:  # they name layers of this machine and a fixed API id
        return [f"stage {stage!r} is for the embedded AWS alone; accepted: dev, or a name of your own"]
    return [*_problems(params), *stage_problems(stage)]


def stage_problems(stage: str) -> list[str]:
    """What is wrong with the name of a stage. Pure."""
    if _STAGE.match(stage):
        return []
    return [f"stage {stage!r} is not valid; accepted: a-z, 0-9 and -, at most 20, a letter first"]


def value_problems(params: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with each of these parameters by itself. Pure."""
    for name, value in params.items():
        if name in PARAMETERS:
            if refusal := PARAMETERS[name].refusal(name, value):
                yield refusal
            continue
        near = difflib.get_close_matches(name, PARAMETERS, n=1)
        meant = f"did you mean {near[0]}?" if near else "docs/deploying.md lists them"
        yield f"{name}: there is no such parameter; {meant}"


def _problems(params: Mapping[str, str]) -> Iterator[str]:
    yield from value_problems(params)
    yield from _bad_pairs(params)
    if (count := len(params["scheduleGroupMetrics"].split(","))) > _MAX_GROUP_METRICS:
        yield f"scheduleGroupMetrics names {count} groups; accepted: at most {_MAX_GROUP_METRICS}"
    if not any(value_problems({name: params[name] for name in OF_TOKENS})):
        yield from _bad_tokens(params)


def _bad_pairs(params: Mapping[str, str]) -> Iterator[str]:
    for least_name, most_name in (("minimumPollers", "maximumPollers"), ("leastUnits", "mostUnits")):
        pair = [params[least_name], params[most_name]]
        if pair.count(OFF) == 1:
            yield f"{least_name} and {most_name}: give both or none"
        elif all(map(str.isdecimal, pair)) and int(pair[0]) > int(pair[1]):
            yield f"{least_name}={pair[0]} is more than {most_name}={pair[1]}"


def _bad_tokens(params: Mapping[str, str]) -> Iterator[str]:
    """What the API would say of the settings of signed tokens, at each request."""
    texts = {name: "" if value == OFF else value for name, value in params.items() if name in OF_TOKENS}
    given_texts = [name for name in sorted(texts) if texts[name] and name in OPTIONAL]
    if given_texts and not texts["jwtIssuer"]:
        yield f"jwtIssuer: it must be given with {given_texts[0]}"
        return
    environment = {re.sub("([A-Z])", r"_\1", name).upper(): value for name, value in texts.items()}
    try:
        TokenSettings.of(Config.from_env(environment))
    except InvalidInput as error:
        yield str(error)


def _yaml_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
