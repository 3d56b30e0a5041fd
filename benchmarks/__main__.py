"""Every benchmark, one after the other: `python -m benchmarks`, with options that all of them know, such as `--against PATH`."""

from __future__ import annotations

import runpy
import sys

from benchmarks.cli import BENCHMARKS


def main() -> int:
    """Run each with its own defaults; the exit status is the worst of theirs."""
    given, worst = sys.argv[1:], 0
    for name in BENCHMARKS:
        print(f"== {name}\n", flush=True)
        sys.argv = [f"benchmarks.{name}", *given]
        try:
            runpy.run_module(f"benchmarks.{name}", run_name="__main__")
        except SystemExit as ended:
            worst = max(worst, int(ended.code or 0))
        print(flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
