"""Collect the wheels that scripts/gpu_check.sh needs on a machine without a package index.

    python scripts/gpu_wheels.py FOLDER [--python 3.12]

graphdock's own three wheels are built from the tree; their run-time dependencies are downloaded for the given Python. CUDA, CuPy,
Triton, PyTorch (which brings cuDNN) and JAX are expected on that machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = (
    "pluggy ml_dtypes click rich markdown-it-py mdurl pygments jinja2 "
    "markupsafe pydantic pydantic-core annotated-types typing-extensions typing-inspection pyyaml pytest "
    "iniconfig packaging nvmath-python cuda-bindings cuda-pathfinder cuda-core "
    # the front end alone, of a version that needs no compiler of its own: cuDNN is PyTorch's
    "nvidia-cudnn-frontend<1.28"
).split()
#: The largest that the wheels may be together.
LIMIT = 60 << 20


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
    subprocess.run([*pip, "download", "--quiet", "--no-deps", *target, "-d", given.folder, *NEEDED], check=True)
    total = sum(f.stat().st_size for f in given.folder.glob("*.whl"))
    print(f"{len(list(given.folder.glob('*.whl')))} wheels, {total / 2**20:.1f} MiB in {given.folder}")
    return 0 if total <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
