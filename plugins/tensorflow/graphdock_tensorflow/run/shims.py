"""Names that NumPy and SciPy dropped since programs of TensorFlow 1 were written; each warns once when it is used.

What has a twin is answered by it (``np.int`` is ``int``, ``scipy.misc.imread`` reads by Pillow). Modules that moved are answered
when they are imported.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["install"]

#: Name below ``np`` -> what it was.
_NUMPY: dict[str, Any] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "object": object, "str": str, "long": int, "unicode": str,
    "float_": np.float64, "complex_": np.complex128, "int0": np.intp, "uint0": np.uintp, "string_": np.bytes_,
    "unicode_": np.str_, "infty": np.inf, "Inf": np.inf, "Infinity": np.inf, "NaN": np.nan, "PINF": np.inf, "NINF": -np.inf,
    "product": np.prod, "cumproduct": np.cumprod, "sometrue": np.any, "alltrue": np.all, "row_stack": np.vstack,
    "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype), "in1d": np.isin, "trapz": getattr(np, "trapezoid", None),
    "round_": np.round, "rank": np.ndim,
}  # fmt: skip
#: Module that moved -> the one that has its names today.
_MOVED = {
    "scipy.sparse.linalg.eigen": "scipy.sparse.linalg",
    "scipy.sparse.linalg.eigen.arpack": "scipy.sparse.linalg",
    "scipy.misc.pilutil": "graphdock_tensorflow.run.old_scipy",
    "scipy.misc": "graphdock_tensorflow.run.old_scipy",
    "scipy.ndimage.imread": "graphdock_tensorflow.run.old_scipy",
}


def install() -> None:
    """Answer the old names in this process. Names that NumPy has are left as they are."""
    absent = {name: value for name, value in _NUMPY.items() if value is not None and name not in vars(np)}
    before: Callable[[str], Any] = vars(np)["__getattr__"]

    @functools.wraps(before)
    def answer(name: str) -> Any:
        if name not in absent:
            return before(name)
        _warn(f"np.{name}")
        return absent[name]

    np.__getattr__ = answer  # type: ignore[method-assign]
    sys.meta_path.insert(0, _Moved())


def _warn(name: str) -> None:
    warnings.warn(f"{name} is gone from today's release; graphdock run --old-numpy answers it", FutureWarning, 3)


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _MOVED:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        made = types.ModuleType(spec.name)
        source = importlib.import_module(_MOVED[spec.name])
        made.__dict__.update({n: getattr(source, n) for n in dir(source) if not n.startswith("__")})
        made.__path__ = []
        _warn(spec.name)
        return made

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the names are there."""
