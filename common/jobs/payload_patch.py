"""JSON merge patches: RFC 7396, section 2. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def merge_patch(value: Any, patch: Any) -> Any:
    """`value` with a patch: null removes a member, another value that is no object replaces it."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merge_patch(result.get(name), change)
    return result


def patched_text(payload: str, patch: Any) -> str:
    """A payload as compact JSON, with a patch."""
    return json.dumps(merge_patch(json.loads(payload), patch), separators=(",", ":"), ensure_ascii=False)
