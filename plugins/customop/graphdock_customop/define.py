"""The decorator tf.custom_op, which defines an op once per host."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Protocol, overload

from graphdock.arguments import check_type
from graphdock.errors import AlreadyExistsError, InvalidArgumentError
from graphdock.locks import new_lock
from graphdock.ops import get_default_graph, type_of
from graphdock.ops.replacing import same_place

from graphdock_customop.python_op import CustomOp, defined_in

if TYPE_CHECKING:
    from graphdock.ops import Operation, Tensor
    from numpy.typing import NDArray

__all__ = ["custom_op"]

#: To look whether an op is there and to declare it is one step.
_lock = new_lock()


class _Named(Protocol):
    """A NamedTuple of arrays. No type says "that tuple, of tensors", so a checker takes what its op returns for anything."""

    @property
    def _fields(self) -> tuple[str, ...]: ...


class custom_op:
    """Decorator: a typed Python function over NumPy arrays becomes an op.

    Args:
      name: ``"namespace::name"``, in lower case; the op type is ``namespace.Name``.
      types: dtypes that the arrays may have, where the annotations do not say: of the first type variable, or by name.
      outputs: names of the outputs.
      shapes: input and output -> shape pattern, as in a spec: ``{"x": "[*S, N]", "y": "[*S]"}``. Else see ``register_shape``.
      differentiable: False for an op at which gradients stop.
      stateful: two calls with equal arguments may differ: never merged, never folded.
      effects: ``"io"`` for a function that talks to the world: it runs though nobody reads it, in order with others.
      version: of the op, as GraphDefs keep it.

    It is declared in the default graph's host at once, and in others when it is called there. The same definition again, as when
    a notebook's cell runs twice, gives the op made before; an edited one from the same notebook, or of the same function of a file,
    takes its place. Graphs made before keep what they had.

    Raises:
      InvalidArgumentError: a name, an annotation, a default or a pattern that says nothing; with the parameter and the line.
      AlreadyExistsError: another op of that type, from another place; says where it was made.
    """

    def __init__(
        self,
        name: str,
        *,
        types: Any = None,
        outputs: Sequence[str] | None = None,
        shapes: Mapping[str, str] | None = None,
        differentiable: bool = True,
        stateful: bool = False,
        effects: Iterable[str] = (),
        version: int = 1,
    ) -> None:
        type_of(name)
        check_type(shapes, (Mapping, NoneType), f"{name}: shapes", 'a dict such as {"x": "[*S]"}')
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise InvalidArgumentError(f"{name}: version is wrong", expected="1, 2, 3, ...", got=repr(version))
        self._name = name
        self._options: dict[str, Any] = {
            "types": types,
            "outputs": outputs,
            "shapes": shapes,
            "differentiable": differentiable,
            "stateful": stateful,
            "effects": effects,
            "version": version,
        }

    @overload
    def __call__(self, function: Callable[..., None]) -> CustomOp[Operation]: ...
    @overload
    def __call__(self, function: Callable[..., _Named]) -> CustomOp[Any]: ...
    @overload
    def __call__(self, function: Callable[..., NDArray[Any]]) -> CustomOp[Tensor]: ...
    @overload
    def __call__(self, function: Callable[..., list[NDArray[Any]]]) -> CustomOp[list[Tensor]]: ...
    @overload
    def __call__(
        self, function: Callable[..., tuple[NDArray[Any], NDArray[Any]]]
    ) -> CustomOp[tuple[Tensor, Tensor]]: ...
    @overload
    def __call__(
        self, function: Callable[..., tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]
    ) -> CustomOp[tuple[Tensor, Tensor, Tensor]]: ...
    @overload
    def __call__(self, function: Callable[..., tuple[NDArray[Any], ...]]) -> CustomOp[tuple[Tensor, ...]]: ...
    def __call__(self, function: Callable[..., Any]) -> CustomOp[Any]:
        if not inspect.isfunction(function):
            raise InvalidArgumentError(
                f"{self._name}: custom_op decorates a function", got=repr(function), hint="def it, with annotations"
            )
        host = get_default_graph().host
        made: CustomOp[Any] = CustomOp(self._name, function, **self._options)
        with _lock:
            before = defined_in(host).get(made.type)
            if before is None:
                made.define(host)
                return made
            if _same(before, made):
                return before
            if same_place(before.function, function):
                before.give_way(host)
                made.define(host)
                get_default_graph().plan_all_anew()
                return made
        raise AlreadyExistsError(
            f"{self._name} is defined already, at {before.source}",
            site=made.source,
            hint="give one of them another name; a cell or file that is run again replaces what it defined itself",
        )


def _same(a: CustomOp[Any], b: CustomOp[Any]) -> bool:
    """Return whether two definitions are one, read twice: the same code, the same closure and the same declaration."""
    f, g = a.function, b.function
    cells = [[c.cell_contents for c in h.__closure__ or ()] for h in (f, g)]
    same_cells = len(cells[0]) == len(cells[1]) and all(x is y for x, y in zip(*cells, strict=True))
    return f.__code__ == g.__code__ and same_cells and a.declared() == b.declared()
