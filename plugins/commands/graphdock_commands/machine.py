"""Facts of the machine that ``graphdock doctor`` prints: Python, NumPy, its BLAS, and whether that BLAS knows the CPU."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

#: Kernel sets of OpenBLAS without AVX-512, as it spells them.
_OLDER = {"Haswell", "Zen", "SandyBridge", "Nehalem", "Prescott", "Excavator"}


def facts() -> dict[str, Any]:
    """Imports NumPy."""
    import numpy
    from graphdock.contracts import API_VERSION
    from graphdock.cores import cores

    blas = numpy.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
    from importlib.metadata import version

    return {
        "graphdock": version("graphdock"),
        "contracts": f"{API_VERSION[0]}.{API_VERSION[1]}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": numpy.__version__,
        "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
        "blas_core": _blas_core(),
        "avx512": _has_avx512(),
        "coretype": os.environ.get("OPENBLAS_CORETYPE"),
        "cores": cores(),
    }


def note(machine: dict[str, Any]) -> str | None:
    """A warning when OpenBLAS runs kernels older than the CPU; GEMM is then at half its speed."""
    if machine["blas_core"] in _OLDER and machine["avx512"] and machine["coretype"] is None:
        return (
            f"OpenBLAS runs its {machine['blas_core']} kernels although the CPU has AVX-512; "
            "set OPENBLAS_CORETYPE=SkylakeX before NumPy is first imported"
        )
    return None


def _blas_core() -> str | None:
    """The kernel set that the loaded OpenBLAS chose; None for another BLAS."""
    from threadpoolctl import threadpool_info

    found = (library.get("architecture") for library in threadpool_info() if library["internal_api"] == "openblas")
    return next(found, None)


def _has_avx512() -> bool:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return False
    flags = next((line for line in info.read_text().splitlines() if line.startswith("flags")), "")
    return {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"} <= set(flags.split())
