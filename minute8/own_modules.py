"""Loads Minute8's own modules into a foreign process, where names like `common` and `api` may be somebody else's.

Here they are called `minute8.folders.common` and so on. Their files are those of the checkout, which import each other
as `common`: so each gets an `__import__` of its own, which finds ours. Python looks it up in a module's `__builtins__`.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_PARENT: Final = "minute8.folders"
_OWN: Final = ("api", "common", "direct", "eventbridge")


def own_module(name: str) -> ModuleType:
    """The module that is called `name` in a checkout."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    return import_module(f"{_PARENT}.{name}")


class _Finder(MetaPathFinder):
    """Finds the parent, which is a folder of the wheel or a whole checkout, and the modules in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec; None if it is not one of ours."""
        if fullname == _PARENT:
            package = Path(__file__).parent
            folders = package / "folders"
            parent = ModuleSpec(fullname, None, is_package=True)
            parent.submodule_search_locations = [str(folders if folders.is_dir() else package.parent)]
            return parent
        spec = PathFinder.find_spec(fullname, path) if fullname.startswith(f"{_PARENT}.") else None
        if spec and spec.origin and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(fullname, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        """Execute the module with our `__import__`."""
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


def _import(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """As the built-in one; what is called `common` in a checkout is ours."""
    if level or name.partition(".")[0] not in _OWN:
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    module = builtins.__import__(f"{_PARENT}.{name}", globals, locals, fromlist or (), 0)
    # `import common.clock` binds `common`.
    return module if fromlist else sys.modules[f"{_PARENT}.{name.partition('.')[0]}"]
