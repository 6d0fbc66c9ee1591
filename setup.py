"""How the package is built. The wheel has `minute8_client`, and `minute8` with other folders inside.

Names like `common` would meet other people's packages. So they are no packages of the environment: they lie in
minute8/folders, which only the command adds to its path (minute8/__main__.py); `minute8.direct` loads them under other
names (minute8/own_modules.py). The files are those of the checkout. An editable install has no such folder, and runs
the checkout.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

PARENT = "minute8.folders"


class BuildAnew(build_py):
    """Builds into an empty folder: modules that an earlier build left there would get into the wheel."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


TOPS = ("api", "cli", "common", "direct", "eventbridge")
# Only functions send spans.
folders = find_packages(
    include=[pattern for top in TOPS for pattern in (top, f"{top}.*")], exclude=["common.tracing"]
)
is_editable = "editable_wheel" in sys.argv  # the command of setuptools that `pip install -e` runs
setup(
    version=json.loads(Path("common/version.json").read_text("utf-8"))["version"],
    packages=[
        "minute8",
        "minute8_client",
        *([] if is_editable else [f"{PARENT}.{name}" for name in folders]),
    ],
    package_dir={f"{PARENT}.{name}": name.replace(".", "/") for name in folders},
    package_data={
        f"{PARENT}.common": ["version.json"],
        f"{PARENT}.common.preview": ["former_zones.json"],
        "minute8_client": ["py.typed"],
    },
    cmdclass={"build_py": BuildAnew},
)
