"""The version of Minute8: of the wheel, of the Lambda package and of a deployment. CHANGELOG.md has the changes.

`version.json` holds the number: serverless.yml and setup.py read it too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

VERSION: Final[str] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))["version"]
