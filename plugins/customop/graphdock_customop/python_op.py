"""CustomOp: an op of a typed Python function, without YAML and without a package, as tf.custom_op makes it.

    F = TypeVar("F", np.float32, np.float64)

    @tf.custom_op("geo::clamp", shapes={"x": "[*S]", "y": "[*S]"})
    def clamp(x: NDArray[F], limit: float = 1.0) -> NDArray[F]:
        return np.minimum(x, x.dtype.type(limit))

    y = clamp(tf.placeholder(tf.float32, [3]), limit=2.0)

The signature is the OpDef (:mod:`graphdock_customop.signature`), the body is the cpu kernel and the oracle
(:mod:`graphdock_customop.python_kernel`). ``geo::great_circle`` is the op type ``geo.GreatCircle``.
"""

from __future__ import annotations

import inspect
import itertools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphdock.arguments import check_keywords
from graphdock.contracts.kernel import KEYWORDS, BuildContext, KernelDef
from graphdock.contracts.opdef import EFFECTS, ArgDef, OpDef
from graphdock.dtypes import ALL
from graphdock.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, did_you_mean
from graphdock.ops import apply_op, get_default_graph, type_of, zeros_like
from graphdock.ops.replacing import same_place

from graphdock_customop.python_kernel import attribute_values, kernel_of
from graphdock_customop.python_shape import check_names, check_patterns, shape_function
from graphdock_customop.signature import Signature, read_signature

if TYPE_CHECKING:
    from graphdock import Host
    from graphdock.contracts.ir import PlanNode

__all__ = ["CustomOp", "defined_in"]

R = TypeVar("R", covariant=True)
Function = TypeVar("Function", bound=Callable[..., Any])

_numbers = itertools.count()
#: Numbers of kernels of ops whose place another took.
_replaced = itertools.count()
#: What OpDefs name as ``"graphdock_customop.python_op:shape_3"``.
_targets: dict[str, Callable[..., Any]] = {}
#: Host -> op type -> the op that was defined in it.
_defined: weakref.WeakKeyDictionary[Host, dict[str, CustomOp[Any]]] = weakref.WeakKeyDictionary()


