"""Who compiles kernels, and what is kept of it: in this process, and on disk under graphdock's cache folder."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from graphdock.contracts import cache_dir, keep, kept

from graphdock_triton.cubin import Cubin, Options, compile_cubin

__all__ = ["AheadOfTime", "Compiler", "Job", "cubin_of", "use"]


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to compile.

    Attributes:
      name: of the kernel, for people. ``key``: names its source, argument types, constants and options for good.
      function: makes the ``triton.jit`` function.
      signature, constants, options, divisible: as of :func:`graphdock_triton.cubin.compile_cubin`.
    """

    name: str
    key: str
    function: Callable[[], Any]
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Options
    divisible: Sequence[str] = ()


class Compiler(Protocol):
    """Makes cubins. ``version``: what it makes differs with it. ``keeps``: whether that may be kept on disk."""

    @property
    def version(self) -> str: ...

    @property
    def keeps(self) -> bool: ...

    def compile(self, job: Job, architecture: str) -> Cubin: ...


class AheadOfTime:
    """Triton's own compiler; it needs no GPU."""

    keeps = True

    @functools.cached_property
    def version(self) -> str:
        import triton

        return f"triton {triton.__version__}"

    def compile(self, job: Job, architecture: str) -> Cubin:
        return compile_cubin(job.function(), job.signature, job.constants, architecture, job.options, job.divisible)


_lock = threading.Lock()
_compiler: Compiler = AheadOfTime()
_made: dict[str, Future[Cubin]] = {}


def use(compiler: Compiler) -> Compiler:
    """Let another compiler make what is asked for from now on; for tests. Returns the one before."""
    global _compiler
    with _lock:
        before, _compiler = _compiler, compiler
        _made.clear()
    return before


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), "graphdock-triton-compile")


def cubin_of(job: Job, architecture: str) -> Future[Cubin]:
    """The cubin of a kernel, perhaps still being compiled. From any thread.

    The future fails with KernelRefused where it does not compile.
    """
    with _lock:
        compiler = _compiler
        facts = "\0".join((compiler.version, architecture, job.key, ",".join(sorted(job.divisible))))
        key = hashlib.sha256(facts.encode()).hexdigest()
        found = _made.get(key)
        if found is None:
            found = _made[key] = _workers().submit(_compiled, compiler, job, architecture, key)
        return found


def _compiled(compiler: Compiler, job: Job, architecture: str, key: str) -> Cubin:
    path = cache_dir() / "triton" / architecture / f"{job.name[:60]}-{key[:32]}.cubin"
    found = _read(path) if compiler.keeps else None
    if found is not None:
        return found
    made = compiler.compile(job, architecture)
    if compiler.keeps:
        _write(path, made)
    return made


_FIELDS = "entry threads shared scratch scratch_align registers spills".split()


def _read(path: Path) -> Cubin | None:
    """What was kept; None where there is nothing whole, which is then made again."""
    data = kept(path)
    if data is None:
        return None
    head, _, image = data.partition(b"\n")
    entry, *numbers = head.decode().split(" ")
    return Cubin(image, entry, *map(int, numbers))


def _write(path: Path, cubin: Cubin) -> None:
    head = " ".join(str(getattr(cubin, name)) for name in _FIELDS).encode()
    keep(path, head + b"\n" + cubin.image)
