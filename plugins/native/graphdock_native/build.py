"""Compiling C and C++ sources to a shared library with the system's compiler: for build hooks, tests and notebooks."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphdock.errors import InvalidArgumentError, NotFoundError

__all__ = ["compile_library", "include_directory", "library_suffix", "platform_tag"]

_CPP = (".cc", ".cpp", ".cxx")
#: Environment variable that names the compiler, and what is tried without one.
_COMPILERS = {"c": ("CC", ("cc", "gcc", "clang")), "c++": ("CXX", ("c++", "g++", "clang++"))}


def include_directory() -> Path:
    """The folder to pass to a compiler with ``-I``: it holds ``graphdock/kernel.h``."""
    return Path(__file__).parent / "include"


def library_suffix() -> str:
    """Return how files of shared libraries end here: ``.so``, ``.dylib`` or ``.dll``."""
    return {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")


def platform_tag() -> str:
    """The tag of a wheel that holds such a library: of no Python version, of this system."""
    return f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def compile_library(sources: Iterable[Path | str], target: Path | str, flags: Sequence[str] = ("-O3",)) -> Path:
    """Compile to a shared library; the path of the file made.

    Args:
      sources: ``.c`` files, or C++ ones (``.cc``, ``.cpp``, ``.cxx``), which are compiled by the C++ compiler.
      target: the file to make. Where it has no suffix it gets the system's; its folder is made.
      flags: options after the standard's; those of the environment's CFLAGS or CXXFLAGS and LDFLAGS come last.

    The compiler is what ``CC`` (``CXX``) names, else the first of cc, gcc and clang that is found. Beside the library a file with
    ``.sources`` after its name keeps the digests of the sources and of the headers beside them, in the form of ``sha256sum``;
    by it ``graphdock doctor`` sees that they have changed since.

    Raises:
      InvalidArgumentError: no sources, or the compiler refuses them; the message holds what it printed.
      NotFoundError: no compiler.
    """
    files = [Path(source) for source in sources]
    if not files:
        raise InvalidArgumentError(f"{target} can't be compiled: no source files are given")
    path = Path(target)
    if not path.suffix:
        path = path.with_suffix(library_suffix())
    language = "c++" if any(file.suffix in _CPP for file in files) else "c"
    standard, own = ("-std=c++11", "CXXFLAGS") if language == "c++" else ("-std=c99", "CFLAGS")
    command = [
        *_compiler(language),
        standard,
        *flags,
        "-shared",
        *([] if sys.platform == "win32" else ["-fPIC"]),
        f"-I{include_directory()}",
        *shlex.split(os.environ.get(own, "")),
        *map(str, files),
        "-o",
        str(path),
        *shlex.split(os.environ.get("LDFLAGS", "")),
        "-lm",
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise InvalidArgumentError(
            f"{command[0]} can't compile {path.name}:\n{done.stderr.strip() or done.stdout.strip()}"
        )
    headers = {header for file in files for header in file.parent.glob("*.h*")}
    lines = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {Path(os.path.relpath(file, path.parent)).as_posix()}\n"
        for file in sorted({*files, *headers})
    ]
    path.with_name(path.name + ".sources").write_text("".join(lines), encoding="utf-8")
    return path


def _compiler(language: str) -> list[str]:
    """The compiler's command."""
    variable, known = _COMPILERS[language]
    named = shlex.split(os.environ.get(variable, ""))
    for command in [named] if named else [[name] for name in known]:
        if shutil.which(command[0]) is not None:
            return command
    looked = f"{variable}={named[0]}" if named else ", ".join(known)
    raise NotFoundError(
        f"no {language.upper()} compiler is here (looked for {looked}); what is installed from source is compiled",
        hint=f"install one (Debian: apt install build-essential; macOS: xcode-select --install), or {variable}=/path/to/it",
    )
