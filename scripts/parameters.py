"""The parameters of a deployment: read from serverless.yml and the command line, and checked before they reach AWS."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import yaml

from common.config import EMBEDDED_STAGES, OFF, Config
from common.errors import InvalidInput
from minute8.api.auth.tokens import TokenSettings
from scripts.build_layer import ROOT

# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html
_RETENTIONS: Final = (
    *(
        1,
        3,
        5,
        7,
        14,
        30,
        60,
        90,
        120,
        150,
        180,
        365,
        400,
        545,
        731,
        1096,
        1827,
        2192,
        2557,
        2922,
        3288,
        3653,
    ),
)
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "logLevel": ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "logRetentionInDays": tuple(map(str, _RETENTIONS)),
    "platformLogLevel": ("DEBUG", "INFO", "WARN"),
    "apiAccessLog": ("true", OFF),
    "savedQueries": ("true", OFF),
    "plainHttpTargets": ("true", OFF),
    "canary": ("true", OFF),
    "dashboards": ("true", OFF),
    "pointInTimeRecovery": ("true", "false"),
    "deletionProtection": ("true", "false"),
    "deletionPolicy": ("RetainExceptOnCreate", "Retain", "Delete"),
}
# The smallest and the largest value.
_NUMBERS: Final[dict[str, tuple[int, int]]] = {
    "schedulerMemoryMb": (128, 10_240),
    "plannerMemoryMb": (128, 10_240),
    "executorMemoryMb": (128, 10_240),
    "apiMemoryMb": (128, 10_240),
    "notifierMemoryMb": (128, 10_240),
    "executorTimeoutS": (5, 900),
    "plannerShareEntries": (1, 1_000_000),
    "packFrom": (0, 1_000_000),
    "spreadS": (0, 3_600),
    "dailyReportHour": (0, 23),
    "accountConcurrency": (10, 1_000_000),
    "maxReceiveCount": (1, 1_000),
    "apiThrottleRate": (1, 10_000),
    "apiThrottleBurst": (1, 5_000),
    "apiReservedConcurrency": (1, 10_000),
    "executorReservedConcurrency": (1, 10_000),
    "maximumConcurrency": (2, 1_000),
    "minimumPollers": (2, 200),
    "maximumPollers": (2, 2_000),
    # A new table provides 12,000 and 4,000 anyway; more than 40,000 needs a higher account quota.
    "leastUnits": (5, 40_000),
    "mostUnits": (5, 40_000),
    "warmReads": (12_000, 40_000),
    "warmWrites": (4_000, 40_000),
}
# Of the numbers, those that can be off; and the texts that can be off.
_OPTIONAL_NUMBERS: Final = frozenset(
    {
        *("apiReservedConcurrency", "executorReservedConcurrency"),
        *("maximumConcurrency", "minimumPollers", "maximumPollers"),
        *("leastUnits", "mostUnits", "warmReads", "warmWrites"),
    }
)
_OPTIONAL_TEXTS: Final = frozenset(
    {
        *("jwtIssuer", "jwtAudience", "jwtRoleClaim", "jwksUrl", "jwtConsoleClient"),
        *("outcomeSenders", "apiPathPrefix", "alarmTopicArn", "runsExport", "scheduleGroupMetrics"),
        *("registrationRules", "kmsKeyArn", "auditExport", "dailyReportTopicArn", "secretsKey"),
        *("otlpEndpoint", "otlpHeaders"),
    }
)
# As the value of a text, this is a slip.
_MEANT_AS_OFF: Final = ("none", "null", "false", "no", "disabled")
# Each parameter that can be off.
OPTIONAL: Final = (
    _OPTIONAL_NUMBERS | _OPTIONAL_TEXTS | {name for name, words in _WORDS.items() if OFF in words}
)
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_GROUP: Final = re.compile(r"[A-Za-z0-9._-]{1,64}/[0-9a-zA-Z-_.]{1,64}\Z")
# Each has three metrics, which CloudWatch sells.
_MAX_GROUP_METRICS: Final = 100
_KMS_KEY: Final = r"arn:aws[\w-]*:kms:[\w-]+:\d{12}:key/[\w-]+\Z"
# Of texts that can be off: what they look like, and what is accepted.
_PATTERNS: Final[dict[str, tuple[re.Pattern[str], str]]] = {
    **dict.fromkeys(
        ("runsExport", "auditExport"),
        (
            re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z"),
            f"the name of a bucket of S3, or {OFF}",
        ),
    ),
    "kmsKeyArn": (
        re.compile(_KMS_KEY),
        f"the ARN of a key of KMS in the stage's region, or {OFF}",
    ),
    "secretsKey": (
        re.compile(rf"own\Z|{_KMS_KEY}"),
        f"own, the ARN of a key of KMS in the stage's region, or {OFF}",
    ),
    "alarmTopicArn": (
        re.compile(r"arn:aws[\w-]*:sns:[\w-]+:\d{12}:[\w-]+(\.fifo)?\Z"),
        f"the ARN of an SNS topic, or {OFF}",
    ),
    # http only to an extension in the function's own environment: the headers are secret.
    "otlpEndpoint": (
        re.compile(r"(https://|http://(localhost|127\.0\.0\.1)(?=[:/]|\Z))[\w.:/-]*\Z", re.ASCII),
        f"an address that begins with https:// (or http://localhost), or {OFF}",
    ),
    "otlpHeaders": (
        re.compile(r"(/[\w.-]+)+\Z", re.ASCII),
        f"the name of a parameter of SSM, such as /minute8/prod/otlp-headers, or {OFF}",
    ),
    # No e-mail address can subscribe to a FIFO topic.
    "dailyReportTopicArn": (
        re.compile(r"arn:aws[\w-]*:sns:[\w-]+:\d{12}:[\w-]+\Z"),
        f"the ARN of a standard SNS topic, or {OFF}",
    ),
}
_STAGE: Final = re.compile(r"[a-z][a-z0-9-]{0,19}\Z")
# The default names the deployment's own account and region in CloudFormation's way.
_TARGET: Final = re.compile(r"arn:(aws[\w-]*|\$\{AWS::Partition\}):[\w-]+:[\w*${}:-]*:[^\s,]+\Z")
_RULE: Final = re.compile(r"arn:aws[\w-]*:events:[\w*-]+:(\d{12}|\*):rule/[\w*./-]+\Z")
_SENDER: Final = re.compile(r"(\d{12}|arn:aws[\w-]*:iam::\d{12}:(root|role/[\w+=.@/-]+))\Z")


def read(stage: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """All parameters of a stage, as text: the defaults, then the stage's, then these overrides."""
    params = _stored()
    merged = {**params["default"], **params.get(stage, {}), **overrides}
    # PyYAML reads an unquoted `off` as false; osls does not.
    return {
        name: OFF if value is False and name in OPTIONAL else _text(value)
        for name, value in merged.items()
        if not isinstance(value, dict)
    }


