"""Build the wheel of this checkout: the command and the Python clients (setup.py says what is in it)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from scripts.build_layer import ROOT

_FILES: Final = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
FOLDERS: Final = ("minute8", "common")


def copy_source(directory: Path) -> Path:
    """What an install reads, without anything of an earlier build, in a new folder; returns that folder."""
    source = directory / "source"
    source.mkdir()
    for name in _FILES:
        shutil.copy(ROOT / name, source)
    for name in FOLDERS:
        # Other processes may be compiling these modules now: files appear and vanish in __pycache__.
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    return source


def build(folder: Path) -> Path:
    """Build the wheel into `folder`; returns its path. Needs setuptools. Raises RuntimeError with pip's output."""
    options = ("-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index")
    with tempfile.TemporaryDirectory(prefix="minute8-wheel-") as directory:
        source = copy_source(Path(directory))
        command = [sys.executable, "-m", "pip", "wheel", *options, "-w", str(folder), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the wheel was not built:\n{done.stdout}{done.stderr}")
    [built] = folder.glob("*.whl")
    return built
