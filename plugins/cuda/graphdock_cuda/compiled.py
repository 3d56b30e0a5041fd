"""Compiled code: sources are put together, compiled in the background, kept on disk, and loaded once per GPU.

A source is compiled for itself: nothing is included from outside of the package, so that its text says all. What is kept lies in
``cuda`` of graphdock's cache folder, named by the text, the compiler's version and the architecture, behind a checksum: a damaged
file is compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphdock.contracts import cache_dir, errors, read_cache, write_cache

from graphdock_cuda.driver.api import Compiler, Toolkit
from graphdock_cuda.driver.errors import CompileError
from graphdock_cuda.source import part

if TYPE_CHECKING:
    from graphdock_cuda.device import CudaDevice

__all__ = ["Image", "Images", "Source", "source"]

#: First of every source.
BASE = ("base.cuh",)


@dataclass(frozen=True, slots=True)
class Source:
    """One text for the compiler.

    Attributes:
      name: for messages and files. ``parts``: files of ``graphdock_cuda/source``, in order, after the base.
      defines: macros that stand before everything. ``code``: what stands behind everything.
    """

    name: str
    parts: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()
    code: str = ""

    @property
    def text(self) -> str:
        return _text(self)


def source(*parts: str, code: str = "", name: str = "", **defines: str) -> Source:
    """A source of these files, with macros defined: ``source("softmax.cuh", TYPE="float")``."""
    return Source(
        name or "_".join(p.rpartition("/")[2].partition(".")[0] for p in parts), parts, tuple(defines.items()), code
    )


@functools.lru_cache(4096)
def _text(of: Source) -> str:
    lines = [f"#define {name} {value}" for name, value in of.defines]
    files = [f'#line 1 "{name}"\n{part(name)}' for name in dict.fromkeys((*BASE, *of.parts))]
    return "\n".join([*lines, *files, '#line 1 "code"', of.code, ""])


class Image:
    """Compiled code of one source. ``ready`` is its future."""

    __slots__ = ("key", "ready", "source")

    def __init__(self, source: Source, key: str, ready: Future[bytes]) -> None:
        self.source = source
        self.key = key
        self.ready = ready


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(8, os.cpu_count() or 1), "graphdock-cuda-compile")


class _Compiled:
    """Results of one compiler in this process, by text and architecture."""

    def __init__(self, compiler: Compiler, keep: bool) -> None:
        self._compiler = compiler
        self._keep = keep
        self._images: dict[str, Image] = {}
        self._lock = threading.Lock()

    def image(self, source: Source, architecture: str) -> Image:
        """The image, which is compiled in the background if it is not there yet."""
        text = source.text
        key = hashlib.sha256("\0".join((self._compiler.version, architecture, text)).encode()).hexdigest()
        with self._lock:
            found = self._images.get(key)
            if found is None:
                ready = _workers().submit(self._made, source.name, text, architecture, key)
                found = self._images[key] = Image(source, key, ready)
            return found

    def _made(self, name: str, text: str, architecture: str, key: str) -> bytes:
        path = cache_dir() / "cuda" / architecture / f"{name[:40]}-{key[:32]}.bin"
        found = read_cache(path) if self._keep else None
        if found is not None:
            return found
        try:
            made = self._compiler.compile(text, name, architecture)
        except CompileError as error:
            raise _refused(name, text, architecture, error, path.with_suffix(".cu")) from error
        if self._keep:
            write_cache(path, made)
        return made


def _refused(name: str, text: str, architecture: str, error: CompileError, path: Path) -> errors.KernelRefused:
    """The compiler's log, and the whole source beside it: in a file, so that a long one does not hide the log."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        where = f"its source is {path}"
    except OSError:
        where = f"its source:\n{text}"
    return errors.KernelRefused(f"{name} does not compile for {architecture}: {error.log.strip()}\n{where}")


_compiled: dict[int, tuple[Compiler, _Compiled]] = {}
_lock = threading.Lock()


class Images:
    """Code of one GPU. Safe from any thread. What a recording turns out to need is loaded once that has been given up."""

    def __init__(self, toolkit: Toolkit, device: CudaDevice) -> None:
        self._driver = toolkit.driver
        self._device = device
        with _lock:  # the compiler stays alive beside what it compiled, so that its id is its own
            _, self._compiled = _compiled.setdefault(
                id(toolkit.compiler), (toolkit.compiler, _Compiled(toolkit.compiler, toolkit.cache))
            )
        self._modules: dict[str, int] = {}
        self._functions: dict[tuple[str, str, int], int] = {}
        #: bytes of dynamic shared memory that launches of a kernel may ask for
        self._allowed: dict[int, int] = {}
        self._loading = threading.RLock()

    def image(self, source: Source) -> Image:
        """Its image for this GPU, perhaps still being compiled."""
        return self._compiled.image(source, self._device.architecture)

    def function(self, source: Source, entry: str, shared: int = 0) -> int:
        """A kernel, loaded; ``shared``: bytes of dynamic shared memory that its launches ask for.

        Raises KernelRefused when the source does not compile, with the compiler's log.
        """
        image = self.image(source)
        found = self._functions.get((image.key, entry, shared))
        return self.load(image.key, image.ready.result(), entry, shared) if found is None else found

    def load(self, key: str, image: bytes, entry: str, shared: int = 0) -> int:
        """A kernel of an image that anyone made: ``key`` names the image for good.

        Within a recording nothing is loaded, a kernel of a known image neither, which drivers load when first asked for it:
        FailedPreconditionError is raised, and the queue records anew when it has been.
        """
        known = (key, entry, shared)
        if known in self._functions:
            return self._functions[known]
        recording = self._device.recording
        if recording is not None:
            raise recording.want(f"load {entry}", functools.partial(self.load, key, image, entry, shared))
        with self._loading, self._device.current():
            try:
                module = self._modules.get(key)
                if module is None:
                    loading = functools.partial(self._driver.load, image)
                    module = self._modules[key] = self._device.relieved(f"load {entry}", loading)
                function = self._driver.function(module, entry)
                # 48 KiB are for what a kernel has by itself, too; what is allowed once more holds alone
                if shared > self._allowed.get(function, 0):
                    self._driver.allow_shared(function, shared)
                    self._allowed[function] = shared
                self._functions[known] = function
            except Exception as error:
                raise self._device.explained(error, f"load {entry}") from error
        return function
