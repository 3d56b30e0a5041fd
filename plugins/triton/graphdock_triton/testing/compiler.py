"""A compiler for the emulated CUDA: what it makes runs in Triton's interpreter, in its turn on its stream.

A kernel that is given global scratch memory takes all of it, as compiled ones do for their descriptors: each launch writes over it.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Mapping
from typing import Any

from graphdock.contracts import errors
from graphdock_cuda.testing.python_image import PythonImage

from graphdock_triton.compiling import Job
from graphdock_triton.cubin import DESCRIPTOR, SIZES, Cubin
from graphdock_triton.testing.interpreter import require, use_numpy_for_libdevice

__all__ = ["InterpretingCompiler", "Pointer"]

_NAMES: Mapping[str, str] = {"i1": "int1", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
_FORMATS: Mapping[str, str] = {"i32": "<i", "i64": "<q", "u32": "<I", "u64": "<Q", "fp32": "<f", "fp64": "<d"}


class Pointer:
    """An address as an argument of an interpreted kernel."""

    __slots__ = ("_address", "dtype")

    def __init__(self, address: int, kind: str) -> None:
        self._address = address
        self.dtype = _NAMES.get(kind) or kind.replace("u", "uint").replace("i", "int", kind.startswith("i"))

    def data_ptr(self) -> int:
        return self._address

    def untyped_storage(self) -> Pointer:
        return self

    cpu = untyped_storage

    def copy_(self, other: Pointer) -> Pointer:
        return self

    def new_empty(self, *_: Any, device: Any = None) -> Pointer:
        return self

    def set_(self, *_: Any) -> Pointer:
        return self

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple[int, ...]:
        return (1,)

    def stride(self) -> tuple[int, ...]:
        return (1,)


class InterpretingCompiler:
    """Attributes:
    compiled: the jobs, in order. ``launched``: how often each kernel was launched, by name.
    """

    keeps = False
    version = "interpreter"

    def __init__(self) -> None:
        require()
        use_numpy_for_libdevice()
        self.compiled: list[Job] = []
        self.launched: dict[str, int] = {}
        self._images: list[PythonImage] = []

    def compile(self, job: Job, architecture: str) -> Cubin:
        function = job.function()
        constants = dict(job.constants)
        if "UPCAST" in constants:  # the interpreter multiplies no matrices of bfloat16
            constants["UPCAST"] = True
        names = [n for n in function.arg_names if n not in constants]
        kinds = [job.signature[n] for n in names]
        sizes = [8 if kind.startswith("*") else SIZES[kind] for kind in kinds] + [8, 8]

        def run(grid: tuple[int, int, int], params: list[bytes]) -> None:
            self.launched[job.name] = self.launched.get(job.name, 0) + 1
            given = {}
            for name, kind, param in zip(names, kinds, params, strict=False):
                if kind.startswith("*"):
                    (address,) = struct.unpack("<Q", param)
                    given[name] = Pointer(address, kind[1:])
                else:
                    (given[name],) = struct.unpack(_FORMATS[kind], param)
            if name_of_lie := next((n for n in job.divisible if _value(given[n]) % 16), None):
                raise errors.InternalError(f"{job.name}: argument {name_of_lie} is no multiple of 16")
            if job.room:
                (room,) = struct.unpack("<Q", params[len(names)])
                if not room or room % DESCRIPTOR:
                    raise errors.InternalError(f"{job.name}: its scratch memory lies at {room:#x}")
                ctypes.memset(room, 0xA5, job.room * math.prod(grid))
            function[grid](**given, **constants)

        image = PythonImage(job.name, sizes, run)
        self._images.append(image)
        self.compiled.append(job)
        return Cubin(image.image, job.name, 32 * job.options.warps, 0, job.room, DESCRIPTOR)


def _value(argument: Any) -> int:
    return int(argument.data_ptr() if isinstance(argument, Pointer) else argument)
