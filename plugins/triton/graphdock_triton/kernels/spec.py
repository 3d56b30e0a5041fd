"""Launch of a kernel of the library, said once for whoever binds, tests or tunes it. Imports no triton.

A :class:`Kernel` has one or more ``triton.jit`` functions, launched in the order of its stages. Their parameters are known by name:
those that :attr:`Kernel.arguments` has are passed when the kernel runs; all others are constants that the code is made for, of the
configuration, of the problem's flags, or derived from both. A parameter of the same name is the same thing in every stage.

:func:`plan` says for a :class:`Problem` what is compiled, with which grid it is launched, and what scratch memory it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphdock.contracts import errors

from graphdock_triton.cubin import DESCRIPTOR, Options

__all__ = [
    "FLOATS", "Argument", "Config", "Kernel", "Launch", "Plan", "Problem", "Stage",
    "cdiv", "derived", "dim", "plan", "power", "scratch", "tensor", "value",
]  # fmt: skip

#: Element types that every float kernel takes.
FLOATS = ("fp32", "fp16", "bf16")
#: Bytes of an element.
WIDTHS: Mapping[str, int] = {"fp32": 4, "fp16": 2, "bf16": 2, "i32": 4, "i64": 8, "u64": 8, "u32": 4, "i1": 1, "u8": 1}
_INTEGERS: Mapping[str, int] = {"i32": 1 << 31, "i64": 1 << 63}


def cdiv(count: int, size: int) -> int:
    """Return how many blocks of ``size`` hold ``count``."""
    return -(-count // size)


def power(count: int) -> int:
    """The smallest power of two that is at least ``count``, and 1."""
    return 1 << max(count - 1, 0).bit_length()


@dataclass(frozen=True, slots=True)
class Problem:
    """Problem for which a kernel is launched.

    Attributes:
      dims: the integer arguments: dims and strides, in elements.
      types: type variable -> element type.
      flags: what the caller chooses of :attr:`Kernel.flags`; the first of each stands where nothing is said.
      present: the optional tensors that there are. ``unaligned``: tensors whose address is no multiple of 16.
      multiprocessors, capability: of the GPU; 90 is Hopper.
    """

    dims: Mapping[str, int]
    types: Mapping[str, str]
    flags: Mapping[str, Any] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    unaligned: frozenset[str] = frozenset()
    multiprocessors: int = 132
    capability: int = 90

    def bytes_of(self, variable: str) -> int:
        """Bytes of an element of a type variable."""
        return WIDTHS[self.types[variable]]


@dataclass(frozen=True, slots=True)
class Config:
    """One way to launch: block sizes, and how the code is compiled."""

    blocks: Mapping[str, int]
    warps: int = 4
    stages: int = 2

    def __getitem__(self, name: str) -> int:
        return self.blocks[name]


@dataclass(frozen=True, slots=True)
class Argument:
    """Argument that is passed when a kernel runs.

    Attributes:
      type: of a tensor that of its elements: a type variable, or ``fp32``; of others ``i32``, ``i64``, ``u64`` or ``fp32``.
      role: ``in``, ``out``, ``update`` (read and written), ``scratch``, ``dim`` (known when the code is made), ``value``.
      optional: it is None where :attr:`Problem.present` doesn't have it, and the code is made without it.
      size: of scratch memory, in elements; of a dim that follows from the problem and the configuration, its value.
    """

    name: str
    type: str
    role: str
    doc: str = ""
    optional: bool = False
    size: Callable[[Problem, Config], int] | None = None


def tensor(name: str, type: str, role: str, doc: str, optional: bool = False) -> Argument:
    """An address. ``doc`` begins with its shape; elements lie densely in row-major order where no strides are arguments."""
    return Argument(name, type, role, doc, optional)


def scratch(name: str, type: str, doc: str, size: Callable[[Problem, Config], int]) -> Argument:
    """Memory between stages. Nobody clears it."""
    return Argument(name, type, "scratch", doc, False, size)


def dim(name: str, doc: str = "", type: str = "i32") -> Argument:
    """An integer of :attr:`Problem.dims`. Code is made for whether it is 1, and whether it is a multiple of 16.

    One that no function has a parameter for is there for grids and scratch memory.
    """
    return Argument(name, type, "dim", doc)


def derived(name: str, doc: str, size: Callable[[Problem, Config], int], type: str = "i32") -> Argument:
    """An integer that follows from the problem and the configuration."""
    return Argument(name, type, "dim", doc, False, size)


def value(name: str, doc: str = "", type: str = "fp32") -> Argument:
    """A number passed by value, that no code depends on."""
    return Argument(name, type, "value", doc)


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch of a kernel.

    Attributes:
      function: a ``triton.jit`` function. ``grid``: up to three numbers of programs.
      when: whether the problem has this stage. ``warps``: other than the configuration's.
      descriptors: how many the function makes in each program, at most. They lie in global scratch memory.
    """

    function: Any
    grid: Callable[[Problem, Config], tuple[int, ...]]
    when: Callable[[Problem, Config], bool] = lambda p, c: True
    warps: int | None = None
    descriptors: int = 0


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of the library.

    Attributes:
      doc: what it computes, and where the method is from.
      types: type variable -> the element types it takes. ``flags``: constant -> the values it takes, the default first.
      configs: candidates, the best guess first. ``constants``: what else the code is made for.
      refuse: why a problem isn't for this kernel, or None.
      moved: bytes that a program of the first stage moves, to estimate configurations by; None: they are not estimated.
      warps: how many of a multiprocessor hide what they wait for.
      instead_of: another kernel that takes all problems of this one, and computes the same; its arguments have the same names.
      decline: why that one is the better guess for a problem, or None; asked where :attr:`refuse` has nothing against it.
      aligned: arguments whose addresses have to be multiples of 16. Where one is not, that other kernel computes.
    """

    name: str
    doc: str
    arguments: tuple[Argument, ...]
    stages: tuple[Stage, ...]
    types: Mapping[str, Sequence[str]]
    configs: Callable[[Problem], Sequence[Config]]
    flags: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    constants: Callable[[Problem, Config], Mapping[str, Any]] = lambda p, c: {}
    refuse: Callable[[Problem], str | None] = lambda p: None
    moved: Callable[[Problem, Config], int] | None = None
    warps: int = 16
    instead_of: str = ""
    decline: Callable[[Problem], str | None] = lambda p: None
    aligned: tuple[str, ...] = ()

    def argument(self, name: str) -> Argument | None:
        return next((a for a in self.arguments if a.name == name), None)


@dataclass(frozen=True, slots=True)
class Launch:
    """A function, ready to be compiled by :func:`graphdock_triton.cubin.compile_cubin`, and launched.

    Attributes:
      arguments: the names of what is passed, in the order of the compiled function. ``dims``: the integers among them.
      room: bytes of global scratch memory for each program.
    """

    function: Any
    grid: tuple[int, int, int]
    arguments: tuple[str, ...]
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    dims: Mapping[str, int]
    divisible: tuple[str, ...]
    options: Options
    room: int = 0

    @property
    def place(self) -> str:
        """Name of its global scratch memory among the scratch memory of its plan."""
        return f"room of {self.function.__name__}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Launches in order, and scratch memory: name -> element type and elements. A launch's room is there by its place."""

    launches: tuple[Launch, ...]
    scratch: Mapping[str, tuple[str, int]]


