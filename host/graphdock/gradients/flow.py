"""Flow of gradients: the ops that they pass from ``ys`` back to ``xs``, whether each of them has a gradient, and the ops that are
built: what each gradient function makes of the gradients that arrived, summed per tensor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.dtypes import DType
from graphdock.errors import DTypeError, GradientError, InvalidArgumentError, ShapeError
from graphdock.gradients.indexed_slices import IndexedSlices, concatenated, dense
from graphdock.gradients.registry import GradientSource, gradient_of
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import tuple_, zeros_like
from graphdock.shape import as_dims, compatible, show

__all__ = ["Build", "Flow", "Step", "UnsummedGradient", "Wanted"]


#: Longest path that an error prints whole.
_LONGEST = 200


@lazy_dataclass(frozen=True, slots=True)
class Wanted:
    """One of ``xs``: its tensor, a variable's handle; and the dtype of the value."""

    tensor: Tensor
    dtype: DType


@lazy_dataclass(frozen=True, slots=True)
class Step:
    """One op to differentiate, and the numbers of the inputs whose gradients are needed."""

    op: Operation
    inputs: tuple[int, ...]
    source: GradientSource


@lazy_dataclass(frozen=True, slots=True)
class _Inside:
    """Ends of the flow inside a body, and where that stands, in words."""

    ys: list[Tensor]
    xs: set[Tensor]
    where: str


