"""The machine that code is compiled for, and compiled code: kept in the process, and on disk under its text, CPU and compiler."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import os
import platform
from pathlib import Path
from typing import Any

from graphdock.contracts import cache_dir, errors, read_cache, write_cache

__all__ = ["compiled", "compiled_here", "converts_halves", "described", "functions", "is_compiled", "permutes", "width"]

#: Lanes of float32 in a vector register, by the feature of the CPU that has it.
_WIDTHS = (("avx512f", 16), ("avx2", 8), ("neon", 4))
#: What ``LLVM_MAX_CPU_ISA`` may say -> how the names of features begin that code does without then.
_LIMITS = {
    "avx512": (),
    "avx2": ("avx512", "avx10", "amx"),
    "baseline": ("avx", "amx", "fma", "f16c", "vaes", "vpclmul"),
}
#: Text -> addresses of its functions. Code stays to the end of the process, where threads may still be in it.
_alive: dict[str, tuple[int, ...]] = {}
#: Numbers of what was linked: each has a name.
_libraries = itertools.count()


@functools.cache
def _features() -> dict[str, bool]:
    import llvmlite.binding as llvm

    limit = os.environ.get("LLVM_MAX_CPU_ISA", "avx512")
    if limit not in _LIMITS:
        raise errors.ConfigError(
            "the environment variable LLVM_MAX_CPU_ISA names no instruction set",
            expected=f"one of {', '.join(_LIMITS)}",
            got=limit,
            hint=errors.did_you_mean(limit, _LIMITS),
        )
    return {name: has and not name.startswith(_LIMITS[limit]) for name, has in llvm.get_host_cpu_features().items()}


@functools.cache
def _cpu() -> tuple[str, str]:
    """Name and features of the CPU that code is made for."""
    import llvmlite.binding as llvm

    features = ",".join([f"{'+' if has else '-'}{name}" for name, has in sorted(_features().items())])
    return llvm.get_host_cpu_name(), features


@functools.cache
def width() -> int:
    """Lanes of the vectors that programs are printed with: a register of float32 where the CPU has such registers, else 4."""
    features = _features()
    return next((lanes for name, lanes in _WIDTHS if features.get(name)), 4)


def converts_halves() -> bool:
    """Return whether the CPU converts float16; else code for it calls functions of a compiler's library, which is not there."""
    return _features().get("f16c", platform.machine() not in ("x86_64", "AMD64"))


def permutes() -> bool:
    """Return whether the CPU looks up 16 float32 in a register of them (AVX-512's ``vpermps``)."""
    return bool(_features().get("avx512f"))


@functools.cache
def _initialize() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _machine() -> Any:
    """A description of this CPU, which who takes it over owns."""
    import llvmlite.binding as llvm

    _initialize()
    name, features = _cpu()
    if _features().get("avx512f"):
        features += ",-prefer-256-bit"
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=name, features=features, opt=3, jit=True)


@functools.cache
def _compiler() -> tuple[Any, Any]:
    """The machine that all objects are made for, whose tables are most of a megabyte, and the linker that all stay in."""
    import llvmlite.binding as llvm

    linker = llvm.create_lljit_compiler(_machine(), suppress_errors=True)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(linker))  # not even the interpreter's end takes the code away
    return _machine(), linker


def described() -> str:
    """The compiler and what it compiles for, in words, for ``graphdock doctor``."""
    import llvmlite
    import llvmlite.binding as llvm

    version = ".".join(map(str, llvm.llvm_version_info))
    return f"LLVM {version} of llvmlite {llvmlite.__version__} for {_cpu()[0]}, {width()} float32 a vector"


def compiled(text: str, optimized: bool = False) -> int:
    """Address of the function ``region`` of a module. The same text is compiled once per process.

    Args:
      optimized: by all of LLVM's usual passes, for loops of scalars, which move and inline what stands in them. Printed vectors
        gain nothing by these, and wait several times as long for them as for all else.

    Raises:
      InternalError: LLVM refuses the text, which is a fault of the printer.
    """
    return functions(text, ("region",), optimized)[0]


def is_compiled(text: str, optimized: bool = False) -> bool:
    """Return whether :func:`compiled` has only to load it, if that."""
    return text in _alive or _file(text, optimized)[0].exists()


def compiled_here(text: str) -> int:
    """Address of the function ``region`` of a module with addresses of this process, which is not kept on disk."""
    return _compile(text, ("region",), kept=False)[0]


def functions(text: str, names: tuple[str, ...], optimized: bool = False) -> tuple[int, ...]:
    """Addresses of functions of a module; see :func:`compiled`."""
    found = _alive.get(text)
    if found is None:
        found = _alive[text] = _compile(text, names, optimized=optimized)
    return found


def _compile(text: str, names: tuple[str, ...], kept: bool = True, optimized: bool = False) -> tuple[int, ...]:
    import llvmlite.binding as llvm

    path, key = _file(text, optimized)
    data = found = _kept(path, key) if kept else None
    if data is None:
        data = _object(text, optimized)
        if kept:
            write_cache(path, key + data)
    builder = llvm.JITLibraryBuilder().add_object_img(data).add_current_process()
    for name in names:
        builder.export_symbol(name)
    try:
        library = builder.link(_compiler()[1], f"region{next(_libraries)}")
    except RuntimeError as error:
        raise errors.InternalError(
            f"LLVM links no {' and '.join(names)}: {error}; the object was {'kept' if found else 'made now'}: {path}"
        ) from error
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))
    return tuple([library[name] for name in names])


def _object(text: str, optimized: bool) -> bytes:
    """The object of a text, made now."""
    import llvmlite.binding as llvm

    machine = _compiler()[0]
    try:
        # in a context of its own: garbage that Python collects meanwhile, other modules, lies in others
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as error:
        raise errors.InternalError(f"LLVM refuses the text of a region: {error}") from error
    (_optimize if optimized else _simplify)(module)
    return bytes(machine.emit_object(module))


def _file(text: str, optimized: bool) -> tuple[Path, bytes]:
    """File of the object of a text, on this CPU by this compiler, and the key that it begins with."""
    import llvmlite
    import llvmlite.binding as llvm

    key = hashlib.sha256(repr((text, _cpu(), optimized, llvmlite.__version__, llvm.llvm_version_info)).encode())
    return cache_dir() / "llvm" / f"{key.hexdigest()}.o", key.digest()


def _optimize(module: Any) -> None:
    """Run LLVM's usual passes."""
    import llvmlite.binding as llvm

    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_unrolling = True
    builder = llvm.create_pass_builder(_compiler()[0], options)
    builder.getModulePassManager().run(module, builder)


def _simplify(module: Any) -> None:
    """Run the few passes that printed vectors need, whose loops are unrolled already: stack slots to registers, fewer blocks, and
    instructions that make one."""
    import llvmlite.binding as llvm

    builder = llvm.create_pass_builder(_compiler()[0], llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def _kept(path: Path, key: bytes) -> bytes | None:
    """The object of a file that was written under that key: LLVM would end the process over another's."""
    data = read_cache(path)
    return data[len(key) :] if data is not None and data[: len(key)] == key else None
