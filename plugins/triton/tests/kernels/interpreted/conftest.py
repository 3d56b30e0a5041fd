"""Tests that run in the interpreter, in a process that ``test_interpreted.py`` starts; elsewhere they are not there."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]