def plan(kernel: Kernel, problem: Problem, config: Config | None = None) -> Plan:
    """Return how ``kernel`` runs for a problem; ``config``: other than the best guess.

    Raises:
      KernelRefused: it doesn't take these types, flags or sizes; the message says why.
      InternalError: a dim or a flag is missing or unknown.
    """
    for variable, allowed in kernel.types.items():
        if problem.types[variable] not in allowed:
            raise errors.KernelRefused(f"{kernel.name} takes no {problem.types[variable]}: {', '.join(allowed)}")
    _check_flags(kernel, problem)
    reason = kernel.refuse(problem)
    if reason:
        raise errors.KernelRefused(f"{kernel.name}: {reason}")
    chosen = config or kernel.configs(problem)[0]
    dims = {a.name: _dim(kernel, a, problem, chosen) for a in kernel.arguments if a.role == "dim"}
    flags = {name: problem.flags.get(name, values[0]) for name, values in kernel.flags.items()}
    constants = flags | dict(chosen.blocks) | dict(kernel.constants(problem, chosen))
    launches = tuple(
        _launch(kernel, stage, problem, chosen, dims, constants)
        for stage in kernel.stages
        if stage.when(problem, chosen)
    )
    used = {name for launch in launches for name in launch.arguments}
    kept = [a for a in kernel.arguments if a.role == "scratch" and a.name in used]
    sizes = {a.name: (_type(a, problem), a.size(problem, chosen)) for a in kept if a.size}
    return Plan(launches, sizes | {w.place: ("u8", w.room * math.prod(w.grid)) for w in launches if w.room})


def _check_flags(kernel: Kernel, problem: Problem) -> None:
    for name, chosen in problem.flags.items():
        if name not in kernel.flags:
            raise errors.InternalError(f"{kernel.name} has no flag {name}", expected=", ".join(kernel.flags))
        if chosen not in kernel.flags[name]:
            raise errors.KernelRefused(
                f"{kernel.name} takes no {name} {chosen!r}: {', '.join(map(repr, kernel.flags[name]))}"
            )
    unknown = problem.present - {a.name for a in kernel.arguments if a.optional}
    if unknown:
        raise errors.InternalError(f"{kernel.name} has no optional argument {', '.join(sorted(unknown))}")


def _dim(kernel: Kernel, argument: Argument, p: Problem, config: Config) -> int:
    number = p.dims.get(argument.name) if argument.size is None else argument.size(p, config)
    if number is None:
        raise errors.InternalError(f"{kernel.name}: {argument.name} is not among the dims")
    if not -_INTEGERS[argument.type] <= number < _INTEGERS[argument.type]:
        raise errors.KernelRefused(f"{kernel.name}: {argument.name} is {number}, too large for {argument.type}")
    return number


def _type(argument: Argument, problem: Problem) -> str:
    return problem.types.get(argument.type, argument.type)


def _launch(
    kernel: Kernel, stage: Stage, p: Problem, config: Config, dims: Mapping[str, int], known: Mapping[str, Any]
) -> Launch:
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    divisible: list[str] = []
    for name in stage.function.arg_names:
        argument = kernel.argument(name)
        if argument is None:
            if name not in known:
                raise errors.InternalError(f"{kernel.name}: nobody says what {name} of {stage.function.__name__} is")
            constants[name] = known[name]
        elif argument.optional and name not in p.present:
            constants[name] = None
        elif argument.role == "dim":
            if dims[name] == 1:
                constants[name] = 1
                continue
            signature[name] = argument.type
            if dims[name] % 16 == 0:
                divisible.append(name)
        elif argument.role == "value":
            signature[name] = argument.type
        else:
            signature[name] = "*" + _type(argument, p)
            if name not in p.unaligned:
                divisible.append(name)
    x, y, z = (*stage.grid(p, config), 1, 1)[:3]
    options = Options(stage.warps or config.warps, config.stages)
    passed = {name: dims[name] for name in signature if name in dims}
    room = DESCRIPTOR * stage.descriptors
    return Launch(
        stage.function, (x, y, z), tuple(signature), signature, constants, passed, tuple(divisible), options, room
    )
