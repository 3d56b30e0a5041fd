"""Collect the wheels that scripts/gpu_check.sh needs on a machine without a package index.

    python scripts/gpu_wheels.py FOLDER [--python 3.12]

graphdock's own three wheels are built from the tree; their run-time dependencies are downloaded for the given Python. CUDA, CuPy,
Triton, PyTorch (which brings cuDNN) and JAX are expected on that machine.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
#: Besides what graphdock and pytest require; of cuDNN, which PyTorch brings, a front end that needs no compiler.
BESIDES = ("nvmath-python", "cuda-bindings", "cuda-pathfinder", "cuda-core", "nvidia-cudnn-frontend<1.28")
#: What that machine has, and what only Windows wants.
THERE = {"numpy", "triton", "colorama"}
#: The largest that the wheels may be together.
LIMIT = 60 << 20


def needed() -> list[str]:
    """The packages that graphdock and pytest require here, and what GPUs want besides."""
    found: set[str] = set()
    waiting = [*tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"], "pytest"]
    while waiting:
        wanted = Requirement(waiting.pop())
        name = canonicalize_name(wanted.name)
        if name in found | THERE or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += importlib.metadata.requires(name) or ()
    return [*sorted(found), *BESIDES]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="3.12")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip"]
    for source in (ROOT, ROOT / "plugins" / "cuda", ROOT / "plugins" / "triton"):
        subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "-w", given.folder, source], check=True)
    target = ["--only-binary=:all:", "--python-version", given.python, "--implementation", "cp"]
    for glibc in ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014"):
        target += ["--platform", f"{glibc}_x86_64"]
    subprocess.run([*pip, "download", "--quiet", "--no-deps", *target, "-d", given.folder, *needed()], check=True)
    total = sum(f.stat().st_size for f in given.folder.glob("*.whl"))
    print(f"{len(list(given.folder.glob('*.whl')))} wheels, {total / 2**20:.1f} MiB in {given.folder}")
    return 0 if total <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
