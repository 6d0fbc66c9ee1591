"""Write the zones of earlier tzdata releases that differ from the installed one, for a tzdata update.

pip download --no-deps tzdata==2026.5 -d /tmp/tz && python -m scripts.former_zones /tmp/tz/*.whl
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from common.preview.zone_releases import FILE
from common.timing.instants import DAY_S
from common.timing.zones import TZDATA_VERSION, zone_names

# The years that are compared, from the release on.
_YEARS = 5
_STEP_S = DAY_S // 2


def main(wheels: list[str]) -> None:
    """Compare each wheel with the installed release, and write the file."""
    start = int(datetime.now(UTC).timestamp()) // DAY_S * DAY_S - 30 * DAY_S
    end = start + _YEARS * 366 * DAY_S
    present = {name: _offsets(ZoneInfo(name), start, end) for name in sorted(zone_names())}
    zones_by_version = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as opened:
            version = (
                opened.read("tzdata/__init__.py").decode().partition('IANA_VERSION = "')[2].partition('"')[0]
            )
            known = set(opened.read("tzdata/zones").decode().split())
            zones = {}
            for name in sorted(known & present.keys()):
                data = opened.read(f"tzdata/zoneinfo/{name}")
                offsets = _offsets(ZoneInfo.from_file(io.BytesIO(data), name), start, end)
                if offsets != present[name]:
                    zones[name] = offsets
            zones_by_version[version] = zones
    newest_first = dict(sorted(zones_by_version.items(), reverse=True))
    lines = [
        f"  {json.dumps(version)}: {json.dumps(zones, separators=(',', ':'))}"
        for version, zones in newest_first.items()
    ]
    head = f'{{"current": {json.dumps(TZDATA_VERSION)}, "releases": {{'
    FILE.write_text(head + "\n" + ",\n".join(lines) + "\n}}\n")


def _offsets(zone: ZoneInfo, start: int, end: int) -> list[list[int]]:
    """The instants from which a zone has an offset from UTC, in seconds; the first is `start`."""

    def offset_s(at: int) -> int:
        offset = datetime.fromtimestamp(at, zone).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())

    transitions = [[start, offset_s(start)]]
    for at in range(start, end, _STEP_S):
        if offset_s(at + _STEP_S) == transitions[-1][1]:
            continue
        low, high = at, at + _STEP_S
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset_s(middle) == transitions[-1][1] else (low, middle)
        transitions.append([high, offset_s(high)])
    return transitions


if __name__ == "__main__":
    main(sys.argv[1:])
