"""How the package is built. In the wheel, `minute8` is the folder cli/ with common/ and eventbridge/ inside.

In a checkout these folders are packages of their own. In a user's environment, such names would meet other people's:
the wheel moves them below `minute8` and rewrites their imports. An editable install cannot rewrite. It makes the
folders importable by their own names, and cli/ by the name `minute8` too, which the console script imports.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

INSTALLED = {"cli": "minute8", "common": "minute8.common", "eventbridge": "minute8.eventbridge"}
MOVED_IMPORT = re.compile(rf"^(\s*from )({'|'.join(INSTALLED)})(?=[.\w]* import )", re.M)


def installed_name(module: str) -> str:
    """What a module of a checkout is called in the wheel."""
    top, dot, rest = module.partition(".")
    return INSTALLED.get(top, top) + dot + rest


def rewritten(source: str) -> str:
    """The source with its imports as they are called in the wheel. tests/cli/test_wheel.py finds any that is left."""
    return MOVED_IMPORT.sub(lambda moved: moved[1] + INSTALLED[moved[2]], source)


class BuildMoved(build_py):
    """Copies the modules, and rewrites those that moved."""

    def run(self) -> None:
        # Modules that an earlier build left there would get into the wheel.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()

    def build_module(self, module: Any, module_file: Any, package: Any) -> Any:
        built = super().build_module(module, module_file, package)
        name = package if isinstance(package, str) else ".".join(package)
        if name.partition(".")[0] == "minute8":
            target = Path(self.get_module_outfile(self.build_lib, name.split("."), module))
            target.write_text(rewritten(Path(module_file).read_text("utf-8")), "utf-8")
        return built


folders = find_packages(include=["cli", "cli.*", "common", "common.*", "eventbridge", "minute8_client"])
if "editable_wheel" in sys.argv:  # the command of setuptools that `pip install -e` runs
    packages, package_dir = [*folders, "minute8"], {"minute8": "cli"}
else:
    packages = [installed_name(folder) for folder in folders]
    package_dir = {installed: folder for folder, installed in INSTALLED.items()}
setup(
    version=json.loads(Path("common/version.json").read_text("utf-8"))["version"],
    packages=packages,
    package_dir=package_dir,
    package_data={"minute8.common": ["version.json"], "minute8_client": ["py.typed"]},
    cmdclass={"build_py": BuildMoved},
)
