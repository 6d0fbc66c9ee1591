"""Compare pictures of the console before a change and after it: `python -m scripts.pictures`, while `make demo` runs.

Each view is shown in both themes at three widths: the console of a commit (`--against main`) and that of the work tree,
with the same answers. Pictures that differ go to build/pictures; the status is 1 if there are any. No picture is
committed, since fonts differ from machine to machine.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from scripts.console import build_to
from scripts.embedded import DEFAULT_STATE_DIR, find
from scripts.embedded.process import ROOT
from scripts.screenshots import Keys, in_browser, prepared

_DIRECTORY: Final = ROOT / "build" / "pictures"
_SOURCES: Final = ("package.json", "package-lock.json", "console", "clients/typescript")


def main() -> int:
    """Compare all pictures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pictures", description=__doc__)
    parser.add_argument("--state-dir", type=Path, default=DEFAULT_STATE_DIR)
    parser.add_argument("--against", default="main", help="the commit to compare with")
    parser.add_argument(
        "--only", default="", help="a part of the views' names, such as jobs/; all if left out"
    )
    options = parser.parse_args()
    embedded = find(options.state_dir)
    if embedded is None or not embedded.api_url:
        print("the embedded AWS is not running: `make demo` starts it", file=sys.stderr)
        return 2
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    consoles = {
        "before": build_to(_DIRECTORY / "before", _checkout(options.against) / "console"),
        "after": build_to(_DIRECTORY / "after"),
    }
    keys = Keys.create(embedded)
    job, run = prepared(embedded, keys.lively)
    groups = [
        ("tenant", keys.lively, _tenant_views(job, run)),
        ("operator", keys.operator, ["", "keys", "audit", f"tenants/{keys.lively_tenant}"]),
    ]
    stage = {
        "url": f"{embedded.api_url}/console",
        "directory": str(_DIRECTORY),
        "consoles": {name: str(path) for name, path in consoles.items()},
        "views": [
            {"who": who, "key": key, "views": chosen}
            for who, key, views in groups
            if (chosen := [view for view in views if options.only in view])
        ],
    }
    return in_browser("tests/pictures.ts", stage)


def _tenant_views(job: str, run: str) -> list[str]:
    of_job = [f"jobs/{job}{tab}" for tab in ("", "/schedule", "/definition", "/history", "/edit")]
    lists = ["", "jobs", "new-job", "runs", "failures", "upcoming"]
    return [*lists, *of_job, f"runs/{run}", "calendars", "subscriptions", "keys", "audit", "quota", "api"]


def _checkout(commit: str) -> Path:
    """The console's sources of a commit, beside the packages of this checkout."""
    folder = _DIRECTORY / "sources"
    archive = subprocess.run(
        ["git", "archive", commit, *_SOURCES],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as sources:
        sources.extractall(folder, filter="data")
    (folder / "node_modules").symlink_to(ROOT / "node_modules")
    return folder


if __name__ == "__main__":
    sys.exit(main())
