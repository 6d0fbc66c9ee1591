"""How the wheel is made: `minute8` is the folder cli/ with common/ inside, and `minute8_client` is itself.

In a checkout `cli` and `common` are packages of their own. Installed, such names would meet other people's, so the
build moves both below `minute8` and rewrites their absolute imports. What is installed is plain Python, without an
import hook, and nothing of it ever asks for a package called `common`.
"""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

INSTALLED = {"cli": "minute8", "common": "minute8.common", "eventbridge": "minute8.eventbridge"}


def installed_name(module: str) -> str:
    """What a module of a checkout is called in the wheel."""
    top, dot, rest = module.partition(".")
    return INSTALLED.get(top, top) + dot + rest


def rewritten(source: str) -> str:
    """The source with its imports of `cli` and `common` as they are called in the wheel. Raises ValueError."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            before, after = f"from {node.module} ", f"from {installed_name(node.module)} "
            lines[node.lineno - 1] = lines[node.lineno - 1].replace(before, after, 1)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if installed_name(alias.name) != alias.name:
                    raise ValueError(
                        f"line {node.lineno}: write `from … import …` in the place of `import {alias.name}`"
                    )
    return "".join(lines)


class BuildMoved(build_py):
    """Copies the modules, and rewrites those that moved."""

    def run(self) -> None:
        if self.editable_mode:
            raise SystemExit("minute8 has no editable install: `make install` puts `minute8` into .venv/bin")
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
setup(
    version=json.loads(Path("common/version.json").read_text("utf-8"))["version"],
    packages=[installed_name(folder) for folder in folders],
    package_dir={installed: folder for folder, installed in INSTALLED.items()},
    package_data={"minute8.common": ["version.json"], "minute8_client": ["py.typed"]},
    cmdclass={"build_py": BuildMoved},
)
