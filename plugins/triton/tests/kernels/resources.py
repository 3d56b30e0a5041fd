"""What the compiled kernels take of a GPU: the table ``resources.txt``, and how it is made anew.

PYTHONPATH=plugins/triton python plugins/triton/tests/kernels/resources.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import triton
from graphdock.contracts import KernelRefused
from graphdock_triton.cubin import compile_cubin
from graphdock_triton.kernels.spec import Kernel, Launch, Problem, plan
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

__all__ = ["ARCHITECTURES", "HEAD", "TABLE", "ptx_of", "rows_of"]

ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
TABLE = Path(__file__).parent / "resources.txt"
HEAD = f"triton {triton.__version__}: case | function | architecture | threads | registers | frame bytes | shared bytes"


def rows_of(name: str, kernel: Kernel, problem: Problem, architectures: Iterable[str] = ARCHITECTURES) -> list[str]:
    """Lines of the table, of every launch in its default configuration, for the architectures that the kernel takes."""
    out = []
    for architecture in architectures:
        capability = int("".join(c for c in architecture if c.isdigit()))
        try:
            launches = plan(kernel, replace(problem, capability=capability)).launches
        except KernelRefused:  # not for this architecture
            continue
        for launch in launches:
            made = compile_cubin(
                launch.function, launch.signature, launch.constants, architecture, launch.options, launch.divisible
            )
            facts = (made.threads, made.registers, made.spills, made.shared)
            out.append(" | ".join([name, launch.function.__name__, architecture, *map(str, facts)]))
    return out


def ptx_of(launch: Launch, capability: int = 90) -> str:
    """The assembly that a launch is compiled to."""
    names = list(launch.function.arg_names)
    kinds = {name: "constexpr" if name in launch.constants else launch.signature[name] for name in names}
    attrs = {(names.index(name),): [["tt.divisibility", 16]] for name in launch.divisible}
    source = ASTSource(launch.function, kinds, constexprs=dict(launch.constants), attrs=attrs)
    options = {"num_warps": launch.options.warps, "num_stages": launch.options.stages, "enable_fp_fusion": True}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options).asm["ptx"]


def main() -> None:
    """Write the table; with words as arguments only the lines of cases that begin with one of them."""
    sys.path.insert(0, str(Path(__file__).parent))
    from cases import cases

    words = tuple(sys.argv[1:])
    kept = TABLE.read_text().splitlines()[1:] if words else []
    lines = []
    for name, kernel, problem in cases():
        if not words or name.startswith(words):
            lines += rows_of(name, kernel, problem)
        else:
            lines += [line for line in kept if line.split(" | ")[0] == name]
    TABLE.write_text("\n".join([HEAD, *lines]) + "\n")


if __name__ == "__main__":
    main()
