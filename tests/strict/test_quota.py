"""After its init phase, a process gets the processor share of its memory, by the quota of a control group."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import pytest

from scripts.demo.functions import until_taken
from scripts.embedded import kill, start
from scripts.embedded.deployment import client
from scripts.embedded.strict.quota import PROCESSOR_MB, Quota, why_not

_SPIN = "import sys, time; ends = time.time() + 1\nwhile time.time() < ends: pass\nprint(time.process_time())"


needs_quotas = pytest.mark.skipif(bool(why_not()), reason=f"no quotas here: {why_not()}")


@needs_quotas
def test_a_function_of_little_memory_gets_its_share() -> None:
    quota = Quota("test", PROCESSOR_MB // 8)
    quota.limit()
    with subprocess.Popen(
        [sys.executable, "-c", f"input()\n{_SPIN}"], stdin=-1, stdout=-1, text=True
    ) as process:
        quota.add(process.pid)
        used_s = float(process.communicate("\n")[0])
    quota.remove()
    assert used_s < 0.4  # an eighth of a second, and the start


_HANDLER = """
import time
def handle(event, context):
    began, ends = time.process_time(), time.time() + 1
    while time.time() < ends: pass
    return time.process_time() - began
"""


@needs_quotas
@pytest.mark.embedded
def test_a_function_of_the_embedded_aws_gets_its_share(tmp_path: Path) -> None:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("spin.py", _HANDLER)
    embedded = start(tmp_path, 0, shares=True, tied=True)
    try:
        role = client(embedded, "iam").create_role(RoleName="spin", AssumeRolePolicyDocument="{}")["Role"]
        functions = client(embedded, "lambda")
        create = partial(
            functions.create_function,
            FunctionName="spin",
            Runtime="python3.13",
            Handler="spin.handle",
            Role=role["Arn"],
            Timeout=30,
            MemorySize=PROCESSOR_MB // 8,
            Code={"ZipFile": package.getvalue()},
        )
        until_taken(create)
        used_s = json.loads(functions.invoke(FunctionName="spin")["Payload"].read())
    finally:
        kill(tmp_path)
    assert used_s < 0.3
