"""Unpack each Lambda archive once. In ministack itself every cold start unpacks its own copy of code and layer.

The layer holds some 1,500 files, so ten functions that start at once would be ten seconds late.
"""

import hashlib
import shutil
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def install(lambda_runtime: Any, directory: Path) -> None:
    """Make the module ministack.core.lambda_runtime link to archives that are unpacked in `directory` once."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    lock = threading.Lock()

    class LinkedArchive(zipfile.ZipFile):
        """An archive whose extractall() makes links to the one unpacked copy."""

        def namelist(self) -> list[str]:
            # Only called to look for names that escape the directory; extractall() does not follow such names.
            return []

        def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
            digest = hashlib.sha256(Path(str(self.filename)).read_bytes()).hexdigest()
            unpacked = directory / digest
            with lock:
                if not unpacked.exists():
                    fresh = unpacked.with_suffix(".new")
                    super().extractall(fresh, super().namelist())
                    fresh.rename(unpacked)
            for entry in unpacked.iterdir():
                (Path(path) / entry.name).symlink_to(entry)

    lambda_runtime.zipfile = SimpleNamespace(
        ZipFile=LinkedArchive, BadZipFile=zipfile.BadZipFile, LargeFileError=zipfile.LargeZipFile
    )
