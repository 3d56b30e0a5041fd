"""Triton functions compiled ahead, to cubins that the ``cuda-launch`` service of the cuda plugin loads. No GPU is needed."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import errors

__all__ = ["DESCRIPTOR", "Cubin", "Options", "compile_cubin", "pointer"]

#: Bytes of global scratch memory that ``tl.make_tensor_descriptor`` takes, for each descriptor of each program.
DESCRIPTOR = 128
#: Bytes of each kind of argument.
SIZES: Mapping[str, int] = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "u8": 1,
    "u16": 2,
    "u32": 4,
    "u64": 8,
    "fp32": 4,
    "fp64": 8,
}

_ELEMENTS: Mapping[str, str] = {
    "bool": "i1",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
}


def pointer(dtype: str) -> str:
    """Triton's name of an address of elements: ``*fp32`` of ``float32``."""
    return "*" + (_ELEMENTS.get(dtype) or dtype.replace("uint", "u").replace("int", "i"))


@dataclass(frozen=True, slots=True)
class Options:
    """Options by which a kernel is compiled. ``warps``: of 32 threads each; ``stages``: of software pipelining."""

    warps: int = 4
    stages: int = 3


@dataclass(frozen=True, slots=True)
class Cubin:
    """A compiled kernel.

    Attributes:
      image: the ELF. ``entry``: its kernel. ``threads``: of a block; ``shared``: bytes of dynamic shared memory.
      scratch: bytes of global scratch memory per block, those of a launch side by side and aligned to ``scratch_align``; their
        address is the last but one argument.
      registers, spills: per thread, as the assembler says; -1 where it does not say.
    """

    image: bytes
    entry: str
    threads: int
    shared: int
    scratch: int = 0
    scratch_align: int = 1
    registers: int = -1
    spills: int = -1


def compile_cubin(
    function: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    architecture: str,
    options: Options = Options(),  # noqa: B008  (frozen)
    divisible: Sequence[str] = (),
) -> Cubin:
    """Compile a ``triton.jit`` function.

    Args:
      signature: argument -> ``*fp32``, ``i32``, ...; those of ``constants`` are left out.
      constants: argument -> its value, which the code is made for.
      architecture: ``sm_90a``.
      divisible: arguments that are multiples of 16: addresses, and numbers of elements.

    Raises:
      KernelRefused: it does not compile; the message has Triton's.
    """
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = list(function.arg_names)
    unknown = (signature.keys() | constants.keys()) ^ set(names)
    if unknown:
        raise errors.InternalError(
            f"{function.__name__}: arguments {', '.join(sorted(unknown))} do not match the function's"
        )
    kinds = {name: "constexpr" if name in constants else signature[name] for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in divisible}
    capability = int("".join(c for c in architecture if c.isdigit()))
    try:
        made = triton.compile(
            ASTSource(function, kinds, constexprs=dict(constants), attrs=attrs),
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": options.warps, "num_stages": options.stages, "enable_fp_fusion": True},
        )
    except Exception as error:  # whatever Triton, MLIR or ptxas raise: the next backend computes the nodes
        raise errors.KernelRefused(f"{function.__name__} does not compile for {architecture}: {error}") from error
    facts = made.metadata
    if facts.profile_scratch_size or facts.launch_cooperative_grid or facts.num_ctas != 1:
        raise errors.KernelRefused(f"{function.__name__} asks for a launch that this package does not make")
    registers, spills = _resources(made.asm["cubin"])
    return Cubin(
        made.asm["cubin"],
        facts.name,
        32 * facts.num_warps,
        facts.shared,
        facts.global_scratch_size,
        facts.global_scratch_align,
        registers,
        spills,
    )


#: Notes of a cubin: the size of a function's frame, and how many registers it takes.
_FRAME_SIZE, _REGISTERS = 0x11, 0x2F


def _resources(image: bytes) -> tuple[int, int]:
    """Registers per thread, and bytes of its frame in local memory (spills and arrays), as the ELF's notes tell."""
    (table,) = struct.unpack_from("<Q", image, 40)
    size, count, names_at = struct.unpack_from("<HHH", image, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, table + i * size) for i in range(count)]
    names = headers[names_at][4]
    found: dict[int, list[int]] = {_FRAME_SIZE: [], _REGISTERS: []}
    for name, _, _, _, at, length, _, info, _, _ in headers:
        text = image[names + name : image.index(b"\0", names + name)]
        if text.startswith(b".text."):
            found[_REGISTERS].append(info >> 24)  # where older architectures say it
        elif text.startswith(b".nv.info"):
            for attribute, value in _notes(image[at : at + length]):
                found.get(attribute, []).append(value)
    return max(found[_REGISTERS], default=-1), max(found[_FRAME_SIZE], default=-1)


def _notes(section: bytes) -> Iterator[tuple[int, int]]:
    """Attribute and value of the notes about functions: a format, an attribute, a length, and then symbol and value."""
    at = 0
    while at + 4 <= len(section):
        form, attribute, length = struct.unpack_from("<BBH", section, at)
        if form == 4 and length == 8:
            yield attribute, struct.unpack_from("<I", section, at + 8)[0]
        at += 4 + (length if form == 4 else 0)
