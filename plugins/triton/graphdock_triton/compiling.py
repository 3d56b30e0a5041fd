"""Compiling of kernels, and what is kept of it: in this process, and on disk under graphdock's cache folder."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

from graphdock.contracts import KernelRefused, cache_dir, read_cache, write_cache

from graphdock_triton.cubin import DESCRIPTOR, Cubin, Options, compile_cubin

__all__ = [
    "AheadOfTime",
    "Asked",
    "Compiler",
    "Job",
    "all_of",
    "check_room",
    "cubin_for",
    "cubin_of",
    "noted",
    "use",
    "version",
]


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to compile.

    Attributes:
      name: of the kernel, for people. ``key``: names its source, argument types, constants and options for good.
      function: makes the ``triton.jit`` function.
      signature, constants, options, divisible: as of :func:`graphdock_triton.cubin.compile_cubin`.
      room: bytes of global scratch memory that each program is given; a kernel that takes more is refused.
      otherwise: what a launch takes for addresses of which nothing is known, where that is not :attr:`plain`.
    """

    name: str
    key: str
    function: Callable[[], Any]
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Options
    divisible: Sequence[str] = ()
    room: int = 0
    otherwise: Sequence[Job] = ()

    @property
    def plain(self) -> Job:
        """The same for addresses of which nothing is known."""
        return replace(self, divisible=tuple(n for n in self.divisible if not self.signature[n].startswith("*")))


@dataclass(frozen=True, slots=True)
class Asked:
    """A kernel that somebody asked for. ``compiled``: whether it was made in this process, once ``cubin`` is done."""

    job: Job
    architecture: str
    cubin: Future[Cubin]

    @property
    def compiled(self) -> bool:
        return self.cubin in _fresh


class Compiler(Protocol):
    """Makes cubins. ``version``: what it makes differs with it. ``keeps``: whether that may be kept on disk."""

    @property
    def version(self) -> str: ...

    @property
    def keeps(self) -> bool: ...

    def compile(self, job: Job, architecture: str) -> Cubin: ...


class AheadOfTime:
    """Triton's own compiler; it needs no GPU. Triton is imported when something has to be compiled, and not before."""

    keeps = True

    @functools.cached_property
    def version(self) -> str:
        return f"triton {metadata.version('triton')}"

    def compile(self, job: Job, architecture: str) -> Cubin:
        try:
            import triton  # noqa: F401
        except ImportError as error:
            raise KernelRefused(
                f"{job.name} is not in the cache for {architecture}, and can't be compiled: {error}; "
                f"`graphdock triton build` makes it where {self.version} works"
            ) from error
        return compile_cubin(job.function(), job.signature, job.constants, architecture, job.options, job.divisible)


_lock = threading.Lock()
_compiler: Compiler = AheadOfTime()
#: Where it is kept -> the cubin.
_made: dict[Path, Future[Cubin]] = {}
#: Those that were compiled in this process.
_fresh: weakref.WeakSet[Future[Cubin]] = weakref.WeakSet()
_listeners: list[Callable[[Asked], None]] = []


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


def version() -> str:
    """Of the compiler that is in use."""
    return _compiler.version


def cubin_of(job: Job, architecture: str) -> Future[Cubin]:
    """The cubin of a kernel, perhaps still being compiled. From any thread.

    The future fails with KernelRefused where it does not compile.
    """
    with _lock:
        compiler = _compiler
        facts = "\0".join((compiler.version, architecture, job.key, ",".join(sorted(job.divisible)), str(job.room)))
        key = hashlib.sha256(facts.encode()).hexdigest()
        path = cache_dir() / "triton" / architecture / f"{job.name[:60]}-{key[:32]}.cubin"
        found = _made.get(path)
        if found is None:
            found = _made[path] = Future()
            _workers().submit(_fulfil, found, compiler, job, architecture, path)
        listeners = list(_listeners)
    for listen in listeners:
        listen(Asked(job, architecture, found))
    return found


def cubin_for(job: Job, architecture: str) -> Cubin:
    """The cubin of a kernel, for a launch; the one for any addresses where there is none for these.

    Raises KernelRefused where there is neither.
    """
    exact = cubin_of(job, architecture)
    if exact.exception() is not None and job.plain != job:
        plain = cubin_of(job.plain, architecture)
        if plain.exception() is None:
            return plain.result()
    return exact.result()


def all_of(futures: Sequence[Future[Cubin]]) -> Future[Any]:
    """One future for several; it fails with the first failure."""
    if len(futures) == 1:
        return futures[0]
    whole: Future[Any] = Future()
    left = list(futures)
    lock = threading.Lock()

    def done(one: Future[Cubin]) -> None:
        error = one.exception()
        with lock:
            left.pop()
            if whole.done():
                return
            if error is not None:
                whole.set_exception(error)
            elif not left:
                whole.set_result(None)

    for future in futures:
        future.add_done_callback(done)
    return whole


@contextmanager
def noted(listen: Callable[[Asked], None]) -> Iterator[None]:
    """While it lasts, ``listen`` is called with whatever is asked for, on the thread of who asks."""
    with _lock:
        _listeners.append(listen)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listen)


def _fulfil(promise: Future[Cubin], compiler: Compiler, job: Job, architecture: str, path: Path) -> None:
    try:
        found = _read(path) if compiler.keeps else None
        if found is None:
            found = _compiled(compiler, job, architecture, path)
            _fresh.add(promise)
        check_room(job, found)
    except BaseException as error:  # noqa: BLE001 - whoever waits gets it
        promise.set_exception(error)
    else:
        promise.set_result(found)


def check_room(job: Job, cubin: Cubin) -> None:
    """Raises KernelRefused where a kernel takes more global scratch memory than its launches are given."""
    if cubin.scratch > job.room:
        raise KernelRefused(
            f"{job.name} takes {cubin.scratch} bytes of global scratch memory in each program, and is given {job.room}: "
            f"{DESCRIPTOR} for each descriptor that it is said to make"
        )


def _compiled(compiler: Compiler, job: Job, architecture: str, path: Path) -> Cubin:
    made = compiler.compile(job, architecture)
    if compiler.keeps:
        _write(path, made)
    return made


_FIELDS = "entry threads shared scratch scratch_align registers spills".split()


def _read(path: Path) -> Cubin | None:
    """Return what was kept; None where there is nothing whole, which is then made again."""
    data = read_cache(path)
    if data is None:
        return None
    head, _, image = data.partition(b"\n")
    entry, *numbers = head.decode().split(" ")
    return Cubin(image, entry, *map(int, numbers))


def _write(path: Path, cubin: Cubin) -> None:
    head = " ".join(str(getattr(cubin, name)) for name in _FIELDS).encode()
    write_cache(path, head + b"\n" + cubin.image)