class Flow:
    """The ops between ``ys`` and ``xs``, users before producers in ``steps``.

    Args:
      ys, xs: tensors of one graph; a variable is its handle.
      stops: tensors that count as constants; one that is also among ``xs`` still gets its own gradient.
    """

    def __init__(self, ys: Sequence[Tensor], xs: set[Tensor], stops: set[Tensor]) -> None:
        self.ys = list(ys)
        self.xs = xs
        self.stops = stops
        self._sources: dict[Operation, GradientSource] = {}
        self._edges: dict[Operation, list[tuple[int, str]]] = {}
        self._parents: dict[Operation, Operation | None] = {}
        self._live: set[Operation] = set()
        self.steps: list[Step] = []
        self._find_live(self._reach())

    def _reach(self) -> list[Operation]:
        """Ops that gradients could reach from ``ys``, in creation order."""
        stack = [y.op for y in self.ys if y not in self.stops]
        while stack:
            op = stack.pop()
            if op in self._edges:
                continue
            edges = self._edges[op] = self._differentiable(op)
            stack.extend(op.inputs[i].op for i, _ in edges if op.inputs[i] not in self.stops)
        return sorted(self._edges, key=lambda op: op._id)

    def _differentiable(self, op: Operation) -> list[tuple[int, str]]:
        """(number, kind) of the inputs that a gradient may flow to; kinds as in ``OpDef.gradient_kinds``."""
        if not op.inputs:
            return []
        source = self._sources[op] = gradient_of(op)
        if source.function is None and source.missing is None:
            return []
        kinds = op.op_def.gradient_kinds
        edges, at = [], 0
        lengths = op._input_lengths
        for k, arg in enumerate(op.op_def.inputs):
            kind = "fn" if source.by_user else kinds.get(arg.name, "fn")
            count = 1 if lengths is None else lengths[k]
            if kind != "none" and (arg.differentiable or source.by_user):
                for i in range(at, at + count):
                    dtype = op.inputs[i].dtype
                    if dtype.is_differentiable or dtype.kind in "RV":
                        edges.append((i, kind))
            at += count
        return edges

    def _find_live(self, ops: Sequence[Operation]) -> None:
        """Ops that depend on an ``xs`` through such inputs."""
        for op in ops:
            if any(self.is_active(op.inputs[i]) for i, _ in self._edges[op]):
                self._live.add(op)

    def is_active(self, tensor: Tensor) -> bool:
        """Return whether a gradient that arrives at a tensor reaches an ``xs``."""
        return tensor in self.xs or (tensor not in self.stops and tensor.op in self._live)

    def check(self) -> None:
        """Fill ``steps``. Raises GradientError at an op that needs a gradient and has none; the graph is as it was."""
        self._check_level()

    def received(self) -> set[Tensor]:
        """The tensors that a gradient arrives at; once :meth:`check` or :meth:`check_all` was called."""
        return set(self.ys) | {s.op.inputs[i] for s in self.steps for i in s.inputs}

    def check_all(self) -> None:
        """The same, and look into bodies too, however deep they nest."""
        pending: list[tuple[_Inside, tuple[str, ...]]] = [(f, (f.where,)) for f in self._check_level()]
        while pending:
            inside, where = pending.pop()
            try:
                found = Flow(inside.ys, inside.xs, set())._check_level()
            except GradientError as error:
                for note in reversed(where):
                    error.add_note(note)
                raise
            pending.extend((f, (*where, f.where)) for f in reversed(found))

    def _check_level(self) -> list[_Inside]:
        """Check this level; what there is to check inside the bodies of its ops."""
        inside: list[_Inside] = []
        receiving: set[Tensor] = set()
        for y in self.ys:
            if y not in self.stops and y.op in self._live:
                receiving.add(y)
                self._parents.setdefault(y.op, None)
        for op in sorted(self._live, key=lambda op: -op._id):
            if not any(t in receiving for t in op.outputs):
                continue
            active = []
            for i, kind in self._edges[op]:
                tensor = op.inputs[i]
                if not self.is_active(tensor):
                    continue
                source = self._sources[op]
                if source.missing is not None or kind.startswith("todo"):
                    raise self._error(op, i, source.missing or kind)
                active.append(i)
                if tensor not in self.stops and tensor.op in self._live:
                    receiving.add(tensor)
                    self._parents.setdefault(tensor.op, op)
            if op.bodies and not self._sources[op].by_user:
                inside += self._bodies(op, active, receiving)
            self.steps.append(Step(op, tuple(active), self._sources[op]))
        return inside

    def _bodies(self, op: Operation, active: Sequence[int], receiving: set[Tensor]) -> list[_Inside]:
        """Return what gradients flow through inside the branches of a Cond, or the body of a While."""
        found = []
        for body in op.bodies[1:] if op.verb == "loop" else op.bodies:
            if op.verb == "loop":
                ys = [t for t in body.outputs if t.dtype.is_differentiable or t.dtype.kind == "V"]
                xs = {t for t in body.parameters if t.dtype.is_differentiable or t.dtype.kind == "V"}
            else:
                ys = [inner for inner, outer in zip(body.outputs, op.outputs, strict=True) if outer in receiving]
                xs = set()
            xs |= {body.captures[op.inputs[i]] for i in active if op.inputs[i] in body.captures}
            found.append(_Inside(ys, xs, f"inside the body {body.name!r} of {op.name}, made at {op.site}"))
        return found

    def _error(self, op: Operation, index: int, reason: str) -> GradientError:
        path: list[Operation] = []
        at: Operation | None = op
        while at is not None:
            path.append(at)
            at = self._parents[at]
        path.reverse()
        lines = [f"    {o.name} ({o.type}), made at {o.site}" for o in path]
        if len(lines) > _LONGEST:
            cut = len(lines) - _LONGEST
            lines[_LONGEST // 2 : -_LONGEST // 2] = [f"    ... {cut} more ..."]
        target = self._target(op, index)
        return GradientError(
            f"{op.name} ({op.type}) stands between {path[0].name} and {target}, and has no gradient: {reason}\n"
            "  the path from the loss:\n" + "\n".join(lines),
            op=op.name,
            site=op.site,
            hint=f"tf.stop_gradient around {op.name}, or around its input {op.inputs[index].name}, takes it for a "
            f"constant; @{_registers(op)} gives it a gradient",
        )

    def _target(self, op: Operation, index: int) -> str:
        """Name of an ``xs`` that is reached through that input."""
        tensor = op.inputs[index]
        while tensor not in self.xs:
            tensor = next(tensor.op.inputs[i] for i, _ in self._edges[tensor.op] if self.is_active(tensor.op.inputs[i]))
        return tensor.name

    def handle_attrs(self, handle: Tensor) -> Mapping[str, Any] | None:
        """The attributes of the VarHandleOp behind a handle; None when it is not known."""
        op = handle.op._original or handle.op
        return op.node_attrs if op.verb == "handle" else None


def _registers(op: Operation) -> str:
    """The decorator that gives an op its gradient."""
    return op.op_def.registers_gradient or f"ops.RegisterGradient({op.type!r})"


#: Verbs whose gradient hands IndexedSlices on as they are; all others get the whole tensor.
_SPARSE = frozenset({"read", "alias"})


class Build:
    """Adds the ops. ``sums`` holds what has arrived at each tensor so far; ``totals`` what it came to."""

    def __init__(self, graph: Graph, flow: Flow, colocate: bool, gate: bool) -> None:
        self.graph = graph
        self.flow = flow
        self.colocate = colocate
        self.gate = gate
        self.first = graph.version
        self.sums: dict[Tensor, list[Any]] = {}
        self.totals: dict[Tensor, Any] = {}

    def arrive(self, tensors: Iterable[Tensor], grads: Iterable[Any]) -> None:
        """Gradients that come from outside: of the ``ys``."""
        for tensor, grad in zip(tensors, grads, strict=True):
            self.sums.setdefault(tensor, []).append(grad)

    def total(self, tensor: Tensor) -> Any:
        """The sum of the gradients that arrived at a tensor, of a variant an UnsummedGradient; None when none did."""
        if tensor in self.totals:
            return self.totals[tensor]
        parts = self.sums.pop(tensor, None)
        if not parts:
            return None
        if tensor.dtype.kind == "V":
            found: Any = UnsummedGradient(
                tuple([t for p in parts for t in (p.parts if isinstance(p, UnsummedGradient) else (p,))])
            )
        elif len(parts) == 1:
            found = parts[0]
        elif all(isinstance(p, IndexedSlices) for p in parts):
            found = concatenated(parts)
        else:
            whole = [dense(p) if isinstance(p, IndexedSlices) else p for p in parts]
            found = apply_op("AddN", inputs=whole)
        self.totals[tensor] = found
        return found

    def run(self) -> None:
        for step in self.flow.steps:
            op = step.op
            arrived = [self.total(t) for t in op.outputs]
            if all(g is None for g in arrived):
                continue
            near = self.graph.colocate_with(op, ignore_existing=True) if self.colocate else contextlib.nullcontext()
            with near, self.graph.name_scope(op.name + "_grad"):
                self._apply(step.op, step.inputs, arrived, step.source)
            for tensor in op.outputs:
                if tensor not in self.flow.xs:
                    self.totals.pop(tensor, None)

    def _apply(self, op: Operation, active: Sequence[int], arrived: list[Any], source: Any) -> None:
        if op.verb not in _SPARSE:
            arrived = [dense(g) if isinstance(g, IndexedSlices) else g for g in arrived]
        if source.by_user:
            pairs = zip(op.outputs, arrived, strict=True)
            arrived = [zeros_like(t) if g is None and t.dtype.is_differentiable else g for t, g in pairs]
        try:
            result = source.function(op, *arrived)
        except Exception as error:
            error.add_note(f"while {source.label} built the gradient of {op.name} ({op.type}), made at {op.site}")
            raise
        found = list(result) if isinstance(result, (list, tuple)) else [result]
        if len(found) != len(op.inputs):
            raise InvalidArgumentError(
                f"the gradient function of {op.type} ({source.label}) returned a wrong number of gradients",
                op=op.name,
                site=op.site,
                expected=f"{len(op.inputs)}, one per input",
                got=str(len(found)),
            )
        taken = [(i, found[i]) for i in active if found[i] is not None]
        checked = [(i, self._checked(op, i, g, source)) for i, g in taken]
        if self.gate and len(checked) > 1 and all(isinstance(g, Tensor) for _, g in checked):
            gated = tuple_([g for _, g in checked])
            checked = [(i, g) for (i, _), g in zip(checked, gated, strict=True)]
        for i, grad in checked:
            self.sums.setdefault(op.inputs[i], []).append(grad)

    def _checked(self, op: Operation, index: int, grad: Any, source: Any) -> Any:
        tensor = op.inputs[index]
        if isinstance(grad, UnsummedGradient):
            return grad
        dtype, dims = tensor.dtype, tensor._dims
        if dtype.name == "resource":
            attrs = self.flow.handle_attrs(tensor)
            dtype, dims = (grad.dtype, None) if attrs is None else (attrs["dtype"], attrs["shape"])
        if not isinstance(grad, (Tensor, IndexedSlices)):
            grad = convert_to_tensor(grad, dtype)
        what = f"the gradient function of {op.type} ({source.label}) returned a gradient of another"
        if grad.dtype is not dtype:
            raise DTypeError(
                f"{what} dtype than input {index} ({tensor.name})",
                op=op.name,
                site=op.site,
                expected=dtype.name,
                got=grad.dtype.name,
            )
        got = as_dims(grad.shape)
        if not compatible(got, dims):
            raise ShapeError(
                f"{what} shape than input {index} ({tensor.name})",
                op=op.name,
                site=op.site,
                expected=show(dims),
                got=show(got),
                hint="sum over the dims that were broadcast",
            )
        if isinstance(grad, Tensor) and got != dims and grad.graph is self.graph and grad.op._id >= self.first:
            self.graph.learn_shape(grad, dims)
        return grad


@lazy_dataclass(frozen=True, slots=True)
class UnsummedGradient:
    """The addends of the gradient by a tensor of dtype variant; each is such a tensor, with as many elements."""

    parts: tuple[Tensor, ...]
