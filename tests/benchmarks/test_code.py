"""A kept figure belongs to the code that it measured: `make release` refuses one of other code."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import release
from scripts.benchmarks import __main__ as benchmarks
from scripts.measure import code
from scripts.measure.result import Result


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A benchmark whose function imports `common.used`, which imports `common.deeper`."""
    for name, text in {
        "scripts/benchmarks/speed.py": "def run():\n    from common import used\n",
        "common/__init__.py": "",
        "common/used.py": "from common.deeper import DEPTH\n",
        "common/deeper.py": "DEPTH = 1\n",
        "common/other.py": "OTHER = 1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(code, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "is_measured"),
    [
        ("common/used.py", True),
        ("common/deeper.py", True),
        ("scripts/benchmarks/speed.py", True),
        ("common/other.py", False),
    ],
)
def test_the_digest_is_that_of_what_is_measured(tree: Path, changed: str, is_measured: bool) -> None:
    before = code.digest("speed")
    (tree / changed).write_text((tree / changed).read_text() + "# changed\n")
    assert (code.digest("speed") != before) is is_measured


def test_what_a_benchmark_starts_is_measured_as_well() -> None:
    names = {file.as_posix().removeprefix(f"{code.ROOT}/") for file in code.modules(code._STARTED["reading"])}
    assert {"minute8/api/handler.py", "common/storage/table.py"} <= names


def test_figures_of_other_code_are_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(names: list[str]) -> list[Result]:
        now, before = code.digest("day"), "0"
        return [
            Result("day", 1, [], [], {}, code=now),
            Result("looks", 1, [], [], {}, code=before),
            Result("requests", 0.1, [], [], {}, code=code.digest("requests")),  # too small
        ]

    monkeypatch.setattr(benchmarks, "kept", kept)
    assert set(benchmarks.BENCHMARKS) - set(benchmarks.stale()) == {"day"}
    assert benchmarks._chosen(["stale"]) == benchmarks.stale()


def test_a_release_refuses_stale_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(release, "stale", lambda: ["planning", "day"])
    monkeypatch.setattr(release, "build", lambda _: pytest.fail("it was built"))
    assert release.main([]) == 1
    assert "make bench NAMES=stale (planning, day)" in capsys.readouterr().err
