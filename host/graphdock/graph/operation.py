"""Operation: one node of the user's graph, and its NodeDef: what it is, as plain data, under TensorFlow's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.device_name import DeviceSpec
from graphdock.errors import InvalidArgumentError, ShapeError, did_you_mean
from graphdock.graph.site import Site, describe, frames
from graphdock.graph.tensor import Tensor
from graphdock.shape import compatible, merge, show

if TYPE_CHECKING:
    from graphdock.graph.graph import Graph

__all__ = ["NodeDef", "Operation"]


@lazy_dataclass(frozen=True, slots=True)
class NodeDef:
    """One node of a GraphDef.

    Attributes:
      name, op: its name and op type. ``device``: the device its scopes asked for, ``""`` when none.
      input: names of its inputs, ``"x"`` for ``x:0`` and ``"x:1"``; then ``"^name"`` of each control input.
      attr: attributes by name, as Python values; TensorFlow wraps each in a message.
    """

    name: str
    op: str
    input: tuple[str, ...]
    device: str
    attr: Mapping[str, Any]


class Operation:
    """A node: an op type, attributes, input tensors, control inputs. Made by ``Graph.create_op`` or a wrapper, never by hand.

    After creation only its control inputs, its device, of a Merge what comes later and, for Cond and While, its outputs
    (append-only) may change; all but the last bump the graph's mutation number, so that plans made before are not used again.

    Attributes:
      name: unique in its graph. ``type``: op type. ``op_def``: its OpDef.
      inputs: tensors, list arguments flattened; of a Merge those that were made before it. ``later``: those that NextIterations
        give it. ``outputs``: tensors. ``control_inputs``: operations that run before it.
      node_attrs: every attribute with its value.
      bodies: the body graphs of Cond (then, else) and While (cond, body).
      colocation: names of the operations whose device it shares, as its scopes or its file said.
      gradient_type: under which its gradient is registered, when not under its op type.
    """

    __slots__ = (
        "__weakref__",
        "colocation",
        "_companions",
        "_control",
        "_device",
        "gradient_type",
        "_id",
        "_input_lengths",
        "_original",
        "_output_lengths",
        "_site",
        "bodies",
        "graph",
        "inputs",
        "later",
        "name",
        "node_attrs",
        "op_def",
        "outputs",
        "type",
        "verb",
    )

    def __init__(
        self,
        graph: Graph,
        op_def: OpDef,
        name: str,
        inputs: Sequence[Tensor],
        attrs: Mapping[str, Any],
        control: Sequence[Operation],
        device: DeviceSpec | None,
        site: Site | None,
        ident: float,
        input_lengths: tuple[int, ...] | None,
    ) -> None:
        self.graph = graph
        self.op_def = op_def
        self.type = op_def.name
        self.verb = op_def.executes
        self.name = name
        self.inputs: tuple[Tensor, ...] = tuple(inputs)
        self.later: tuple[Tensor, ...] = ()
        self.node_attrs = attrs
        self.outputs: list[Tensor] = []
        self.bodies: tuple[Any, ...] = ()
        self._control = tuple(control)
        self._device = device
        self.colocation: tuple[str, ...] = ()
        self._companions: dict[Tensor, Operation] | None = None
        self._site = site
        self._id = ident
        self._input_lengths = input_lengths
        self._output_lengths: tuple[int, ...] | None = None
        self._original: Operation | None = None
        self.gradient_type: str | None = None

    @property
    def control_inputs(self) -> list[Operation]:
        return list(self._control)

    @property
    def device(self) -> str:
        """The device its scopes asked for, ``""`` when none."""
        return "" if self._device is None else self._device.to_string()

    @property
    def site(self) -> str | None:
        """The user's own line that made it, ``"train.py:14"``."""
        return describe(self._site)

    def colocation_groups(self) -> list[bytes]:
        """``b"loc:@name"`` of each operation it must share a device with, in order; its own when there is none."""
        return [b"loc:@" + name.encode() for name in sorted(self.colocation or (self.name,))]

    @property
    def node_def(self) -> NodeDef:
        """Return what it is, as plain data."""
        inputs = [t.op.name if t.value_index == 0 else t.name for t in (*self.inputs, *self.later)]
        controls = [f"^{op.name}" for op in self._control]
        return NodeDef(self.name, self.type, (*inputs, *controls), self.device, dict(self.node_attrs))

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """The user's own line that made it, as ``(file, line, function, text)``; TensorFlow has the whole stack here."""
        return frames(self._site)

    def get_attr(self, name: str) -> Any:
        """The value of an attribute. Raises InvalidArgumentError when the op has no such attribute."""
        try:
            return self.node_attrs[name]
        except KeyError:
            raise InvalidArgumentError(
                f"operation {self.name} ({self.type}) has no attribute {name!r}",
                hint=did_you_mean(name, self.node_attrs),
            ) from None

    def arg(self, name: str) -> Any:
        """The input of that name: a Tensor, a list of them for a list argument, None for an absent optional one."""
        return self._part(name, self.op_def.inputs, self._input_lengths, self.inputs)

    def result(self, name: str) -> Any:
        """The output of that name: a Tensor, or a list of them for a list argument."""
        return self._part(name, self.op_def.outputs, self._output_lengths, self.outputs)

    def _part(
        self, name: str, args: tuple[ArgDef, ...], lengths: tuple[int, ...] | None, tensors: Sequence[Tensor]
    ) -> Any:
        start = 0
        for i, arg in enumerate(args):
            length = 1 if lengths is None else lengths[i]
            if arg.name == name:
                if arg.arity == "many":
                    return list(tensors[start : start + length])
                return tensors[start] if length else None
            start += length
        raise InvalidArgumentError(f"operation {self.name} ({self.type}) has no argument {name!r}")

    def input_shapes(self) -> Sequence[Sequence[Any]]:
        """Static shapes per input argument, as a shape rule takes them."""
        if self._input_lengths is None:
            return tuple([(t._dims,) for t in self.inputs])
        parts, start = [], 0
        for length in self._input_lengths:
            parts.append(tuple([t._dims for t in self.inputs[start : start + length]]))
            start += length
        return tuple(parts)

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in ``session`` or the default session."""
        from graphdock.graph.default_session import needed

        needed(session).run(self, feed_dict)

    def _add_control_input(self, op: Operation) -> None:
        self.graph._check_open()
        if op is not self and op not in self._control:
            self._control = (*self._control, op)
            self.graph._note_mutation()
            for companion in (self._companions or {}).values():
                companion._add_control_input(op)

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Let a Merge take what a NextIteration gives, which closes a loop of frames.

        Args:
          index: of the last of its inputs that were made before it, which this one takes the place of; or that of one that came
            so, or the next one.

        Raises:
          InvalidArgumentError: it is no Merge, ``tensor`` is of no NextIteration of its graph, has another dtype, or ``index`` is
            of another input. ShapeError: the Merge's static shape says more than the tensor's.
        """
        self._check_later(tensor)
        count = len(self.inputs)
        if not count - 1 <= index <= count + len(self.later) or (index == 0 and count == 1):
            raise InvalidArgumentError(f"{self.name} has no input {index} that may come later", op=self.name)
        later = list(self.later)
        if index == count - 1:
            self.inputs = self.inputs[:-1]
            later.insert(0, tensor)
        elif index == count + len(later):
            later.append(tensor)
        else:
            later[index - count] = tensor
        self.later = tuple(later)
        self._input_lengths = (len(self.inputs),)
        self.node_attrs = {**self.node_attrs, "N": len(self.inputs), "later": len(later)}
        self.graph._note_mutation()

    def _add_later(self, tensor: Tensor) -> None:
        """Add one of the inputs that a Merge was made for as coming later. Raises as :meth:`_update_input` does."""
        self._check_later(tensor)
        if len(self.later) == self.node_attrs["later"]:
            raise InvalidArgumentError(f"{self.name} has more later inputs than it says", op=self.name)
        self.later = (*self.later, tensor)

    def _check_later(self, tensor: Tensor) -> None:
        self.graph._check_open()
        if self.verb != "merge" or tensor.op.verb != "next" or tensor.graph is not self.graph:
            raise InvalidArgumentError(
                f"an input of {self.name} ({self.type}) can't become {tensor.name}, of a {tensor.op.type}",
                op=self.name,
                site=self.site,
                hint="only a Merge takes what is made after it, from a NextIteration of its graph",
            )
        if tensor.dtype is not self.outputs[0].dtype:
            raise InvalidArgumentError(
                f"{self.name} merges {self.outputs[0].dtype.name}; {tensor.name} is {tensor.dtype.name}", op=self.name
            )
        known = self.outputs[0]._dims
        if not compatible(known, tensor._dims) or merge(known, tensor._dims) != tensor._dims:
            raise ShapeError(
                f"{self.name} has the shape {show(known)}, and {tensor.name} of the next iteration {show(tensor._dims)}",
                op=self.name,
                site=self.site,
                hint="let what enters have an unknown shape: tf.placeholder_with_default(x, shape)",
            )

    def _add_companion(self, key: Tensor, op: Operation) -> None:
        """Let ``op``, made later, stand directly before this operation in the order of creation, as if it had been made then.

        So a companion that reads a variable sees the value that this operation sees. ``op`` may need only what this one needs.
        """
        op._id = self._id - 0.5
        op._control = self._control
        self._companions = {**(self._companions or {}), key: op}

    def _set_device(self, device: Any) -> None:
        self.graph._check_open()
        self._device = DeviceSpec.parse(device)
        self.graph._note_mutation()

    def values(self) -> tuple[Tensor, ...]:
        return tuple(self.outputs)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"
