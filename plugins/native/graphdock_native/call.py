"""One ``gd_call`` and all that it points to: filled once per instance as far as the plan knows, per call for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.arguments import utf8
from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.contracts.kernel import Scratch
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import InternalError

from graphdock_native.abi import DTYPES, STATUSES, VERSION, cffi_interface

__all__ = ["Call", "Tensors", "attributes_problem", "raise_status"]

#: Bytes for a kernel's message, the zero byte included.
_MESSAGE = 1024
_INT64 = range(-(2**63), 2**63)
#: Type of an attribute's value -> its number in ``gd_attr_kind``.
_KINDS = {"int": 1, "float": 2, "bool": 3, "string": 4, "type": 5, "shape": 6}


class Tensors:
    """An array of ``gd_tensor``. A shape is set when it is known, an address when a buffer is.

    Attributes:
      array: the cdata. ``dtypes``: of each tensor.
    """

    def __init__(self, dtypes: Sequence[DType]) -> None:
        ffi = cffi_interface()
        self.dtypes = tuple(dtypes)
        self.array = ffi.new("gd_tensor[]", max(len(dtypes), 1))
        self._ffi = ffi
        self._dims: list[Any] = [None] * len(dtypes)
        for i, dtype in enumerate(dtypes):
            self.array[i].dtype = DTYPES[dtype.name]

    def __len__(self) -> int:
        return len(self.dtypes)

    def set_shape(self, index: int, shape: Sequence[int], strides: Sequence[int] | None = None) -> None:
        """Strides are in bytes; None stands for row-major without gaps."""
        rank, size = len(shape), 1
        steps = [0] * rank
        for axis in reversed(range(rank)):
            steps[axis] = size * self.dtypes[index].size
            size *= shape[axis]
        # one word more, so that rank 0 has an address too
        dims = self._ffi.new("int64_t[]", [*shape, *(steps if strides is None else strides), 0])
        self._dims[index] = dims
        tensor = self.array[index]
        tensor.rank, tensor.size = rank, size
        tensor.shape, tensor.strides = dims, dims + rank

    def set_buffer(self, index: int, buffer: Any) -> None:
        self.array[index].data = self._ffi.cast("void *", buffer.ctypes.data)

    def setter(self, index: int) -> Callable[[Any], None]:
        """Return what sets the address of tensor ``index`` to a row-major NumPy array's."""
        tensor = self.array[index]
        if self.dtypes[index].name == "bfloat16":  # which has no buffer interface
            cast = self._ffi.cast

            def from_array(buffer: Any) -> None:
                tensor.data = cast("void *", buffer.ctypes.data)

            return from_array
        from_buffer = self._ffi.from_buffer

        def from_memory(buffer: Any) -> None:
            tensor.data = from_buffer(buffer)

        return from_memory


class Call:
    """One ``gd_call``. It belongs to one bound kernel, which never runs twice at once.

    Args:
      outputs_of: the output argument of each output. ``constants``: read-only arrays that every call gets.
    """

    def __init__(
        self,
        node: PlanNode,
        outputs_of: Sequence[str],
        inputs: Tensors,
        outputs: Tensors,
        constants: Sequence[np.ndarray[Any, Any]],
    ) -> None:
        ffi = cffi_interface()
        self.inputs, self.outputs, self.scratch = inputs, outputs, Tensors([])
        self.constants = Tensors([as_dtype(c.dtype) for c in constants])
        self._held = [*constants]
        for i, array in enumerate(constants):
            self.constants.set_shape(i, array.shape)
            self.constants.set_buffer(i, array)
        self._attrs = _Attributes(node)
        self._begins = [
            ffi.new("int32_t[]", _begins([a.name for a in node.opdef.inputs], [a.name for a in arg_of(node)])),
            ffi.new("int32_t[]", _begins([a.name for a in node.opdef.outputs], outputs_of)),
        ]
        self.message = ffi.new("char[]", _MESSAGE)
        call = self.struct = ffi.new("gd_call *")
        call.abi_version, call.call_size = VERSION, ffi.sizeof("gd_call")
        call.input_count, call.output_count = len(inputs), len(outputs)
        call.constant_count = len(constants)
        call.attr_count = len(self._attrs)
        call.inputs, call.outputs = inputs.array, outputs.array
        call.scratch, call.constants = self.scratch.array, self.constants.array
        call.attrs = self._attrs.array
        call.input_begin, call.output_begin = self._begins
        call.message, call.message_size = self.message, _MESSAGE

    def set_scratch(self, wanted: Sequence[Scratch]) -> None:
        """Other scratch buffers, of these dtypes and shapes; their addresses come later."""
        self.scratch = Tensors([s.dtype for s in wanted])
        for i, item in enumerate(wanted):
            self.scratch.set_shape(i, item.shape)
        self.struct.scratch, self.struct.scratch_count = self.scratch.array, len(wanted)

    def said(self) -> str:
        """The message of the last call that failed; it is taken away."""
        text: bytes = cffi_interface().string(self.message, _MESSAGE)
        self.message[0] = b"\0"
        return text.decode("utf-8", "replace").strip()


