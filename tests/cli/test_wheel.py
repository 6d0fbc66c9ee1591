"""The wheel and the editable install in clean environments: names, requirements, how much the command loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from common.version import VERSION
from scripts.wheel import FOLDERS, build, copy_source
from tests.docs.test_architecture import ROOT

# What foreign packages beside it may be called: folders of the checkout, and of `minute8`.
_FOREIGN = ("api", "cli", "common", "direct", "eventbridge", "executor", "scheduler")
# A platform's own file: whoever installs the wheel has its types.
_TYPED = """
from typing import Any, assert_type
import minute8
from minute8 import AsyncClient, Client
from minute8.client import Job, NotFound, Run
from minute8 import direct

def over_http(client: Client, session: Any) -> None:
    assert_type(client.put_job("a", {}), Job)
    assert_type(list(client.list_jobs()), list[Job])
    with direct.Client(session, "acme", stage="prod", role="read") as own:
        assert_type(own.wait_for_run("execution"), Run)
    minute8.Nobody  # type: ignore[attr-defined]
    minute8.Operator("https://api.test", "key", transport=1)  # type: ignore[arg-type]
    own.pause_job(name="report")  # type: ignore[call-arg]

async def awaiting(client: AsyncClient, own: direct.AsyncClient) -> str:
    try:
        return (await client.get_job("a"))["job_id"] + (await own.get_job("a"))["owner"]
    except NotFound as problem:
        return problem.detail
"""
# Answers as the API does, without tables.
_PICKLED = """
import json, pickle, sys, boto3
from minute8 import direct
from minute8.client import NotFound
from minute8.direct import in_process

def answer(services, credential, event):
    is_known = event["rawPath"].endswith("/report")
    body = {"job_id": "report"} if is_known else {"type": "not-found", "detail": "no such job", "status": 404}
    return {"statusCode": 200 if is_known else 404, "headers": {}, "body": json.dumps(body)}

in_process.resolve_for, in_process._services = answer, lambda session, stage: None
own = direct.Client(boto3.Session("a", "b", region_name="us-east-1"), "acme", stage="prod", actor="x")
try:
    own.get_job("another")
