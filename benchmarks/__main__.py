"""Every benchmark, one after the other: `python -m benchmarks`."""

from __future__ import annotations

import runpy
import sys

from benchmarks.cli import BENCHMARKS


def main() -> int:
    """Run each with its own defaults; the exit status is the worst of theirs."""
    worst = 0
    for name in BENCHMARKS:
        print(f"== {name}\n", flush=True)
        sys.argv = [f"benchmarks.{name}"]
        try:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        except SystemExit as ended:
            worst = max(worst, int(ended.code or 0))
        print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
