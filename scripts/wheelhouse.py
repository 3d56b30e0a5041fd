"""Fill .wheelhouse/ with the wheels that the packaging tests install from, so that they need no index.

They are graphdock's run-time dependencies, and what builds a wheel and tests it. Nothing is done when the folder is up to date.
graphdock's own wheel is not kept here: the tests build it from the tree as it stands.

    python scripts/wheelhouse.py [--force]
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".wheelhouse"
STAMP = FOLDER / "stamp"


def wanted() -> list[str]:
    """Requirements: what ``pyproject.toml`` needs to run, native kernels included, to be built, and to test a new package."""
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    native = table["project"]["optional-dependencies"]["native"]
    return sorted(
        [*table["project"]["dependencies"], *native, *table["build-system"]["requires"], "editables", "pytest>=8"]
    )


def stamp(requirements: list[str]) -> str:
    """Changes with the requirements and with the interpreter."""
    return hashlib.sha256(json.dumps([requirements, sys.version]).encode()).hexdigest()


def main() -> int:
    requirements = wanted()
    mark = stamp(requirements)
    if "--force" not in sys.argv[1:] and STAMP.exists() and STAMP.read_text(encoding="utf-8") == mark:
        print(f"{FOLDER.name}: up to date")
        return 0
    FOLDER.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--dest", str(FOLDER), *requirements]
    done = subprocess.run(command, check=False)
    if done.returncode == 0:
        STAMP.write_text(mark, encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
