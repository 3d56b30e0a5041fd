"""Graph: a set of operations and tensors, and the scopes under which they are made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.opdef import OpDef
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
    did_you_mean,
    of_kind,
)
from graphdock.graph import site as _site
from graphdock.graph.naming import NameTable, check_name
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.opdef.shape_rule import rule_for
from graphdock.opdef.shape_values import Known, KnownIntegers, Origin
from graphdock.shape import Dims, merge

if TYPE_CHECKING:
    from graphdock.plugin.host import Host

__all__ = ["Graph", "get_default_graph", "reset_default_graph"]


class Graph:
    """A dataflow graph. It may grow while sessions run it; plans made before stay valid.

    Threads: operations may be added from several threads (a lock guards each addition); scopes (name, device, control
    dependencies) belong to the thread that entered them.

    Args:
      host: the Host whose ops it may hold; default: the process's own.

    Attributes:
      seed: graph-level random seed, set by ``tf.set_random_seed``.
    """

    def __init__(self, host: Host | None = None) -> None:
        self._host = host
        self._lock = new_lock()
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names = NameTable()
        self._scopes = _Scopes()
        self._collections: dict[Any, list[Any]] = {}
        self._finalized = False
        self._mutation = 0
        self._integers = KnownIntegers(_origin, _dims)
        self.seed: int | None = None
        self._last_seed = 0

    @property
    def host(self) -> Host:
        """The Host whose ops it may hold. Raises ConfigError when the process's own is asked for and its configuration is wrong."""
        if self._host is not None:
            return self._host
        from graphdock.plugin.host import default_host

        return default_host()

    # -- building ---------------------------------------------------------------------------------------------------

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        dtypes: Sequence[Any] | None = None,
        input_types: Sequence[Any] | None = None,
        name: str | None = None,
        attrs: Mapping[str, Any] | None = None,
        op_def: OpDef | None = None,
    ) -> Operation:
        """Add an operation by its type; what wrappers do underneath. Attributes are given complete or inferred.

        Args:
          op_type: a registered op type.
          inputs: tensors, list arguments flattened.
          dtypes: expected dtypes of the outputs; checked when given.
          input_types: expected dtypes of the inputs; checked when given.
          name: its name; made unique. One that ends in ``/`` is taken as it is.
          attrs: attributes by name.

        Raises:
          UnknownOpError: no such op. InvalidArgumentError: wrong number, dtypes or shapes of inputs, or wrong attributes.
        """
        from graphdock.ops.apply import complete

        if op_def is None:
            op_def = self.host.ops.get(op_type)
        tensors = list(inputs)
        if input_types is not None and [as_dtype(d) for d in input_types] != [t.dtype for t in tensors]:
            raise InvalidArgumentError(
                f"create_op({op_type!r}): input types do not agree",
                expected=str([as_dtype(d).name for d in input_types]),
                got=str([t.dtype.name for t in tensors]),
            )
        full, lengths = complete(op_def, tensors, dict(attrs or {}))
        op = self.add_op(op_def, tensors, full, name, lengths)
        if dtypes is not None and [as_dtype(d) for d in dtypes] != [t.dtype for t in op.outputs]:
            raise InvalidArgumentError(
                f"create_op({op_type!r}): output types do not agree",
                op=op.name,
                expected=str([as_dtype(d).name for d in dtypes]),
                got=str([t.dtype.name for t in op.outputs]),
            )
        return op

    def add_op(
        self,
        op_def: OpDef,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
        name: str | None = None,
        input_lengths: tuple[int, ...] | None = None,
        bodies: Sequence[Any] = (),
    ) -> Operation:
        """Add an operation whose attributes are complete (the quick path of wrappers)."""
        scopes = self._scopes
        with self._lock:
            self._check_open()
            for tensor in inputs:
                if tensor.op.graph is not self:
                    inputs = [t if t.op.graph is self else self._adopt(t, op_def.name) for t in inputs]
                    break
            if name is None:
                full = self._names.unique(scopes.prefix + op_def.name.rpartition(".")[2])
            elif isinstance(name, str) and name.endswith("/"):
                full = name[:-1]
                check_name(full)
                if full in self._by_name:
                    full = self._names.unique(full)
            else:
                check_name(name, inner=bool(scopes.prefix))
                full = self._names.unique(scopes.prefix + name)
            control: Sequence[Operation] = scopes.control
            if control:
                control = self._adopt_controls(control, inputs)
            op = Operation(
                self,
                op_def,
                full,
                inputs,
                attrs,
                control,
                scopes.device_for(op_def),
                _site.capture(),
                len(self._ops),
                input_lengths,
            )
            op.bodies = tuple(bodies)
            if scopes.colocation:
                op._colocation = scopes.colocation
            if scopes.gradients:
                op._gradient_type = scopes.gradients.get(op.type)
            self._infer(op)
            if scopes.container and "container" in attrs and not attrs["container"]:
                op.node_attrs = {**attrs, "container": scopes.container}
            self._ops.append(op)
            self._by_name[full] = op
        return op

    def _infer(self, op: Operation) -> None:
        rule = rule_for(op.op_def)
        try:
            shapes = rule.infer(op.node_attrs, op.input_shapes(), lambda i: self._known(op.inputs[i]))
        except ShapeError as error:
            if error.op is None:
                error.op, error.site = op.name, op.site
            raise
        attrs, outputs = op.node_attrs, op.outputs
        args = op.op_def.outputs
        if len(args) == 1 and args[0].arity == "one":
            outputs.append(Tensor(op, 0, _dtype(args[0].dtype, attrs, 0), shapes[0]))
            return
        counts = rule.output_counts(attrs)
        if any(a.arity != "one" for a in args):
            op._output_lengths = tuple(counts)
        for arg, count in zip(args, counts, strict=True):
            for i in range(count):
                index = len(outputs)
                outputs.append(Tensor(op, index, _dtype(arg.dtype, attrs, i), shapes[index]))

    def _known(self, tensor: Tensor) -> Known:
        return self._integers.value(tensor)

    def _learn(self, tensor: Tensor, dims: Dims) -> None:
        """Add what is known of a tensor's static shape. Raises ShapeError when it contradicts what was known."""
        with self._lock:
            learned = merge(tensor._dims, dims)
            if learned != tensor._dims:
                tensor._dims = learned
                self._integers.forget(tensor)

    def _adopt(self, tensor: Tensor, op_type: str) -> Tensor:
        raise InvalidArgumentError(
            f"input {tensor.name} of a new {op_type} belongs to another graph",
            op=tensor.op.name,
            site=tensor.op.site,
            hint="make both inside of one `with graph.as_default():`",
        )

    def _adopt_controls(self, control: Sequence[Operation], inputs: Sequence[Tensor]) -> Sequence[Operation]:
        for op in control:
            if op.graph is not self:
                raise InvalidArgumentError(
                    f"control input {op.name} belongs to another graph",
                    op=op.name,
                    site=op.site,
                    hint="make both inside of one `with graph.as_default():`",
                )
        return control

    def _note_mutation(self) -> None:
        self._mutation += 1

    def as_graph_def(self) -> dict[str, Any]:
        """The graph as plain data, the contents of its JSON form. See :mod:`graphdock.graph.graph_def`."""
        from graphdock.graph.graph_def import as_graph_def

        return as_graph_def(self)

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Take back the operations made inside, and their names, when it ends with an exception. The caller holds the lock."""
        count, names = len(self._ops), self._names.state()
        try:
            yield
        except BaseException:
            for op in self._ops[count:]:
                self._by_name.pop(op.name, None)
            del self._ops[count:]
            self._names.restore(names)
            self._integers = KnownIntegers(_origin, _dims)
            raise

    @property
    def version(self) -> int:
        """Grows with every operation."""
        return len(self._ops)

    def finalize(self) -> None:
        """Refuse further operations."""
        self._finalized = True

    @property
    def finalized(self) -> bool:
        return self._finalized

    def _check_open(self) -> None:
        if self._finalized:
            raise FailedPreconditionError("the graph is finalized and cannot be changed")

    # -- looking up -------------------------------------------------------------------------------------------------

    def get_operations(self) -> list[Operation]:
        """All operations in creation order."""
        return list(self._ops)

    def get_operation_by_name(self, name: str) -> Operation:
        """Raises NotFoundError with the nearest name."""
        of_kind(name, str, "get_operation_by_name: name", "a name such as 'MatMul'")
        op = self._by_name.get(name)
        if op is None:
            raise NotFoundError(f"the graph has no operation {name!r}", hint=did_you_mean(name, self._by_name))
        return op

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor ``"op:port"``. Raises NotFoundError, or InvalidArgumentError for a name of another form."""
        of_kind(name, str, "get_tensor_by_name: name", "a name such as 'MatMul:0'")
        op_name, colon, port = name.rpartition(":")
        if not colon or not port.isdigit():
            raise InvalidArgumentError(f"{name!r} does not name a tensor", expected="a name such as 'MatMul:0'")
        op = self.get_operation_by_name(op_name)
        if int(port) >= len(op.outputs):
            raise NotFoundError(f"operation {op_name!r} has {len(op.outputs)} outputs, so there is no {name!r}")
        return op.outputs[int(port)]

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The Tensor or Operation that a handle, a name or something convertible (a Variable) stands for.

        Raises:
          InvalidArgumentError: it is of another graph or no such thing. NotFoundError: no such name.
        """
        if isinstance(obj, str):
            if ":" in obj and allow_tensor:
                return self.get_tensor_by_name(obj)
            if allow_operation:
                return self.get_operation_by_name(obj)
            op = self._by_name.get(obj)
            whole = op is not None and len(op.outputs) == 1
            raise InvalidArgumentError(
                f"{obj!r} names {'no tensor' if op is None else 'an operation, no tensor'}",
                expected="a name such as 'MatMul:0'",
                hint=f"its output is {obj + ':0'!r}" if whole else None,
            )
        convert = getattr(obj, "_as_graph_element", None)
        if convert is not None:
            obj = convert()
        if isinstance(obj, Tensor) and allow_tensor or isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                owner = obj.op if isinstance(obj, Tensor) else obj
                body = getattr(obj.graph, "name", None)
                where, hint = "belongs to another graph", "open the session with tf.Session(graph=...)"
                if body is not None:
                    where, hint = f"stands inside the body {body!r}", "return it from the function that made it"
                raise InvalidArgumentError(f"{obj.name} {where}", op=owner.name, site=owner.site, hint=hint)
            return obj
        kinds = [k for k, on in (("Tensor", allow_tensor), ("Operation", allow_operation)) if on]
        raise InvalidArgumentError(f"{obj!r} (a {type(obj).__name__}) is not a {' or '.join(kinds)} or the name of one")

    # -- collections ------------------------------------------------------------------------------------------------

    def add_to_collection(self, name: Any, value: Any) -> None:
        with self._lock:
            self._check_open()
            self._collections.setdefault(name, []).append(value)

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of the collection; with ``scope`` only items whose name begins with it."""
        items = self._collections.get(name, [])
        return [v for v in items if scope is None or getattr(v, "name", "").startswith(scope)]

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[Any]:
        return list(self._collections)

    # -- scopes -----------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Make this the graph that wrappers add to, on this thread."""
        _default.graphs.append(self)
        try:
            yield self
        finally:
            _default.graphs.pop()

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """The full name an operation called ``name`` would get here."""
        of_kind(name, str, "name", "a string")
        with self._lock:
            return self._names.unique(self._scopes.prefix + name, mark_as_used)

    @contextlib.contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Prefix names with ``name/``. A name that ends in ``/`` enters that very scope again; None or "" leaves all."""
        scopes = self._scopes
        before = scopes.prefix
        if not name:
            scopes.prefix = ""
        elif isinstance(name, str) and name.endswith("/"):
            check_name(name[:-1])
            scopes.prefix = name
        else:
            check_name(name, inner=bool(before))
            with self._lock:
                scopes.prefix = self._names.unique(before + name) + "/"
        try:
            yield scopes.prefix
        finally:
            scopes.prefix = before

    def get_name_scope(self) -> str:
        return self._scopes.prefix.rstrip("/")

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> Iterator[None]:
        """Operations made inside run after these. None clears all outer ones."""
        scopes = self._scopes
        before = scopes.control
        if control_inputs is None:
            scopes.control = ()
        else:
            of_kind(control_inputs, Iterable, "control_dependencies", "a list of operations and tensors")
            found = dict.fromkeys(before)
            for item in control_inputs:
                convert = getattr(item, "_as_graph_element", None)
                element = convert() if convert is not None else item
                if isinstance(element, str):
                    element = self.as_graph_element(element)
                op = element.op if isinstance(element, Tensor) else element
                if not isinstance(op, Operation):
                    raise InvalidArgumentError(f"control input {item!r} is neither an operation nor a tensor")
                found[op] = None
            scopes.control = tuple(found)
        try:
            yield
        finally:
            scopes.control = before

    @contextlib.contextmanager
    def device(self, name: Any) -> Iterator[None]:
        """Ask for a device: a whole or partial name, a function of the operation's OpDef, or None to clear."""
        scopes = self._scopes
        before = scopes.devices
        if name is None:
            scopes.devices = ()
        else:
            scopes.devices = (*before, name if callable(name) else DeviceSpec.parse(name))
        try:
            yield
        finally:
            scopes.devices = before

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Operations made inside share a device with ``op``."""
        element = self.as_graph_element(op)
        target = element.op if isinstance(element, Tensor) else element
        scopes = self._scopes
        before = scopes.colocation
        scopes.colocation = (target.name,) if ignore_existing else (*before, target.name)
        try:
            yield
        finally:
            scopes.colocation = before

    @contextlib.contextmanager
    def container(self, name: str) -> Iterator[str]:
        """Variables made inside live in the named container, which sessions share; "" is private to each session."""
        scopes = self._scopes
        before = scopes.container
        scopes.container = name
        try:
            yield name
        finally:
            scopes.container = before

    @contextlib.contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """Operations of the given types, made inside by this thread, use the gradient registered under the mapped name.

        Inner maps add to outer ones. A map ends when its own ``with`` ends, in whatever order several of them do.
        """
        scopes = self._scopes
        entered = dict(op_type_map)
        scopes.override_gradients([*scopes.gradient_maps, entered])
        try:
            yield
        finally:
            scopes.override_gradients([m for m in scopes.gradient_maps if m is not entered])


class _Scopes(threading.local):
    """What a thread's scopes say at this moment."""

    def __init__(self) -> None:
        self.prefix = ""
        self.control: tuple[Operation, ...] = ()
        self.devices: tuple[DeviceSpec | Callable[[Any], Any], ...] = ()
        self.colocation: tuple[str, ...] = ()
        self.container = ""
        #: The maps of ``gradient_override_map`` that are entered, outermost first, and what they say together.
        self.gradient_maps: Sequence[Mapping[str, str]] = ()
        self.gradients: Mapping[str, str] = {}

    def override_gradients(self, maps: Sequence[Mapping[str, str]]) -> None:
        self.gradient_maps = maps
        self.gradients = {op_type: name for one in maps for op_type, name in one.items()}

    def device_for(self, op_def: OpDef) -> DeviceSpec | None:
        if not self.devices:
            return None
        spec = DeviceSpec()
        for item in self.devices:
            spec = spec.merge(item if isinstance(item, DeviceSpec) else DeviceSpec.parse(item(op_def)))
        return spec or None


class _Default(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_default = _Default()
_global_lock = new_lock()
_global_graph: Graph | None = None


def get_default_graph() -> Graph:
    """The innermost graph entered with ``as_default`` on this thread, else the process's own."""
    graphs = _default.graphs
    if graphs:
        return graphs[-1]
    global _global_graph
    if _global_graph is None:
        with _global_lock:
            if _global_graph is None:
                _global_graph = Graph()
    return _global_graph


def reset_default_graph() -> None:
    """Replace the process's own default graph by an empty one. Raises inside ``as_default``."""
    global _global_graph
    if _default.graphs:
        raise FailedPreconditionError("reset_default_graph() inside `with graph.as_default()`")
    _global_graph = Graph()


def _dtype(spec: str, attrs: Mapping[str, Any], index: int) -> DType:
    bound = attrs.get(spec)
    if bound is None:
        return as_dtype(spec)
    found: DType = bound[index] if isinstance(bound, tuple) else bound
    return found


def _origin(tensor: Tensor) -> Origin:
    op = tensor.op
    return Origin(op, op.op_def, op.node_attrs, op.inputs, op.outputs, tensor.value_index)


def _dims(tensor: Tensor) -> Dims:
    return tensor._dims
