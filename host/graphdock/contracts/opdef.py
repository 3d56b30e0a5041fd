"""Definition of an op: its arguments, attributes, types, shape rule and traits, apart from how anything computes it.

An :class:`OpDef` is written once, in YAML, and generated into Python tables that build each OpDef at first use. Functions it
names (shape rule, gradient, decomposition) are ``"module:name"`` strings, resolved at first use.

Its verb is what a step does with a node of it; each stage keys one table by it. A plugin's op is a ``kernel`` (the default), an
``alias``, a ``handle`` or ``none``. The others belong to ops of the host's own specs: the host makes their nodes and interprets
them. A verb's facts stand here; what a stage does about a verb is that stage's table, and a test holds every table to every verb.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import InvalidArgumentError, NotFoundError, did_you_mean

__all__ = [
    "ACCESSES",
    "ANYONE",
    "EFFECTS",
    "REQUIRED",
    "VERBS",
    "ArgDef",
    "AttrDef",
    "BodyDef",
    "OpDef",
    "OpLibrary",
    "RegionForm",
    "TypeVarDef",
    "Verb",
    "resolve",
]


@lazy_dataclass(frozen=True, slots=True)
class Verb:
    """Facts of one verb.

    Attributes:
      summary: what a step does with such a node; printed by ``graphdock ops`` and ``graphdock kernels``.
      anyone: a plugin's spec may name it.
      kernel: placement chooses a kernel for it. Without one the host runs the node itself.
      silent: a step runs nothing for it: no statement, no row in ``explain``.
      bodies: the node has nested graphs.
      on_host: its tensors lie in host memory whatever the device.
      primitive: what it gives may be dead, or stands in a frame of its own (:mod:`graphdock.contracts.ir`).
    """

    name: str
    summary: str
    anyone: bool = False
    kernel: bool = False
    silent: bool = False
    bodies: bool = False
    on_host: bool = False
    primitive: bool = False


_ALL = (
    Verb("kernel", "a kernel computes it", anyone=True, kernel=True),
    Verb("alias", "its output is its first input under another name; nothing runs", anyone=True, silent=True),
    Verb("none", "nothing runs; it holds control dependencies, or is an empty slot", anyone=True, silent=True),
    Verb("constant", "each reader gets the array, in its own memory space", silent=True),
    Verb("feed", "the caller gives its value", silent=True),
    Verb("handle", "names a resource; resolved when a plan is made", anyone=True, silent=True),
    Verb("read", "reads a variable: its own storage while no write can run, else a copy"),
    Verb("assign", "copies a value into a variable"),
    Verb("move", "copies a tensor to another memory space"),
    Verb("branch", "runs one of its bodies", bodies=True),
    Verb("loop", "runs its body while its condition holds", bodies=True),
    Verb("call", "runs its body once", bodies=True),
    Verb("host", "the host calls a Python function of its own", on_host=True),
    Verb(
        "switch", "hands its first input on at one of two outputs; the other one is dead", on_host=True, primitive=True
    ),
    Verb("merge", "hands on the first of its inputs that is not dead", on_host=True, primitive=True),
    Verb("enter", "hands its input on into a frame", on_host=True, primitive=True),
    Verb("exit", "hands its input on out of its frame", on_host=True, primitive=True),
    Verb("next", "hands its input on to the next iteration of its frame", on_host=True, primitive=True),
    Verb("trigger", "nothing; what follows it runs, though what it follows is dead", on_host=True, primitive=True),
)

#: Name -> facts.
VERBS: Mapping[str, Verb] = MappingProxyType({v.name: v for v in _ALL})

#: Verbs that a plugin's spec may name.
ANYONE: tuple[str, ...] = tuple(v.name for v in _ALL if v.anyone)


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


#: Default of an attribute that has none.
REQUIRED: Final = _Required()

_EMPTY: Mapping[str, Any] = MappingProxyType({})

#: What an op may do through a resource handle. ``uses`` (a queue, an accumulator) orders nothing.
ACCESSES = ("reads", "writes", "uses")
#: What an op does besides computing: ``io`` talks to the world, ``random`` draws, ``waits`` may wait for
#: other steps, or run some: the step holds nothing meanwhile, and a kernel of it may return a Future of its fresh outputs.
EFFECTS = ("io", "random", "waits")
_ACTING = frozenset({"io", "waits"})


@lazy_dataclass(frozen=True, slots=True)
class TypeVarDef:
    """A type variable, such as T. It is an attribute of type ``type`` (or ``list(type)``), inferred from the inputs.

    Attributes:
      allow: names of the dtypes it may stand for; empty allows all.
      default: dtype name used where no input binds it.
      is_list: stands for one dtype per element of its list argument.
    """

    name: str
    allow: tuple[str, ...] = ()
    default: str | None = None
    is_list: bool = False


@lazy_dataclass(frozen=True, slots=True)
class AttrDef:
    """A graph-time constant of an op.

    Attributes:
      type: ``int``, ``float``, ``bool``, ``string``, ``type``, ``shape``, ``tensor``, ``func``, or ``list(...)`` of one of them.
      default: its value when the caller gives none; REQUIRED when the caller must.
      minimum, maximum: bounds of a number, or of the length of a list.
      allowed: values it may take; empty allows all.
      inferred: an int that is the length of a list argument (``N * T``); callers do not give it.
    """

    name: str
    type: str
    default: Any = REQUIRED
    minimum: int | float | None = None
    maximum: int | float | None = None
    allowed: tuple[Any, ...] = ()
    doc: str = ""
    inferred: bool = False


@lazy_dataclass(frozen=True, slots=True)
class ArgDef:
    """An input or output.

    Attributes:
      dtype: a dtype name or a type variable.
      shape: a pattern such as ``"[*B, M, N]"`` (see :mod:`graphdock.opdef.shape_rule`); None says nothing.
      arity: ``one``, ``optional`` (input only) or ``many``.
      count: for ``many``: an int attribute's name or an expression over attributes (``"L + 1"``); ``"len(T)"`` for a type list.
      memory: ``device``, or ``host`` for small integers that steer a kernel (axes, shapes).
      access: of a resource handle: ``reads``, ``writes`` or ``uses``; empty for a tensor.
      resource: of a resource handle: the kind of what it names; empty for a variable.
      differentiable: floating inputs and outputs that gradients flow through.
    """

    name: str
    dtype: str
    shape: str | None = None
    arity: str = "one"
    count: str | None = None
    memory: str = "device"
    access: str = ""
    resource: str = ""
    differentiable: bool = True
    doc: str = ""

    @property
    def mutates(self) -> bool:
        """Return whether the op writes through this handle."""
        return self.access == "writes"


#: Most elements of a small integer tensor that shape rules read.
SHAPE_ELEMENTS = 1024


@lazy_dataclass(frozen=True, slots=True)
class BodyDef:
    """A body of a branch, loop or call: the func attribute that holds it, and how it is bound to the node's arguments.

    Attributes:
      attr: name of the func attribute.
      takes: input (a list) whose elements are the body's inputs, in order.
      gives: output (a list) whose elements the body's outputs become; empty for a loop's condition.
    """

    attr: str
    takes: str
    gives: str = ""


@lazy_dataclass(frozen=True, slots=True)
class RegionForm:
    """Computation of an op inside of a region, where one formula over elements does not say it.

    Attributes:
      let: name -> formula, in order. ``outputs``: output -> formula. ``writes``: handle -> formula of what its variable's elements
        become; a handle's name in any formula means the element from before.
      leading: inputs whose dims are the first of the space (a mean of each row); others have its last, as in broadcasting.
      gathers: input -> the input of indices that says which of its rows are read, the first dims of the space.
      when: attribute, or input in host memory -> the value that it must have; a node with another one is in no region.
      space: names of the axes, where the space is none that the inputs broadcast to; formulas may reduce over them by name.
      axes: then, input -> the axes of its dims, as a list of names or one for either value of an attribute.
    """

    outputs: Mapping[str, str]
    let: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    leading: tuple[str, ...] = ()
    when: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    writes: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    space: tuple[str, ...] = ()
    axes: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    gathers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)


@lazy_dataclass(frozen=True, slots=True)
class OpDef:
    """One op, complete.

    Attributes:
      name: the type string of its nodes: bare for the host's and std's ops, ``ns.Name`` for others.
      let, where: derived dims and ``(check, message)`` pairs of the shape rule.
      shape_fn: ``"module:name"`` of a shape function, where patterns do not say enough; takes a
        :class:`graphdock.opdef.shape_rule.ShapeContext` and returns one Dims per output.
      executes: the verb: what a step does with its nodes (:mod:`graphdock.contracts.opdef`).
      effects: what it does besides computing, of :data:`EFFECTS`. Effects on resources stand at the handles (``ArgDef.access``).
      bodies: its nested graphs, for the verbs ``branch``, ``loop`` and ``call``.
      resource: for the verb ``handle``, the kind of the resource that its output names
        (:class:`graphdock.contracts.resource.ResourceKind`); the attributes ``container`` and ``shared_name`` say which.
      host_fn: for the verb ``host``, ``"module:name"`` of ``PlanNode -> callable``, which a step calls with the inputs.
      traits: ``stateful`` (never merged or folded), ``pure`` (may be both), ``host`` (runs on host memory only),
        ``elementwise``, ``commutative``, ``aggregate``, ``no_gradient``, ``keeps_zero`` (of one element, 0 where that
        is 0), ``unstacks`` (its output is a history of its first input's rows).
      aliases: output name -> input name: the output holds the input's elements (reshape, transpose, identity).
      scalar: the result's element as a formula over the inputs' elements (``"x + y"``), before wrap-around; from it host scalars
        and fused code are printed. None where it is not elementwise or has no such formula.
      region: what it computes inside of a region, where ``scalar`` does not say it; None where it is in none.
      evaluate: ``"module:name"`` of the rule that knows small integer results at construction
        and in a plan (:mod:`graphdock.opdef.shape_values`).
      identity: name of the input that the only output equals wherever shape and dtype are the same.
      neutral: input name -> the element that makes the output equal the other input, exactly and for every dtype.
      constants: input name -> a value that it may have everywhere -> types of the ops that compute the same of the other input,
        one after another: each takes what the one before gave, and that input again where it takes two. Where they round otherwise
        they are what TensorFlow computes.
      sum: type of the op that computes the sum of several nodes of this one: its inputs are lists of this one's, its attributes
        this one's and the length of the lists.
      joint: of a product of two matrices, with the attributes transpose_a and transpose_b: the types of the ops by which several of
        them that share the second one are computed as one: ``join`` lays a list of tensors end to end along an axis, ``cut`` cuts a
        tensor into parts of given sizes along one, ``add`` adds two.
      stacked: ``"module:name"`` of a function that builds, of an operation and its inputs stacked along a new first dim, the sum of
        what it gives of each; of the operation alone it says whether it can.
      rows: of an op between a tensor and a history: type of the op that takes the tensor apart, or puts it together, along its
        first dim where the elements are known one by one.
      cost: ``flops`` and ``bytes`` as formulas over dims; absent where the default holds.
      gradient: ``"module:name"`` of the function that builds gradients, None where the op has none at all.
      gradient_kinds: per input ``formula``, ``op``, ``fn``, ``none`` or ``todo: reason``.
      registers_gradient: the decorator that gives it a gradient, where that is not ``ops.RegisterGradient``; errors name it.
      decomposition: ``"module:name"`` of a function that builds the op from others.
      reference: ``"module:name"`` of the oracle used by conformance; never the cpu kernel's own callable.
      operators: Python operator methods that this op implements, such as ``__add__``.
      verb: the facts of ``executes``. (Derived.)
      plain: every input is one tensor. (Derived.)
      accesses: what its handles are for, of :data:`ACCESSES`. (Derived.)
      compiled: what the host has made of its shapes; None before it is first needed. (Derived.)
      is_stateful: two nodes of it may differ although attributes and inputs are equal: never merged, never folded. (Derived.)
      is_active: a node of it does something although nobody reads its outputs. A body runs all of its active nodes. Reading and
        drawing change nothing that anybody could miss. Of an op that is only said to be stateful the worst is assumed. The bodies
        of a branch or loop are not looked at. (Derived.)
      package: import package that declared it; its own kernels need no entry in ``backends``.
      source: file and line of its spec.
    """

    name: str
    version: int = 1
    summary: str = ""
    doc: str = ""
    inputs: tuple[ArgDef, ...] = ()
    outputs: tuple[ArgDef, ...] = ()
    attrs: tuple[AttrDef, ...] = ()
    types: tuple[TypeVarDef, ...] = ()
    let: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    where: tuple[tuple[str, str], ...] = ()
    shape_fn: str | None = None
    executes: str = "kernel"
    effects: frozenset[str] = frozenset()
    bodies: tuple[BodyDef, ...] = ()
    resource: str | None = None
    host_fn: str | None = None
    traits: frozenset[str] = frozenset()
    aliases: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    scalar: str | None = None
    region: RegionForm | None = None
    evaluate: str | None = None
    identity: str | None = None
    neutral: Mapping[str, int] = field(default_factory=lambda: _EMPTY)
    constants: Mapping[str, Mapping[float, tuple[str, ...]]] = field(default_factory=lambda: _EMPTY)
    sum: str | None = None
    joint: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    stacked: str | None = None
    rows: str | None = None
    cost: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    gradient: str | None = None
    gradient_kinds: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    registers_gradient: str | None = None
    decomposition: str | None = None
    reference: str | None = None
    operators: tuple[str, ...] = ()
    deprecated: str | None = None
    package: str = ""
    source: str = ""
    verb: Verb = field(init=False, repr=False, compare=False)
    plain: bool = field(init=False, repr=False, compare=False)
    accesses: frozenset[str] = field(init=False, repr=False, compare=False)
    is_stateful: bool = field(init=False, repr=False, compare=False)
    is_active: bool = field(init=False, repr=False, compare=False)
    compiled: Any = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        # asked for every node of every plan, some ten times
        verb, accesses = VERBS[self.executes], frozenset([a.access for a in self.inputs if a.access])
        stateful = "stateful" in self.traits or bool(self.effects or accesses)
        active = bool(self.effects & _ACTING) or not accesses <= {"reads"}
        unsaid = "stateful" in self.traits and not (self.effects or accesses or verb.silent or verb.bodies)
        derived = {
            "verb": verb,
            "plain": all(a.arity == "one" for a in self.inputs),
            "accesses": accesses,
            "is_stateful": stateful,
            "is_active": active or unsaid,
        }
        for name, fact in derived.items():
            object.__setattr__(self, name, fact)

    def attr(self, name: str) -> AttrDef | None:
        """The attribute of that name, or None."""
        return next((a for a in self.attrs if a.name == name), None)

    def input(self, name: str) -> ArgDef | None:
        return next((a for a in self.inputs if a.name == name), None)

    def __str__(self) -> str:
        """``MatMul(a: T, b: T) -> y: T``."""

        def args(items: tuple[ArgDef, ...]) -> str:
            mark = {"one": "", "optional": "?", "many": "*"}
            return ", ".join(f"{mark[a.arity]}{a.name}: {a.dtype}" for a in items)

        return f"{self.name}({args(self.inputs)}) -> {args(self.outputs) or 'nothing'}"


@lazy_dataclass(frozen=True, slots=True)
class OpLibrary:
    """The ops of one package, as ``register_ops`` returns them.

    Attributes:
      module: dotted name of the generated module. It holds ``OPS`` (op type -> function that builds its OpDef) and
        ``OPERATORS`` (operator method -> ``"module:function"`` of the wrapper), and is imported at first use.
      specs: dotted name of the package whose folder ``specs`` has the YAML that the module was made from, which ships with it:
        conformance reads the samples there, when it runs. None for a library that has no specs.

    Raises:
      InvalidArgumentError: ``cases`` is given, which older packages had.
    """

    module: str
    specs: str | None = None
    cases: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.cases is not None:
            raise InvalidArgumentError(
                f"OpLibrary({self.module!r}, cases={self.cases!r}): nothing is generated of samples any more",
                hint=f"specs={self.module.partition('.')[0]!r}: the package whose folder specs/ has the YAML",
            )


@functools.cache
def resolve(target: str) -> Any:
    """The object that a ``"module:name"`` string of an OpDef names; looked up once.

    Raises:
      NotFoundError: there is no such module, or it has no such name.
    """
    module_name, _, name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and imports one that is not
        raise NotFoundError(f"there is no module {module_name!r}, which an op spec names") from error
    try:
        return getattr(module, name)
    except AttributeError:
        raise NotFoundError(
            f"module {module_name} has no {name!r}, which an op spec names", hint=did_you_mean(name, vars(module))
        ) from None
