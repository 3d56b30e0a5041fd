"""Graph: a set of operations and tensors, and the scopes under which they are made."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from graphdock.arguments import check_type
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from graphdock.graph import site as _site
from graphdock.graph.binding import complete
from graphdock.graph.operation import Operation
from graphdock.graph.scopes import NameTable, ScopedGraph, ThreadScopes, check_name
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.opdef.shape_rule import rule_for
from graphdock.opdef.shape_values import Known, KnownIntegers, Origin
from graphdock.plugin import host as _plugins
from graphdock.shape import Dims, merge

if TYPE_CHECKING:
    from graphdock.plugin.host import Host

__all__ = ["Graph", "get_default_graph", "reset_default_graph"]


#: Every graph of the process.
_graphs: WeakSet[Graph] = WeakSet()
_graphs_lock = new_lock()


class Graph(ScopedGraph):
    """A dataflow graph. It may grow while sessions run it; plans made before stay valid.

    Threads: operations may be added from several threads (a lock guards each addition); scopes (name, device, control
    dependencies) belong to the thread that entered them.

    Args:
      host: the Host whose ops it may hold; default: the process's own.

    Attributes:
      seed: graph-level random seed, set by ``tf.set_random_seed``.
      waits: some operation may wait for other steps, or run some. ``primitives``: some operation is one of dataflow's primitives.
    """

    def __init__(self, host: Host | None = None) -> None:
        self._host = host
        self._lock = new_lock()
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._reads: dict[Operation, Tensor] = {}
        #: Operations of whose outputs ``set_shape`` has said more than their ops do.
        self._promising: set[Operation] = set()
        self._names = NameTable()
        self._threads = ThreadScopes()
        self._collections: dict[Any, list[Any]] = {}
        self._unfeedable: set[Tensor] = set()
        self._unfetchable: set[Operation] = set()
        self._finalized = False
        self._mutation = 0
        self._integers = KnownIntegers(_origin, _dims)
        self.seed: int | None = None
        self.waits = False
        self.primitives = False
        self._last_seed = 0
        with _graphs_lock:
            _graphs.add(self)

    @property
    def host(self) -> Host:
        """The Host whose ops it may hold. Raises ConfigError when the process's own is asked for and its configuration is wrong."""
        if self._host is not None:
            return self._host
        return _plugins.default_host()

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
            if self._finalized:
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
                None,
                _site.capture(),
                len(self._ops),
                input_lengths,
            )
            if bodies:
                op.bodies = tuple(bodies)
            if "waits" in op_def.effects or any([b.waits for b in bodies]):
                self.waits = True
            if op_def.verb.primitive:
                self.primitives = True
            if scopes.devices or scopes.colocation:
                op._device = scopes.device_for(op)
                op.colocation = scopes.groups()
            if scopes.gradients:
                op.gradient_type = scopes.gradients.get(op.type)
            self._infer(op)
            if scopes.container and "container" in attrs and not attrs["container"]:
                op.node_attrs = {**attrs, "container": scopes.container}
            self._ops.append(op)
            self._by_name[full] = op
        return op

    def _infer(self, op: Operation) -> None:
        try:
            shapes = self.inferred_shapes(op)
        except ShapeError as error:
            if error.op is None:
                error.op, error.site = op.name, op.site
            raise
        attrs, outputs = op.node_attrs, op.outputs
        rule = rule_for(op.op_def)
        if rule.single is not None:
            outputs.append(Tensor(op, 0, _dtype(rule.single, attrs, 0), shapes[0]))
            return
        args = op.op_def.outputs
        counts = rule.output_counts(attrs)
        if any(a.arity != "one" for a in args):
            op._output_lengths = tuple(counts)
        for arg, count in zip(args, counts, strict=True):
            for i in range(count):
                index = len(outputs)
                outputs.append(Tensor(op, index, _dtype(arg.dtype, attrs, i), shapes[index]))

    def inferred_shapes(self, op: Operation) -> Sequence[Dims]:
        """Static shapes of an operation's outputs as its op has them, whatever ``set_shape`` has said more."""
        return rule_for(op.op_def).infer(
            op.node_attrs, op.input_shapes(), lambda i: self._known(op.inputs[i]), building=True
        )

    def _known(self, tensor: Tensor) -> Known:
        return self._integers.value(tensor)

    def learn_shape(self, tensor: Tensor, dims: Dims) -> None:
        """Add what is known of a tensor's static shape. Raises ShapeError when it contradicts what was known."""
        with self._lock:
            learned = merge(tensor._dims, dims)
            if learned != tensor._dims:
                tensor._dims = learned
                self._promising.add(tensor.op)
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

    def _repr_html_(self) -> str | None:
        from graphdock.graph.notebook import as_html

        return as_html(self)

    def _note_mutation(self) -> None:
        self._mutation += 1

    @staticmethod
    def plan_all_anew() -> None:
        """Have sessions make new plans of all graphs, because kernels or ops are others than before."""
        with _graphs_lock:
            for graph in _graphs:
                graph._note_mutation()

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False, form: str = "GraphDef") -> Any:
        """The graph as a ``tf.GraphDef``: TensorFlow's protocol buffer, in TensorFlow's names of ops and attributes.

        Args:
          from_version: leave out the operations that were there at this :attr:`version`.
          add_shapes: give each node the attribute ``_output_shapes``.
          form: another form, which a plugin brings; without ``from_version``.

        Raises:
          UnavailableError: no installed plugin has that form. InvalidArgumentError: bodies are deeper than a reader takes.
        """
        if form != "GraphDef" and from_version is not None:
            raise InvalidArgumentError("as_graph_def: from_version is for a GraphDef", got=f"form={form!r}")
        made = self.host.graph_formats.find(form).write(self, add_shapes)
        if from_version is not None:
            old = {op.name for op in self._ops[:from_version]}
            kept = [node for node in made.node if node.name not in old]
            del made.node[:]
            made.node.extend(kept)
        return made

    def to_json(self) -> str:
        """The graph as readable JSON, which ``tf.import_graph_def`` reads: graphdock's own form, which loses nothing.

        Raises:
          InvalidArgumentError: an operation holds a Python function (``py_func``), or bodies are deeper than a reader takes.
          UnavailableError: no installed plugin has the form ``JSON``.
        """
        text: str = self.host.graph_formats.find("JSON").write(self)
        return text

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Take back the operations made inside, and their names, when it ends with an exception.

        It holds the graph's lock: no other thread adds one meanwhile.
        """
        with self._lock:
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

    def _unsafe_unfinalize(self) -> None:
        """Take operations again. For who has finalized the graph, once nobody relies on it."""
        self._finalized = False

    @property
    def finalized(self) -> bool:
        return self._finalized

    def _check_open(self) -> None:
        if self._finalized:
            raise FailedPreconditionError("the graph is finalized and cannot be changed")

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
        check_type(name, str, "name", "a string")
        with self._lock:
            return self._names.unique(self._scopes.prefix + name, mark_as_used)


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
        raise FailedPreconditionError(
            "reset_default_graph() inside `with graph.as_default()`",
            hint="leave it out: there is a graph of its own here, as for each function that a command of graphdock calls",
        )
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