def chosen(stage: str, overrides: Mapping[str, str]) -> frozenset[str]:
    """The parameters that the stage has in `serverless.yml`, and the overrides. They can be off, too."""
    return frozenset(_stored().get(stage, {})) | overrides.keys()


def _stored() -> Mapping[str, Mapping[str, Any]]:
    params: Mapping[str, Mapping[str, Any]] = yaml.safe_load((ROOT / "serverless.yml").read_text())["params"]
    return params


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


def _problems(params: Mapping[str, str]) -> Iterator[str]:
    defaults = read("", {})
    yield from _unknown_names(params, defaults)
    yield from _bad_values(params, defaults)
    yield from _bad_pairs(params)
    yield from _bad_targets(params["targetArns"])
    yield from _bad_tokens(params)
    yield from _bad_texts({name: "" if params[name] == OFF else params[name] for name in _OPTIONAL_TEXTS})


def _unknown_names(params: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(params.keys() - defaults.keys()):
        near = difflib.get_close_matches(name, defaults, n=1)
        meant = f"did you mean {near[0]}?" if near else "docs/deploying.md lists them"
        yield f"{name}: there is no such parameter; {meant}"


def _bad_values(params: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[str]:
    for name, words in _WORDS.items():
        if params[name] not in words:
            yield f"{name}={params[name]} is not valid; accepted: {', '.join(words)}"
    for name, (least, most) in _NUMBERS.items():
        value = params[name]
        or_off = f", or {OFF}" if name in _OPTIONAL_NUMBERS else ""
        if or_off and value == OFF:
            continue
        if not value.isdecimal() or not least <= int(value) <= most:
            yield f"{name}={value} is not valid; accepted: a whole number from {least} to {most}{or_off}"
    for name in sorted(defaults.keys() - _WORDS.keys() - _NUMBERS.keys()):
        if not params[name]:
            yield f"{name} is empty; accepted: a value{f', or {OFF}' if name in _OPTIONAL_TEXTS else ''}"
    for name, least_share, most_share in (
        ("serviceLatenessS", 0.1, 3_600),
        ("serviceObjective", 0.5, 0.99999),
        ("otlpRatio", 0, 1),
    ):
        if not _is_within(params[name], least_share, most_share):
            yield f"{name}={params[name]} is not valid; accepted: a number from {least_share} to {most_share}"


def _bad_pairs(params: Mapping[str, str]) -> Iterator[str]:
    for least_name, most_name in (("minimumPollers", "maximumPollers"), ("leastUnits", "mostUnits")):
        pair = [params[least_name], params[most_name]]
        if pair.count(OFF) == 1:
            yield f"{least_name} and {most_name}: give both or none"
        elif all(map(str.isdecimal, pair)) and int(pair[0]) > int(pair[1]):
            yield f"{least_name}={pair[0]} is more than {most_name}={pair[1]}"


def _bad_texts(texts: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the texts of parameters that can be off; they are empty if they are off."""
    for name in sorted(_OPTIONAL_TEXTS):
        if texts[name].lower() in _MEANT_AS_OFF:
            yield f"{name}={texts[name]} is not valid; accepted: a value, or {OFF}"
    for sender in filter(None, texts["outcomeSenders"].split(",")):
        if not _SENDER.match(sender):
            yield f"outcomeSenders: {sender!r} is not valid; accepted: account ids and ARNs of roles, comma-separated"
    yield from _bad_groups(texts["scheduleGroupMetrics"])
    for rule in filter(None, texts["registrationRules"].split(",")):
        if not _RULE.match(rule):
            yield f"registrationRules: {rule!r} is not valid; accepted: ARNs of rules of EventBridge, comma-separated"
    for name, (pattern, accepted) in _PATTERNS.items():
        if texts[name] and not pattern.match(texts[name]):
            yield f"{name}={texts[name]} is not valid; accepted: {accepted}"


def _bad_targets(text: str) -> Iterator[str]:
    """IAM refuses a role with one of these when much of the stack is there already."""
    for target in text.split(","):
        if not _TARGET.match(target):
            yield f"targetArns: {target!r} is not valid; accepted: ARNs, comma-separated"


def _bad_tokens(params: Mapping[str, str]) -> Iterator[str]:
    """What the API would say of the settings of signed tokens, at each request."""
    texts = {name: "" if value == OFF else value for name, value in params.items() if name.startswith("jw")}
    given_texts = [name for name in sorted(_OPTIONAL_TEXTS) if texts.get(name)]
    if given_texts and not texts["jwtIssuer"]:
        yield f"jwtIssuer: it must be given with {given_texts[0]}"
        return
    environment = {re.sub("([A-Z])", r"_\1", name).upper(): value for name, value in texts.items()}
    try:
        TokenSettings.of(Config.from_env(environment))
    except InvalidInput as error:
        yield str(error)


def _bad_groups(text: str) -> Iterator[str]:
    groups = [group for group in text.split(",") if group]
    for group in groups:
        if not _GROUP.match(group):
            yield f"scheduleGroupMetrics: {group!r} is not valid; accepted: acme/billing,acme/default"
    if len(groups) > _MAX_GROUP_METRICS:
        yield f"scheduleGroupMetrics names {len(groups)} groups; accepted: at most {_MAX_GROUP_METRICS}"


def _is_within(text: str, least: float, most: float) -> bool:
    try:
        return least <= float(text) <= most
    except ValueError:
        return False


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