except NotFound as raised:
    sys.stdout.buffer.write(pickle.dumps([own.get_job("report"), raised]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def client_alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and what it needs without extras."""
    return _environment(tmp_path_factory.mktemp("client"), wheel, extra="")


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with `minute8[cli]`, and foreign packages of its own names beside it."""
    directory = tmp_path_factory.mktemp("command")
    for name in _FOREIGN:
        (directory / name).mkdir()
        (directory / name / "__init__.py").write_text("raise RuntimeError('foreign code was imported')\n")
    python = _environment(directory, wheel, extra="cli")
    (_site_packages(python) / "foreign.pth").write_text(f"{directory}\n")
    return python


@pytest.fixture(scope="module")
def without_http(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with `minute8[direct]`, and foreign packages of our folders' names in it."""
    directory = tmp_path_factory.mktemp("direct")
    python = _environment(directory, wheel, extra="direct")
    for name in _FOREIGN:
        (_site_packages(python) / name).mkdir()
        (_site_packages(python) / name / "__init__.py").write_text("raise RuntimeError('foreign')\n")
    return python


def test_its_only_name_is_minute8(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        tops = {name.split("/")[0] for name in content.namelist()}
    assert tops == {"minute8", f"minute8-{VERSION}.dist-info"}


def test_its_modules_are_the_files_of_the_checkout_with_common_inside(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        sources = {name: content.read(name).decode() for name in content.namelist() if name.endswith(".py")}
    of_checkout = {
        re.sub("^common/", "minute8/_common/", name): (ROOT / name).read_text()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        # Only functions have these.
        if not (name := str(path.relative_to(ROOT))).startswith(
            ("common/tracing/", "minute8/canary/", "minute8/notifier/")
        )
    }
    assert sources.keys() == of_checkout.keys()
    changed = {name: text for name, text in sources.items() if text != of_checkout[name]}
    for name, text in changed.items():
        assert text.replace("minute8._common", "common") == of_checkout[name]
    for name, text in sources.items():
        imported = [
            node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        words = {word for node in imported for word in ast.unparse(node).replace(",", " ").split()}
        assert not [word for word in words if word.split(".")[0] in ("common", "scheduler", "executor")], name


def test_the_client_needs_httpx_alone(client_alone: Path) -> None:
    installed = _run(
        client_alone,
        "-c",
        "import httpx; from minute8 import AsyncClient, Client; print(Client.__name__, AsyncClient.__name__)",
    )
    assert installed.stdout == "Client AsyncClient\n", installed.stderr
    result = _run(client_alone, "-m", "minute8", "--version")
    assert result.returncode == 1
    assert "pip install 'minute8[cli]'" in result.stderr


def test_the_client_without_http_needs_its_extra_alone(without_http: Path) -> None:
    code = (
        "import boto3, sys; from minute8 import direct\n"
        "session = boto3.Session('a', 'b', region_name='us-east-1')\n"
        "print(direct.Client(session, 'acme', stage='prod'), direct.AsyncClient(session, 'acme', stage='prod'))\n"
        f"assert not {set(_FOREIGN)} & set(sys.modules)"
    )
    tried = _run(without_http, "-c", code)
    assert tried.stdout.count("<minute8.direct.") == 2, tried.stderr


def test_what_it_returns_and_raises_survives_a_pickle_into_another_process(without_http: Path) -> None:
    pickled = subprocess.run([without_http, "-I", "-c", _PICKLED], cwd="/", capture_output=True, check=False)
    assert pickled.returncode == 0, pickled.stderr
    code = (
        "import pickle, sys; job, problem = pickle.load(sys.stdin.buffer); "
        f"print(job, problem.detail, type(problem).__module__, {set(_FOREIGN)} & set(sys.modules))"
    )
    loaded = subprocess.run(
        [without_http, "-I", "-c", code], input=pickled.stdout, capture_output=True, check=False
    )
    assert loaded.stdout.decode() == "{'job_id': 'report'} no such job minute8.client.errors set()\n", (
        loaded.stderr
    )


def test_a_strict_type_checker_knows_every_type_of_it(without_http: Path, tmp_path: Path) -> None:
    (tmp_path / "services.py").write_text(_TYPED)
    options = ["--strict", "--no-incremental", "--python-executable", str(without_http)]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "services.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout == "Success: no issues found in 1 source file\n", checked.stdout


def test_every_module_of_the_api_can_be_imported_beside_foreign_ones(without_http: Path) -> None:
    code = (
        "import importlib, pkgutil; from minute8 import api, direct\n"
        "for top in (api, direct):\n"
        "    for module in pkgutil.walk_packages(top.__path__, f'{top.__name__}.'):\n"
        # PyJWT and cryptography are beside the API where it accepts tokens.
        "        if not module.name.endswith('issuer_keys'):\n"
        "            importlib.import_module(module.name)\n"
        "from minute8.api.app import ROUTES\n"
        "print(len(ROUTES))"
    )
    tried = _run(without_http, "-c", code)
    assert re.fullmatch(r"[0-9]{2,3}\n", tried.stdout), tried.stderr


def test_the_command_reads_calendar_files(command: Path) -> None:
    code = (
        "from minute8.cli.icalendar_dates import all_day_dates; import datetime\n"
        "text = 'BEGIN:VCALENDAR\\r\\nEND:VCALENDAR\\r\\n'\n"
        "day = datetime.date(2026, 1, 1)\n"
        "print(all_day_dates(text, day, day).events)"
    )
    tried = _run(command, "-c", code)
    assert tried.stdout == "0\n", tried.stderr


def test_the_command_says_its_version(command: Path) -> None:
    result = subprocess.run(
        [command.with_name("minute8"), "--version"], capture_output=True, text=True, check=False
    )
    assert result.stdout == f"minute8 {VERSION}\n", result.stderr


def test_the_command_works_next_to_a_foreign_common(command: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run([command, "-I", "-c", "import common"], check=True, capture_output=True)
    words = ["preview", "0 9 * * *", "--json", "--from", "2026-11-21T00:00:00Z"]
    result = _run(command, "-m", "minute8", *words)
    assert "2026-11-21T09:00:00Z" in result.stdout, result.stderr


def test_every_module_of_it_can_be_imported(command: Path) -> None:
    code = (
        "import pkgutil, importlib, minute8\n"
        "for module in pkgutil.walk_packages(minute8.__path__, 'minute8.'):\n"
        "    if not module.name.startswith(('minute8.api.', 'minute8.direct')):\n"
        "        importlib.import_module(module.name)\n"
    )
    done = _run(command, "-c", code)
    assert done.returncode == 0, done.stderr


def test_the_reader_of_icalendar_finds_itself_in_a_process_of_its_own(command: Path) -> None:
    code = (
        "from datetime import date;"
        "from minute8.cli.icalendar_dates import all_day_dates;"
        "text = 'BEGIN:VCALENDAR\\r\\nBEGIN:VEVENT\\r\\nUID:1\\r\\nDTSTART;VALUE=DATE:20261224\\r\\n"
        "END:VEVENT\\r\\nEND:VCALENDAR\\r\\n';"
        "print(*all_day_dates(text, date(2026, 1, 1), date(2026, 12, 31)).dates)"
    )
    assert _run(command, "-c", code).stdout == "2026-12-24\n"


def test_an_editable_install_runs_the_checkout_as_it_is_now(tmp_path: Path) -> None:
    source = copy_source(tmp_path)
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["cli"], "setuptools"]
    _link_all([Requirement(text) for text in needed], "", _site_packages(python))
    options = ["--no-deps", "--no-build-isolation", "--no-index"]
    _pip("--python", str(python), "install", *options, "--editable", str(source))

    (source / "common" / "version.json").write_text('{"version": "7.8.9"}')
    command = str(python.with_name("minute8"))
    version = _run(python, command, "--version")
    assert version.stdout == "minute8 7.8.9\n", version.stderr
    preview = _run(python, command, "preview", "0 9 * * *", "--json", "--from", "2026-11-21T00:00:00Z")
    assert "2026-11-21T09:00:00Z" in preview.stdout, preview.stderr
    modules = _run(
        python,
        "-c",
        "import minute8.client as m, common as c; print(m.Client.__name__, m.__file__, c.__file__)",
    )
    files = f"{source / 'minute8' / 'client' / '__init__.py'} {source / 'common' / '__init__.py'}"
    assert modules.stdout == f"Client {files}\n", modules.stderr


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        (["--version"], {"httpx", "pydantic", "botocore", "croniter", "icalendar", "holidays", "yaml"}),
        (["--help"], {"httpx", "pydantic", "botocore", "croniter", "icalendar", "holidays", "yaml"}),
        (
            ["jobs", "list"],
            {"botocore", "croniter", "icalendar", "holidays", "yaml", "minute8.client.asynchronous"},
        ),
    ],
)
def test_the_command_loads_what_it_needs_and_no_more(
    command: Path, words: list[str], unneeded: set[str]
) -> None:
    """The start takes as long as loading its modules. They are counted, since a time would depend on the machine."""
    code = (
        "import sys\n"
        f"sys.argv = ['minute8', '--url', 'http://127.0.0.1:1', '--key', 'k', *{words!r}]\n"
        "try:\n"
        "    from minute8.__main__ import main\n"
        "    main()\n"
        "except SystemExit:\n"
        "    print('LOADED', *sys.modules)\n"
    )
    loaded = set(_run(command, "-c", code).stdout.partition("LOADED")[2].split())
    assert loaded, "the command did not end as it should"
    assert not loaded & unneeded
    # typer reads the parameters of a command with pydantic.
    libraries = "import sys, typer, pydantic, rich.console, rich.table, httpx; print(len(sys.modules))"
    assert len(loaded) < 1.5 * int(_run(command, "-c", libraries).stdout)


def _environment(directory: Path, wheel: Path, extra: str) -> Path:
    """A fresh environment with the wheel and the versions of what it declares that this machine has."""
    venv.create(directory / "venv", with_pip=False, symlinks=True)
    python = directory / "venv" / "bin" / "python"
    _pip("--python", str(python), "install", "--no-deps", "--no-index", str(wheel))
    with zipfile.ZipFile(wheel) as content:
        metadata = content.read(f"minute8-{VERSION}.dist-info/METADATA").decode()
    requirements = [Requirement(line) for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M)]
    _link_all(requirements, extra, _site_packages(python))
    return python


def _link_all(requirements: list[Requirement], extra: str, site: Path, seen: set[str] | None = None) -> None:
    """Link the distributions, and what they require, from this environment."""
    seen = set() if seen is None else seen
    for requirement in requirements:
        if requirement.name.lower() in seen or (
            requirement.marker and not requirement.marker.evaluate({"extra": extra})
        ):
            continue
        seen.add(requirement.name.lower())
        installed = distribution(requirement.name)
        for top in {path.parts[0] for path in installed.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(installed.locate_file(top))))
        _link_all([Requirement(inner) for inner in installed.requires or ()], "", site, seen)


def _site_packages(python: Path) -> Path:
    [site_packages] = (python.parents[1] / "lib").glob("python3*/site-packages")
    return site_packages


def _run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Isolated from the variables and the directory of the test."""
    command = [str(python), "-I", *arguments]
    return subprocess.run(command, cwd=python.parent, capture_output=True, text=True, check=False)


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