def __getattr__(name: str) -> Any:
    try:
        return _targets[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def _edited(before: Callable[..., Any] | None, function: Callable[..., Any]) -> bool:
    """Return whether a function is one that stood here before, as a cell that is run again defines it."""
    return before is not None and same_place(before, function)


def _target(kind: str, function: Callable[..., Any]) -> str:
    """A ``"module:name"`` string that stands for a function, however it was made."""
    name = f"{kind}_{next(_numbers)}"
    _targets[name] = function
    return f"{__name__}:{name}"


def defined_in(host: Host) -> Mapping[str, CustomOp[Any]]:
    """The custom ops that were defined in a host, by op type."""
    return dict(_defined.get(host, {}))


class CustomOp(Generic[R]):
    """An op that a Python function declares. Calling it adds an operation to the default graph.

    Attributes:
      name: ``"geo::haversine"``. ``type``: ``"geo.Haversine"``.
      function: the decorated function, over NumPy arrays. ``shape_function``, ``gradient_function``: as registered, or None.
      signature: what it says of the op (:class:`graphdock_customop.signature.Signature`).

    Register before the op is first called: operations keep the shape rule and gradient that were there when they were made.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        types: Any = None,
        outputs: Sequence[str] | None = None,
        shapes: Mapping[str, str] | None = None,
        differentiable: bool = True,
        stateful: bool = False,
        effects: Iterable[str] = (),
        version: int = 1,
    ) -> None:
        self.name = name
        self.type = type_of(name)
        self.function = function
        self.__name__ = name.partition("::")[2]
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        code = function.__code__
        self.source = f"{code.co_filename}:{code.co_firstlineno}"
        self.signature: Signature = read_signature(name, function, types, outputs)
        self._package = function.__module__.partition(".")[0]
        self._shapes = {} if shapes is None else check_names(self.signature, shapes, self._fail)
        self.shape_function: Callable[..., Any] | None = None
        self.gradient_function: Callable[..., Any] | None = None
        self._shape_fn: str | None = None
        self._gradient: str | None = None
        self._reference = _target("reference", self._oracle)
        self._differentiable = differentiable
        self._traits = frozenset({"stateful"} if stateful else {"pure"})
        self._effects = self._checked_effects(effects)
        self._version = version
        self._kernels: list[KernelDef] = []
        self._functions: dict[tuple[str, str], Callable[..., Any]] = {}  # by name and device of their kernel
        self._hosts: weakref.WeakSet[Host] = weakref.WeakSet()
        self._op_def: OpDef | None = None
        self._add_kernel("cpu", kernel_of(self.type, self.signature, function), f"{self.__name__}_body", priority=-1)
        if self._shapes:
            check_patterns(self.op_def, self._fail)

    # -- what it is

    @property
    def op_def(self) -> OpDef:
        """Its OpDef, as it is now."""
        if self._op_def is None:
            self._op_def = self._build()
        return self._op_def

    @property
    def kernels(self) -> tuple[KernelDef, ...]:
        """Those that were registered for it, the body aside."""
        return tuple(self._kernels[1:])

    def _build(self) -> OpDef:
        s = self.signature
        inputs = tuple(self._with_shape(a) for a in s.inputs)
        kinds: dict[str, str] = {}
        if self._gradient is not None:
            kinds = {a.name: "fn" if self._may_float(a) else "none" for a in inputs}
        flows = all(any(map(self._may_float, args)) for args in (s.inputs, s.outputs))
        without = set() if self._differentiable and flows else {"no_gradient"}
        doc = inspect.getdoc(self.function) or ""
        return OpDef(
            name=self.type,
            version=self._version,
            summary=doc.partition("\n")[0] or f"{self.name}, a Python function.",
            doc=doc.partition("\n")[2].strip(),
            inputs=inputs,
            outputs=tuple(self._with_shape(a) for a in s.outputs),
            attrs=s.attrs,
            types=s.types,
            shape_fn=self._shape_fn,
            effects=self._effects,
            traits=self._traits | without,
            gradient=self._gradient,
            gradient_kinds=kinds,
            registers_gradient=f"{self.__name__}.register_gradient",
            reference=self._reference,
            package=self._package,
            source=self.source,
        )

    def _may_float(self, arg: ArgDef) -> bool:
        """Return whether a gradient could flow through an input or output."""
        allow = {t.name: t.allow for t in self.signature.types}
        return any(ALL[name].kind in "fc" for name in allow.get(arg.dtype, (arg.dtype,)) if name in ALL)

    def _with_shape(self, arg: ArgDef) -> ArgDef:
        return replace(arg, shape=self._shapes[arg.name]) if arg.name in self._shapes else arg

    def _checked_effects(self, effects: Iterable[str]) -> frozenset[str]:
        found = frozenset((effects,) if isinstance(effects, str) else effects)
        for effect in sorted(found):
            if effect not in EFFECTS:
                raise self._fail(f"there is no effect {effect!r}", expected="io or waits")
            if effect == "random":
                raise self._fail(
                    "a function that draws numbers of its own can't be `random`: its stream is not the session's",
                    hint="take the numbers as an input: tf.random_uniform(...); or say stateful=True",
                )
        return found

    def declared(self) -> tuple[Any, ...]:
        """Return what its author said of it, registered functions and places aside."""
        s = self.signature
        said = (self._differentiable, self._traits, self._effects, self._version)
        return (s.inputs, s.outputs, s.attrs, s.types, dict(s.enums), s.lists, self._shapes, *said)

    def _fail(self, message: str, **more: Any) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self.name}: {message}", site=self.source, **more)

    # -- what it does

    def __call__(self, *args: Any, name: str | None = None, **kwargs: Any) -> R:
        """Add an operation.

        Args:
          args, kwargs: as of the function, with tensors (or what converts to one) for arrays.
          name: the operation's name.

        Returns:
          A Tensor, a list of them for a list, a namedtuple for several outputs, the Operation for none.

        Raises:
          InvalidArgumentError: arguments that the function does not take, or an op without a shape rule.
          DTypeError, ShapeError: what does not fit.
        """
        given = self._bind(args, kwargs)
        opdef = self.op_def
        if opdef.outputs and opdef.shape_fn is None and not self._shapes:
            example = ", ".join([*(f'"{a.name}": "[*S]"' for a in (*opdef.inputs, *opdef.outputs))])
            raise self._fail(
                f"nothing says what shape {opdef.outputs[0].name!r} has",
                hint=f"say shapes={{{example}}}, or write a function under @{self.__name__}.register_shape; "
                'the pattern "?" says that a shape is known only when it is computed',
            )
        host = get_default_graph().host
        if host not in self._hosts:
            other = _defined.get(host, {}).get(self.type)
            if other is not None:
                raise FailedPreconditionError(
                    f"{self.name} of {self.source} was replaced by that of {other.source}",
                    hint=f"call the {self.__name__} that was defined last",
                )
            self.define(host)
        result: R = apply_op(self.type, name, **given)
        return result

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            bound = self.signature.python.bind(*args, **kwargs)
        except TypeError as error:
            known = list(self.signature.python.parameters)
            wrong = next((k for k in kwargs if k not in known), None)
            raise InvalidArgumentError(
                f"{self.name}: {error}",
                expected=f"{self.__name__}({', '.join(known)}, name)",
                hint=None if wrong is None else did_you_mean(wrong, [*known, "name"]),
            ) from None
        given = dict(bound.arguments)
        for name, members in self.signature.enums.items():
            if isinstance(given.get(name), members):
                given[name] = given[name].name
        return given

    def define(self, host: Host) -> None:
        """Declare it, with its kernels, in a host; a call does so for the host of the default graph.

        Raises:
          AlreadyExistsError: the host has another op of that type.
        """
        host.ops.add_library({self.type: lambda: self.op_def}, {}, self._package)
        for kernel in self._kernels:
            host.kernels.add(kernel, "user", self._package)
        self._hosts.add(host)
        _defined.setdefault(host, {})[self.type] = self

    def give_way(self, host: Host) -> None:
        """Leave the type's name in a host to another definition. Operations made before keep this one, and its kernels."""
        host.ops.remove([self.type])
        for kernel in self._kernels:
            kept = replace(kernel, name=f"{kernel.short_name}_before_{next(_replaced)}")
            host.kernels.replace(kernel, kept, self._package)
        self._hosts.discard(host)

    def _is_mine(self, node: PlanNode) -> str | None:
        """None for a node of this definition; of another one, or of one that this one took the place of, why not."""
        return None if node.opdef.reference == self._reference else f"it computes {self.name} of {self.source}"

    def _oracle(self, **given: Any) -> Any:
        """The function over plain arrays: attributes as a node holds them, dtypes of type variables left out."""
        values = {a.name: given[a.name] for a in self.signature.inputs if a.name in given}
        attrs = {a.name: given.get(a.name, a.default) for a in self.signature.attrs}
        return self.function(**values, **attribute_values(self.signature, attrs))

    # -- decorators

    def register_shape(self, function: Function) -> Function:
        """The shape of what it returns: ``function(ctx)`` over a :class:`graphdock.ops.ShapeContext`.

        It returns the output's shape (a tuple with None for unknown dims, or None for an unknown rank), or a list of one shape per
        output, and raises ``ctx.fail(message)`` for shapes that do not fit. ``[None]`` is such a list: a vector of unknown size
        is ``(None,)``.

        Raises:
          AlreadyExistsError: it has a shape rule of another place.
        """
        if self._shapes or self._shape_fn is not None and not _edited(self.shape_function, function):
            raise AlreadyExistsError(f"{self.name} has a shape rule already", site=self.source)
        self.shape_function = function
        self._shape_fn = _target("shape", shape_function(self.name, self.signature, function))
        self._changed()
        return function

    def register_gradient(self, function: Function) -> Function:
        """Its gradient: ``function(op, *grads)`` builds one tensor, or None, per input from those of the outputs.

        ``op.inputs``, ``op.outputs`` and ``op.get_attr(name)`` are what they are under ``tf.RegisterGradient``.

        Raises:
          AlreadyExistsError: it has one of another place. InvalidArgumentError: it is not differentiable.
        """
        if self._gradient is not None and not _edited(self.gradient_function, function):
            raise AlreadyExistsError(f"{self.name} has a gradient already", site=self.source)
        if not self._differentiable:
            raise self._fail("it has a gradient, but it was declared with differentiable=False")

        def gradient(op: Any, *grads: Any) -> Any:
            pairs = zip(op.outputs, grads, strict=True)
            return function(op, *[zeros_like(y) if g is None and y.dtype.is_differentiable else g for y, g in pairs])

        self.gradient_function = function
        self._gradient = _target("gradient", gradient)
        self._changed()
        return function

    def register_kernel(
        self, device: str = "cpu", *, build: bool = False, name: str | None = None, **fields: Any
    ) -> Callable[[Function], Function]:
        """A kernel for a device type, in place of the body. The body stays the oracle.

        Args:
          device: the device type.
          build: the function is the kernel's ``build``: it takes a BuildContext and returns what a step calls, as under
            ``ops.RegisterKernel``. Otherwise it takes and returns NumPy arrays as the body does: for a device on host memory.
          name: of the kernel; default: the function's. fields: of :class:`KernelDef`: ``types``, ``priority``, ``check``, ...

        Raises:
          AlreadyExistsError: a kernel of that name is there for the device. InvalidArgumentError: it takes other arguments,
            or there is a keyword that no KernelDef has.
        """
        check_keywords(fields, KEYWORDS, f"{self.name}: register_kernel")

        def register(function: Function) -> Function:
            if not build:
                self._check_same_arguments(function)
            made: Callable[[BuildContext], Any] = function if build else kernel_of(self.type, self.signature, function)
            called = name or function.__name__
            before = next((k for k in self._kernels if (k.name, k.device) == (called, device)), None)
            edited = _edited(self._functions.get((called, device)), function)
            if before is not None and not edited:
                raise AlreadyExistsError(
                    f"{self.name} has a kernel named {called!r} for {device} already", hint="give it another name="
                )
            kernel = self._add_kernel(device, made, called, **fields)
            self._functions[called, device] = function
            for host in self._hosts:
                if before is None:
                    host.kernels.add(kernel, "user", self._package)
                else:
                    host.kernels.replace(before, kernel, self._package)
            if before is not None:
                self._kernels.remove(before)
                get_default_graph().plan_all_anew()
            return function

        return register

    def _check_same_arguments(self, function: Callable[..., Any]) -> None:
        want, got = list(self.signature.python.parameters), list(inspect.signature(function).parameters)
        if want != got:
            raise self._fail(
                f"its kernel {function.__name__!r} takes other arguments than the op",
                expected=", ".join(want),
                got=", ".join(got) or "none",
                hint="a kernel takes what the function takes; build=True is for one that takes a BuildContext",
            )

    def _add_kernel(self, device: str, build: Callable[[BuildContext], Any], name: str, **fields: Any) -> KernelDef:
        fields.setdefault("layout", "strided")
        check = fields.get("check")
        fields["check"] = lambda node: self._is_mine(node) or (None if check is None else check(node))
        kernel = KernelDef(self.type, device, build, name=name, **fields)
        self._kernels.append(kernel)
        return kernel

    def _changed(self) -> None:
        self._op_def = None
        for host in self._hosts:
            host.ops.rebuild(self.type)

    def __repr__(self) -> str:
        return f"<custom op {self.name}: {self.op_def}>"
