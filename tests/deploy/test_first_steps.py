"""From `make up` to a first run: the shell that `make up` sets up, `make sample`, a job."""

import subprocess
from pathlib import Path

import pytest

from scripts.embedded import Embedded, first_steps
from tests.waiting import wait_until

pytestmark = [pytest.mark.embedded, pytest.mark.release]


@pytest.fixture(scope="module")
def environment(deployed: Embedded) -> Path:
    return first_steps.write_environment(deployed, "test")


def test_the_first_job_takes_no_more_than_what_is_printed(deployed: Embedded, environment: Path) -> None:
    arn = first_steps.allow_sample_target(deployed, "test")
    _shell(environment, f"minute8 jobs create hello --cron '0 3 * * *' --target {arn}")
    _shell(environment, "minute8 jobs run hello")

    def runs() -> str:
        return _shell(environment, "minute8 runs list hello")

    wait_until(lambda: "succeeded" in runs(), runs)


def test_the_commands_of_the_platform_work_as_well(environment: Path) -> None:
    assert "sample" in _shell(environment, "minute8 tenants list")


def test_the_key_stays_as_long_as_it_works(deployed: Embedded, environment: Path) -> None:
    before = environment.read_text()
    first_steps.write_environment(deployed, "test")
    assert environment.read_text() == before

    stale = [line for line in before.splitlines() if not line.startswith("export MINUTE8_KEY=")]
    environment.write_text("\n".join([*stale, "export MINUTE8_KEY=m8_of_a_state_that_was_wiped"]))
    first_steps.write_environment(deployed, "test")
    assert _shell(environment, "minute8 jobs list")


def test_only_its_owner_reads_the_key(environment: Path) -> None:
    assert environment.stat().st_mode & 0o077 == 0


def _shell(environment: Path, command: str) -> str:
    """Run a command in a shell that has read only this file."""
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f'. "{environment}"; {command}'],
        env={"PATH": "/usr/bin:/bin", "HOME": str(environment.parent), "LANG": "C.UTF-8"},
        cwd=environment.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
