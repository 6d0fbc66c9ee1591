"""How the package is built. The wheel has one name, `minute8`.

`common` could meet a foreign package of that name, so in the wheel it is `minute8._common`, and the build rewrites the
imports of it. An editable install runs the checkout as it is, with `common` beside `minute8`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

_IMPORT = re.compile(r"^([ \t]*from )common(?=[. ])", re.MULTILINE)


class Build(build_py):
    """Builds into an empty folder: modules that an earlier build left there would get into the wheel."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        for path in Path(self.build_lib).rglob("*.py"):
            path.write_text(_IMPORT.sub(r"\1minute8._common", path.read_text("utf-8")), "utf-8")


is_editable = "editable_wheel" in sys.argv  # the command of setuptools that `pip install -e` runs
COMMON = "common" if is_editable else "minute8._common"
# Only functions send spans, notices and the canary's lateness.
common = find_packages(include=["common", "common.*"], exclude=["common.tracing"])
packages = {name: name.replace("common", COMMON, 1) for name in common}
setup(
    version=json.loads(Path("common/version.json").read_text("utf-8"))["version"],
    packages=[
        *find_packages(include=["minute8", "minute8.*"], exclude=["minute8.canary", "minute8.notifier"]),
        *packages.values(),
    ],
    package_dir={package: name.replace(".", "/") for name, package in packages.items()},
    package_data={
        "minute8": ["py.typed"],
        COMMON: ["version.json"],
        f"{COMMON}.preview": ["former_zones.json"],
    },
    cmdclass={"build_py": Build},
)
