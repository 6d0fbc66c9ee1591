"""The seconds of an update in which Lambda runs a function's old code with its new configuration and layer.

Lambda changes configuration and code by two calls. Here each version's functions start with another version's
environment and with the present dependencies, without those of signed tokens, as `Init` does.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.upgrade.versions import NEXT, ROOT, checked_out

NOW = "this version"
WINDOWS = [(NEXT.name, NOW), (NOW, NEXT.name)]
# Nothing listens there: connections that cannot be opened in the init phase are opened by the first request.
NOWHERE = "http://127.0.0.1:1"
STARTS = """
import importlib, json, sys
sys.modules["jwt"] = None  # the layer of signed tokens is attached with an issuer alone
module, function = sys.argv[1].rsplit(".", 1)
handle = getattr(importlib.import_module(module), function)
event = json.loads(sys.argv[2])
print(json.dumps(handle(event, None) if event else None))
"""
VERSION_REQUEST = {
    "version": "2.0",
    "routeKey": "ANY /v1",
    "rawPath": "/v1",
    "rawQueryString": "",
    "headers": {},
    "requestContext": {
        "requestId": "r",
        "stage": "$default",
        "http": {"method": "GET", "path": "/v1", "sourceIp": "10.0.0.1"},
    },
    "isBase64Encoded": False,
}


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    yield {NEXT.name: checked_out(NEXT, tmp_path_factory.mktemp("release"), ()), NOW: ROOT}


def functions_of(checkout: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Each function's handler and environment, as deployed with the defaults of its template."""
    template, declared = (
        yaml.safe_load((checkout / name).read_text()) for name in ("serverless.yml", "deploy/parameters.yml")
    )
    params = {
        name: declaration["Default"] for part in declared.values() for name, declaration in part.items()
    }
    shared = template["provider"]["environment"]
    return {
        name: (
            function["handler"],
            {key: _value(value, params) for key, value in (shared | function.get("environment", {})).items()},
        )
        for name, function in template["functions"].items()
        if "environment" in function
    }


def _value(value: Any, params: Mapping[str, Any]) -> str:
    match value:
        case {"Ref": str(name)}:
            return str(params.get(name, "a-resource"))
        case {"Fn::If": [_, _, otherwise]}:  # whether a parameter is on, which it is not by default
            return _value(otherwise, params)
        case dict():
            return "a-resource"
    return re.sub(r"\$\{param:(\w+)\}", lambda match: str(params.get(match[1], "x")), str(value))


@pytest.mark.parametrize(("code", "configuration"), WINDOWS)
def test_functions_start_with_the_configuration_of_the_other_version(
    checkouts: Mapping[str, Path], code: str, configuration: str
) -> None:
    handlers, environments = functions_of(checkouts[code]), functions_of(checkouts[configuration])
    for name in handlers.keys() & environments.keys():
        handler, environment = handlers[name][0], environments[name][1]
        event = VERSION_REQUEST if name == "api" else {}
        done = subprocess.run(
            [sys.executable, "-c", STARTS, handler, json.dumps(event)],
            cwd=checkouts[code],
            env={
                "PATH": os.environ["PATH"],
                "PYTHONDONTWRITEBYTECODE": "1",
                "AWS_LAMBDA_FUNCTION_NAME": name,
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "test",
                "AWS_SECRET_ACCESS_KEY": "test",
                "AWS_ENDPOINT_URL": NOWHERE,
                "POWERTOOLS_METRICS_NAMESPACE": "Minute8",
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, (
            f"{code}'s {name} with the configuration of {configuration}: {done.stderr[-2000:]}"
        )
        if event:
            assert json.loads(done.stdout.splitlines()[-1])["statusCode"] < 500, done.stdout
