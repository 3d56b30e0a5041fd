"""Triton's interpreter over NumPy arrays, without torch.

The interpreter asks of each pointer argument what it asks of a torch tensor; :class:`HostTensor` answers for an array, in whose
memory the kernel then reads and writes. Whether kernels are interpreted is settled for a process when triton is first imported: set
``TRITON_INTERPRET=1`` before, in a process of its own (:func:`require` checks it).

What the interpreter can't do, and kernels of this package therefore don't: arithmetic on bfloat16 (load, then ``.to(tl.float32)``;
``tl.dot`` of bfloat16 has an ``UPCAST`` branch for tests); it cuts a bfloat16 that it stores where a GPU rounds it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import WORDS, errors

__all__ = ["HostTensor", "require", "tensors"]


def require() -> None:
    """Raise FailedPreconditionError unless this process interprets Triton kernels."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        raise errors.FailedPreconditionError(
            "Triton kernels are not interpreted in this process",
            hint="set TRITON_INTERPRET=1 before triton is imported",
        )


class _Storage:
    """The memory of an array, as the interpreter asks for it."""

    __slots__ = ("_array",)

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def cpu(self) -> _Storage:
        return self

    def copy_(self, other: _Storage) -> _Storage:
        """Called after the grid with what ``cpu`` gave: the kernel wrote in place."""
        return self


class HostTensor:
    """An array as an argument of an interpreted kernel. bfloat16 arrays are ml_dtypes'."""

    __slots__ = ("_array", "_storage", "dtype")

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self._storage = _Storage(array)
        self.dtype = "int1" if array.dtype == np.bool_ else array.dtype.name

    def data_ptr(self) -> int:
        return int(self._array.ctypes.data)

    def untyped_storage(self) -> _Storage:
        return self._storage

    def new_empty(self, *_: Any, device: Any = None) -> HostTensor:
        return HostTensor(self._array)

    def set_(self, storage: Any, offset: Any, size: Any, stride: Any) -> HostTensor:
        return self

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return self._array.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self._array.itemsize for s in self._array.strides)

    def element_size(self) -> int:
        return self._array.itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape


def tensors(*values: Any) -> list[Any]:
    """Arguments of a kernel: arrays become tensors, other things stay."""
    return [HostTensor(v) if isinstance(v, np.ndarray) else v for v in values]


def use_numpy_for_libdevice() -> None:
    """Let NumPy answer for the functions of CUDA's libdevice that kernels of regions call; the interpreter has none of them."""
    require()
    import math

    import triton.language as tl
    from triton.language.extra import libdevice
    from triton.runtime.interpreter import TensorHandle

    each = {"erfc": np.vectorize(math.erfc, otypes=[np.float64])}
    names = {"atan2": "arctan2", "pow": "power"} | {
        f"a{n}": f"arc{n}" for n in ("cos", "cosh", "sin", "sinh", "tan", "tanh")
    }

    def stand_in(name: str) -> Any:
        function = each.get(name) or getattr(np, names.get(name, name))

        def call(*args: Any, _semantic: Any = None) -> Any:
            like = next(a for a in args if isinstance(a, tl.tensor))
            values = [a.handle.data if isinstance(a, tl.tensor) else getattr(a, "value", a) for a in args]
            with np.errstate(all="ignore"):
                made = np.asarray(function(*values)).astype(like.handle.data.dtype)
            shape = made.shape
            kind = tl.block_type(like.dtype, list(shape)) if shape else like.dtype
            return tl.tensor(TensorHandle(made, like.dtype), kind)

        return call

    for name in (*names, "erfc", "cosh", "sinh", "tan", "tanh", "expm1", "log1p", "rint", "fmod"):
        setattr(libdevice, name, stand_in(name))


def run_region(kernel: Any, arrays: list[np.ndarray], streams: Sequence[Any] = ()) -> list[np.ndarray]:
    """Return what a :class:`graphdock_triton.regions.kernel.RegionKernel` gives for the inputs of its region and its streams."""
    use_numpy_for_libdevice()
    program = kernel.program
    outputs = [np.full(o.shape, 77).astype(o.dtype.np) for o in program.outputs]
    partials = {name: np.full(shape, 77).astype(dtype.np) for name, (dtype, shape) in kernel.partials().items()}
    given: dict[str, Any] = {f"x{i}": np.ascontiguousarray(arrays[s.source]) for i, s in enumerate(program.inputs)}
    given |= {f"y{i}": o for i, o in enumerate(outputs)} | partials
    passed = {n: HostTensor(given[n]) for n in kernel.text.arguments if n in given}
    for name, (number, word) in kernel.words().items():
        ordinal, iteration, outer = streams[number].counter()
        value = dict(zip(WORDS, (*streams[number].key, outer, iteration, ordinal), strict=True))[word]
        passed[name] = HostTensor(np.array([value], np.uint64)) if word == "ordinal" else value
    kernel.function()[kernel.grid](**passed, **kernel.numbers(), **kernel.constants())
    rest = kernel.rest()
    if rest is not None:
        made = iter(run_region(rest, [*partials.values(), *arrays], streams))
        written = {int(n[1:]) for n in kernel.text.arguments if n[0] == "y"}
        outputs = [o if i in written else next(made) for i, o in enumerate(outputs)]
    return outputs
