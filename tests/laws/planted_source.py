r"""A plugin for pytest, of a process of its own: one module of graphdock is imported with a fault in its text.

    PLANTED='{"module": "graphdock_fusion.passes.flatten_sums", "right": "x == 1", "wrong": "x >= 1"}' \
        python -m pytest -p planted_source TEST

The text that the fault replaces has to stand in the module once; else every test of the process fails, by ``SystemError``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType
from typing import Any


class Planter(importlib.machinery.PathFinder):
    """Finds the module as the path does, and loads it with the fault."""

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if fullname != FAULT["module"]:
            return None
        found = super().find_spec(fullname, path, target)
        assert found is not None and found.origin is not None
        found.loader = _Loader(fullname, found.origin)
        return found


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        text = self.get_source(fullname)
        assert text is not None
        if text.count(FAULT["right"]) != 1:
            raise SystemError(f"{FAULT['right']!r} stands {text.count(FAULT['right'])} times in {fullname}")
        return self.source_to_code(text.replace(FAULT["right"], FAULT["wrong"]).encode(), self.path)


FAULT = json.loads(os.environ["PLANTED"])
if FAULT["module"] in sys.modules:
    raise SystemError(f"{FAULT['module']} is imported already")
sys.meta_path.insert(0, Planter)