def _begins(arguments: Sequence[str], flat: Sequence[str]) -> list[int]:
    """Return where each argument's tensors begin in the flat list, and where the last one's end."""
    found = [0]
    for name in arguments:
        found.append(found[-1] + sum(of == name for of in flat))
    return found


class _Attributes:
    """An array of ``gd_attr``: type variables, then attributes, in the order of the spec."""

    def __init__(self, node: PlanNode) -> None:
        self._ffi = cffi_interface()
        self._held: list[Any] = []
        named = _typed(node)
        self._count = len(named)
        self.array = self._ffi.new("gd_attr[]", max(len(named), 1))
        for i, (_, kind, value) in enumerate(named):
            self._fill(self.array[i], kind, value)

    def __len__(self) -> int:
        return self._count

    def _fill(self, attr: Any, type_: str, value: Any) -> None:
        element = type_.removeprefix("list(").removesuffix(")")
        attr.is_list = element != type_
        if value is None and element != "shape" or element not in _KINDS or (attr.is_list and element == "shape"):
            return  # absent
        attr.kind = _KINDS[element]
        if element == "shape":
            attr.count = -1 if value is None else len(value)
            attr.ints = self._keep("int64_t[]", [*(-1 if d is None else d for d in value or ()), 0])
            return
        values = list(value) if attr.is_list else [value]
        attr.count = len(values)
        if element == "float":
            attr.floats = self._keep("double[]", [*map(float, values), 0.0])
        elif element == "string":
            attr.texts = self._texts(values)
        elif element == "type":
            attr.ints = self._keep("int64_t[]", [*(DTYPES.get(v.name, 0) for v in values), 0])
        else:
            attr.ints = self._keep("int64_t[]", [*map(int, values), 0])

    def _texts(self, values: Sequence[Any]) -> Any:
        texts = self._keep("gd_text[]", len(values) + 1)
        for i, value in enumerate(values):
            data = utf8(value, "a text") if isinstance(value, str) else bytes(value)
            texts[i].data, texts[i].size = self._keep("char[]", data), len(data)
        return texts

    def _keep(self, kind: str, initial: Any) -> Any:
        made = self._ffi.new(kind, initial)
        self._held.append(made)
        return made


def _typed(node: PlanNode) -> list[tuple[str, str, Any]]:
    """``(name, type, value)`` of every type variable and attribute."""
    opdef, attrs = node.opdef, node.attrs
    types = [(v.name, "list(type)" if v.is_list else "type", attrs[v.name]) for v in opdef.types]
    return [*types, *((a.name, a.type, attrs[a.name]) for a in opdef.attrs)]


def attributes_problem(node: PlanNode) -> str | None:
    """Return why an attribute can't be handed to C; None when all can."""
    for name, type_, value in _typed(node):
        if type_ in ("int", "list(int)") and value is not None:
            for number in value if isinstance(value, (tuple, list)) else (value,):
                if number not in _INT64:
                    return f"its attribute {name}={number} has no place in 64 bits"
    return None


def raise_status(status: int, said: str, kernel: str, node: PlanNode) -> None:
    """Raise what a kernel's status says.

    Raises:
      GraphdockError: the class of that status; InternalError for a number that is none.
    """
    kind = STATUSES.get(status)
    if kind is None:
        raise InternalError(
            f"the native kernel {kernel} of {node.op} returned the unknown status {status}"
            + (f": {said}" if said else ""),
            expected="one of gd_status",
        )
    silent = f"the native kernel {kernel} of {node.op} failed and gave no reason"
    raise kind(f"{node.op}: {said}" if said else silent)
