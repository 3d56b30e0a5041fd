"""Generated sources as modules. Triton reads a function's source from a file, so each is written into graphdock's cache folder."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path
from typing import Any

from graphdock.contracts import cache_dir, errors, replace_file

__all__ = ["load_function"]


@functools.lru_cache(1024)
def load_function(name: str, source: str) -> Any:
    """A function of a module with this source. The same source is loaded once per process.

    Raises:
      FailedPreconditionError: the cache folder can't be written.
    """
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    path = cache_dir() / "triton" / "source" / f"{name}-{digest}.py"
    if not (path.exists() and path.read_text(encoding="utf-8") == source):
        _write(path, source)
    spec = importlib.util.spec_from_file_location(f"graphdock_triton_generated.{name}_{digest}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _write(path: Path, source: str) -> None:
    try:
        replace_file(path, source.encode())
    except OSError as error:
        raise errors.FailedPreconditionError(
            f"the source of a Triton kernel can't be written to {path}: {error}",
            hint="set GRAPHDOCK_CACHE_DIR to a folder that can be written",
        ) from error
