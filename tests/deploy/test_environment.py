"""Each function is given the variables that its code reads: serverless.yml compared with common/config.py."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import grimp
import pytest
import yaml

from minute8.cli.doctor.inventory import TABLES
from scripts.build_layer import ROOT

SERVICE = yaml.safe_load((ROOT / "serverless.yml").read_text())
FUNCTIONS = {name: function for name, function in SERVICE["functions"].items() if name != "canary"}
CONFIG = ast.parse((ROOT / "common" / "config.py").read_text())
# The doctor reads them of the function. (deploy/live.js sets DEPLOYMENT, which it reads, too.)
FOR_THE_DOCTOR = {"VERSION", "EXECUTOR_TIMEOUT_S"}
FOR_OTHERS = {"VERSION", "POWERTOOLS_SERVICE_NAME"}
HANDLERS = {function["handler"].rpartition(".")[0] for function in FUNCTIONS.values()}
# A deployment makes its parts when they are used, so a function need not have what another one's parts read.
SHARED = {"common.deployment", "common.config"}


def names_in(tree: ast.AST) -> set[str]:
    """The variables that `env["NAME"]` and `env.get("NAME", …)` name."""
    return set(re.findall(r"env(?:\.get\(|\[)'([A-Z0-9_]+)'", ast.unparse(tree)))


@cache
def variables() -> dict[str, set[str]]:
    """Setting or property of Config -> the variables that it is made from."""
    (config,) = [part for part in CONFIG.body if isinstance(part, ast.ClassDef) and part.name == "Config"]
    helpers = {part.name: names_in(part) for part in CONFIG.body if isinstance(part, ast.FunctionDef)}
    settings = [ast.unparse(part.target) for part in config.body if isinstance(part, ast.AnnAssign)]
    of_setting = {setting: {setting.upper()} for setting in settings}
    (from_env,) = [node for node in ast.walk(config) if isinstance(node, ast.Dict)]
    for setting, value in zip(from_env.keys, from_env.values, strict=True):
        called = re.match(r"(\w+)\(env\)", ast.unparse(value))
        of_setting[ast.literal_eval(setting)] = names_in(value) | (helpers[called[1]] if called else set())
    for part in config.body:
        if isinstance(part, ast.FunctionDef) and ast.unparse(part.decorator_list[:1]) == "property":
            read = re.findall(r"self\.(\w+)", ast.unparse(part))
            of_setting[part.name] = set().union(*(of_setting[name] for name in read))
    return of_setting


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("common", "scheduler", "executor", "minute8")


@cache
def read_in(module: str) -> set[str]:
    """The variables of the settings that a module reads."""
    path = Path(ROOT, *module.split("."))
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.unparse(ast.parse(source.read_text()))
    settings = re.findall(r"\b(?:settings|config|config\(\)|_settings)\.(\w+)", text)
    settings += re.findall(r"\brequired\('(\w+)'\)", text)
    return {name for setting in settings for name in variables().get(setting, set())}


def read_by(handler: str) -> set[str]:
    modules = graph().find_upstream_modules(handler) - HANDLERS - SHARED | {handler}
    return set().union(*map(read_in, modules))


def given_to(function: str) -> set[str]:
    return {*FUNCTIONS[function]["environment"], *SERVICE["provider"]["environment"]} - FOR_OTHERS


@pytest.mark.parametrize("handler", sorted(HANDLERS))
def test_functions_are_given_what_their_code_reads(handler: str) -> None:
    functions = [
        name for name, function in FUNCTIONS.items() if function["handler"].startswith(f"{handler}.")
    ]
    variables_given = set().union(*map(given_to, functions))
    assert read_by(handler) - variables_given == set()
    tables = {f"{table.upper()}_TABLE" for table in TABLES if table != "audit"}
    of_any = tables | read_in("common.deployment") | FOR_THE_DOCTOR
    assert variables_given - read_by(handler) - of_any == set()


def test_the_configuration_reads_what_the_functions_are_given() -> None:
    assert set().union(*variables().values()) - FOR_OTHERS == set().union(*map(given_to, FUNCTIONS))


def test_a_variable_that_a_parameter_gives_has_its_name() -> None:
    different = {}
    for function in (SERVICE["provider"], *FUNCTIONS.values()):
        for name, value in function["environment"].items():
            of_parameters = re.findall(r"\$\{param:(\w+)\}|'Ref': '([a-z]\w+)'", str(value))
            of_parameters = [first or second for first, second in of_parameters]
            if of_parameters and name != re.sub("([A-Z])", r"_\1", of_parameters[0]).upper():
                different[name] = value
    assert different == {}
