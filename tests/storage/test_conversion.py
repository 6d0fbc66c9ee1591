"""Values become their declared types, also where many threads do it for the first time."""

from __future__ import annotations

import subprocess
import sys

# The second thread converts while the first one is within the annotations of the inner type.
_TWO_THREADS = """
from __future__ import annotations
import threading
from msgspec import Struct
from common.cache import convert

began, is_waiting = threading.Event(), threading.Event()

class Slow:
    def __class_getitem__(cls, item):
        began.set()
        is_waiting.wait(0.2)
        return item

class Inner(Struct):
    number: Slow[int]

class Outer(Struct):
    inner: Inner

def read(values):
    values.append(convert({"inner": {"number": 1}}, Outer).inner.number)

values = []
first = threading.Thread(target=read, args=(values,))
first.start()
began.wait()
read(values)
first.join()
print(values)
"""


def test_a_type_is_learned_by_one_thread_at_a_time() -> None:
    """The second thread ended the process by a segmentation fault: registrations, and executors that began cold."""
    ended = subprocess.run(
        [sys.executable, "-c", _TWO_THREADS], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "[1, 1]\n"), ended.stderr
