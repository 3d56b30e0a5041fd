"""A region's graph as a region program."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from graphdock.contracts.ir import PlanNode, Region, Value, arg_of
from graphdock.contracts.region_check import check_program, held
from graphdock.contracts.region_program import REDUCTIONS, Axis, Multiple, RegionInput, RegionOutput, RegionProgram
from graphdock.contracts.scalar_formula import AXIS_WORDS
from graphdock.contracts.streams import StreamName, streams_of
from graphdock.dtypes import DType, as_dtype
from graphdock.shape import plain, show

from graphdock_fusion.regions.forms import Form, form_of, what_forbids
from graphdock_fusion.regions.parts import Stride, place_of
from graphdock_fusion.regions.placing import Dims, Shape, Space, known, local_shape, place, place_input, put
from graphdock_fusion.regions.typed import NotInRegion, Number, Operand, Terms, Unknown

__all__ = ["lower_region", "where_made"]

#: What the address of a buffer that a kernel fills is a multiple of, on every device.
_ALIGNMENT = 16
_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "divide"}
_COMPARISONS = {
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}
_AXES = "ijklmnpqr"
#: Handle -> dtype and dims of its variable.
Variables: TypeAlias = "Mapping[Value, tuple[DType, tuple[int | None, ...] | None]]"
_NO_VARIABLES: Variables = MappingProxyType({})


def lower_region(region: Region, dying: Collection[Value] = ()) -> RegionProgram:
    """The program of a region, which gets it as ``program``, with ``terms`` and ``reduces``.

    Args:
      dying: inputs of the region's graph that nothing reads after it.

    Raises:
      NotInRegion: its nodes can't be said in one space; the message says which and why.
    """
    lowering = _Lowering(region, dying)
    region.program = lowering.program()
    region.reduces = lowering.reduces
    region.terms = {node: tuple(numbers) for node, numbers in lowering.computes.items()}
    return region.program


def where_made(
    node: PlanNode, form: Form, space: Space, inside: Mapping[Value, Dims], variables: Variables = _NO_VARIABLES
) -> list[Dims]:
    """Return where a node's outputs lie in a space, beside values that the region has made already.

    Args:
      variables: handle -> dtype and dims of its variable, of those that may be written.

    Raises:
      NotInRegion: the node is in no region, or not in one of this space with these values.
    """
    reason = what_forbids(node, form)
    if reason is not None:
        raise NotInRegion(reason)
    for value in node.outputs:
        known(value)
    lowering = _Nodes(space, variables)
    for arg, value in zip(arg_of(node), node.inputs, strict=True):
        if arg.memory == "host":
            continue
        lowering.sources.setdefault(value, len(lowering.sources))
        if value in inside:
            lowering.made_before(value, inside[value])
    lowering.lower(node, form)
    return [lowering.dims[v] for v in node.outputs]


class _Nodes:
    """Lowers nodes of one space, one after another.

    Attributes:
      term: value -> its term, of what the region makes or holds as a constant. ``dims``: where those that it makes lie.
      parts: nodes of a region that only say where a part of an input of it lies.
      streams: stream that the nodes draw from -> its number. ``written``: handles whose variables the nodes have written, whose
        terms are what they hold then.
    """

    def __init__(self, space: Space, variables: Variables = _NO_VARIABLES) -> None:
        self.space = space
        self.variables = variables
        self.written: dict[Value, None] = {}
        self.terms = Terms()
        self.inputs: list[RegionInput] = []
        self.term: dict[Value, int] = {}
        self.dims: dict[Value, Dims] = {}
        self.sources: dict[Value, int] = {}
        self.dying: Collection[Value] = ()
        self.streams: dict[StreamName, int] = {}
        self.reduces: dict[PlanNode, frozenset[tuple[int, ...]]] = {}
        self.computes: dict[PlanNode, Collection[int]] = {}
        self.parts: Collection[PlanNode | None] = ()
        self._inputs: dict[tuple[Value, Dims, int | None], int] = {}

    def made_before(self, value: Value, dims: Dims) -> None:
        """A value of the region, of whose term only its axes are known."""
        if held(value.dtype) not in _HELD:
            raise NotInRegion(f"{value.name} is of {value.dtype}")
        self.dims[value] = dims
        axes = tuple(a for a in dims if a is not None)
        self.term[value] = self.terms.add("input", as_dtype(held(value.dtype)), (), axes, value)

    def constant(self, node: PlanNode) -> None:
        """A constant of one element becomes a literal."""
        (value,) = node.outputs
        array = node.attrs["value"]
        if value.shape is not None and array.size == 1 and held(value.dtype) in _HELD:
            self.term[value] = self.terms.literal(
                array.reshape(()).astype(held(value.dtype)).item(), as_dtype(held(value.dtype))
            )

    def lower(self, node: PlanNode, form: Form) -> None:
        """Make the terms of a node's outputs."""
        self.terms.origin = node.origin
        self.computes[node] = self.terms.named = {}
        shape = local_shape(node, form)
        local = place(node, form, shape, self.space, self.dims)
        names: dict[str, Any] = {name: _number(value) for name, value in node.attrs.items()}
        host: dict[str, Any] = {}
        lists: dict[str, list[int]] = {}
        for i, (arg, value) in enumerate(zip(arg_of(node), node.inputs, strict=True)):
            if arg.memory == "host":
                host[arg.name] = node.constant(i)
                continue
            if arg.name in form.writes:
                names[arg.name] = self._variable(value, shape, local)
                continue
            term = self._read(node, arg.name, value, form, local)
            names[arg.name] = term
            lists.setdefault(arg.name, []).append(term)
        written = [
            self.variables[v][0] for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.name in form.writes
        ]
        dtype = node.outputs[0].dtype if node.outputs else written[0]
        formula = _Formula(self.terms, names, host, lists, node, local, self.streams, dtype, form.space)
        for name, tree in form.let:
            formula.names[name] = formula.operand(tree)
        for value, tree in zip(node.outputs, form.outputs, strict=True):
            self._made(node, value, formula.operand(tree), local)
        held_then = {name: formula.operand(tree) for name, tree in form.writes.items()}
        for arg, value in zip(arg_of(node), node.inputs, strict=True):
            if arg.name in held_then:
                dtype = as_dtype(held(self.variables[value][0]))
                self.term[value] = self.terms.as_term(held_then[arg.name], dtype)
                self.written[value] = None
        if formula.reduced:
            self.reduces[node] = frozenset(formula.reduced)

    def _read(self, node: PlanNode, name: str, value: Value, form: Form, local: Dims) -> int:
        wanted = place_input(node, name, value, form, local, self.space)
        if name in form.gathers:
            return self._gather(node, value, wanted, form.gathers[name], form, local)
        if value in self.term:
            if value in self.dims and self.dims[value] != wanted:
                raise NotInRegion(f"{value.name} is read along other axes than it is made")
            return self.term[value]
        number = self._input(value, wanted)
        axes = tuple(sorted(a for a in wanted if a is not None))
        return self.terms.add("input", as_dtype(held(value.dtype)), (), axes, number)

    def _input(self, value: Value, wanted: Dims, indices: int | None = None) -> int:
        """Number of the program's input that reads a value on these axes."""
        number = self._inputs.get((value, wanted, indices))
        if number is None:
            number = self._inputs[value, wanted, indices] = len(self.inputs)
            whole = value.node is not None and not value.node.opdef.aliases
            self._enter(value, value.dtype, value.shape or (), wanted, _ALIGNMENT if whole else value.dtype.size)
        return number

    def _gather(self, node: PlanNode, value: Value, wanted: Dims, by: str, form: Form, local: Dims) -> int:
        """Rows of a value where another one says: both from outside, and whole."""
        index = next(v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.name == by)
        for each in (value, index):
            if each in self.term or each.node is not None and each.node in self.parts:
                raise NotInRegion(f"{each.name}, of what is gathered by {node.name}, is made in the region")
        along = place_input(node, by, index, form, local, self.space)
        first = self._input(index, along)
        number = self._input(value, wanted, first)
        self.inputs[number] = replace(self.inputs[number], indices=first)
        axes = tuple(sorted({a for a in (*wanted, *along) if a is not None}))
        return self.terms.add("input", as_dtype(held(value.dtype)), (), axes, number)

    def _enter(
        self, value: Value, dtype: DType, shape: tuple[int | None, ...], dims: Dims, alignment: int
    ) -> RegionInput:
        if held(dtype) not in _HELD:
            raise NotInRegion(f"{value.name} is of {dtype}")
        name, dies = value.name.removesuffix(":0"), value in self.dying and value not in self.variables
        part = place_of(value) if value.node in self.parts else None
        if part is None:
            made = RegionInput(name, self.sources[value], dtype, shape, dims, alignment, dies)
        else:
            strides = tuple([_stride(stride, known(value), dims) for stride in part.strides])
            spans = tuple([span if size is None else None for size, span in zip(shape, part.spans, strict=True)])
            lies = strides, part.offset, plain(known(part.source)) or (), spans if None in shape else ()
            made = RegionInput(name, self.sources[part.source], dtype, shape, dims, dtype.size, False, *lies)
        self.inputs.append(made)
        return made

    def _variable(self, handle: Value, shape: Shape, local: Dims) -> int:
        """An element of the variable that a node updates: what the region has written there, or what it held before."""
        if handle not in self.variables:
            raise NotInRegion(f"{handle.name} names nothing that may be written")
        dtype, dims = self.variables[handle]
        if dims != shape:
            raise NotInRegion(
                f"{handle.name} names a variable of shape {dims}, which is updated by one of shape {show(plain(shape))}"
            )
        if self.dims.setdefault(handle, local) != local:
            raise NotInRegion(f"{handle.name} is updated along other axes than before")
        if handle not in self.term:
            self._enter(handle, dtype, dims, local, dtype.size)
            axes = tuple(a for a in local if a is not None)
            self.term[handle] = self.terms.add("input", as_dtype(held(dtype)), (), axes, len(self.inputs) - 1)
        return self.term[handle]

    def _made(self, node: PlanNode, value: Value, operand: Operand, local: Dims) -> None:
        dtype = as_dtype(held(value.dtype))
        if dtype.name not in _HELD:
            raise NotInRegion(f"{value.name} is of {value.dtype}")
        term = self.terms.as_term(operand, dtype)
        if node.opdef.scalar == "cast(x)" and dtype != value.dtype:
            term = self.terms.rounded(term, value.dtype.name)
        shape = known(value)
        axes = self.terms.terms[term].axes
        if [d for d in shape if d != 1] == [self.space[a] for a in axes]:
            self.dims[value] = put(shape, axes, self.space)
        else:  # repeated along some axes
            tail = local[len(local) - len(shape) :]
            if len(tail) != len(shape) or any(
                size != (1 if a is None else self.space[a]) for size, a in zip(shape, tail, strict=True)
            ):
                raise NotInRegion(f"{value.name} of shape {show(plain(shape))} does not lie on the axes of {node.name}")
            self.dims[value] = tail
        self.term[value] = term


class _Lowering(_Nodes):
    """Lowers a region."""

    def __init__(self, region: Region, dying: Collection[Value]) -> None:
        self.region = region
        self.dying_values = dying
        nodes = [n for n in region.graph.nodes if n.verb != "constant" and n not in region.parts]
        forms = [form_of(n.opdef) for n in nodes]
        spaces = [_space_of(n, f) for n, f in zip(nodes, forms, strict=True)]
        super().__init__(max(spaces, key=len, default=()), region.variables)
        self.nodes = list(zip(nodes, forms, strict=True))

    def program(self) -> RegionProgram:
        graph = self.region.graph
        self.dying = self.dying_values
        self.sources = {value: i for i, value in enumerate(graph.inputs)}
        self.parts = self.region.parts
        self.streams = {stream: i for i, stream in enumerate(self.region.streams)}
        for node in graph.nodes:
            if node.verb == "constant":
                self.constant(node)
        for node, form in self.nodes:
            assert form is not None
            self.lower(node, form)
        self._keep_gathered()
        outputs = tuple([*(self._output(value) for value in graph.outputs), *(self._update(v) for v in self.written)])
        extents = [size if isinstance(size, int) else None for size in self.space]
        axes = tuple(Axis(_AXES[i] if i < len(_AXES) else f"a{i}", size) for i, size in enumerate(extents))
        name = self.nodes[0][0].name if self.nodes else graph.name
        names = tuple([stream.name for stream in self.region.streams])
        program, place = _pruned(RegionProgram(name, axes, tuple(self.inputs), tuple(self.terms.terms), outputs, names))
        self.computes = {n: [place[t] for t in sorted(made) if t in place] for n, made in self.computes.items()}
        check_program(program)
        for axis, size in enumerate(extents):
            if size is None and not any(axis in source.dims for source in program.inputs):
                raise Unknown(f"nothing that it reads is as long as axis {axes[axis].name}, whose extent is not known")
        return program

    def _keep_gathered(self) -> None:
        """Say of what is gathered, and of its indices, that it may not be written over, however else it is read."""
        gathers = [i for i in self.inputs if i.indices is not None]
        kept = {n for i in gathers for n in (i.source, self.inputs[i.indices or 0].source)}
        self.inputs = [replace(i, dying=False) if i.source in kept else i for i in self.inputs]

    def _output(self, value: Value) -> RegionOutput:
        dims, shape = self.dims[value], value.shape or ()
        over = tuple(
            i
            for i, source in enumerate(self.inputs)
            if source.dying and source.dtype == value.dtype and source.shape == shape and source.dims == dims
        )
        return RegionOutput(value.name, self.term[value], value.dtype, shape, dims, over)

    def _update(self, handle: Value) -> RegionOutput:
        dtype, shape = self.variables[handle]
        name = handle.name.removesuffix(":0")
        return RegionOutput(name, self.term[handle], dtype, shape or (), self.dims[handle], into=self.sources[handle])


def _stride(stride: Stride, shape: Shape, dims: Dims) -> int | Multiple:
    """A stride as a program says it, of a part whose dims lie on these axes."""
    factor, symbols = stride
    axes = sorted(axis for axis in (dims[shape.index(symbol)] for symbol in symbols) if axis is not None)
    return Multiple(factor, tuple(axes)) if axes else factor


def _pruned(program: RegionProgram) -> tuple[RegionProgram, dict[int, int]]:
    """The program without the terms and inputs that no output needs, and the new numbers of the terms. Rows that are gathered stay:
    their indices may be wrong."""
    live = {out.term for out in program.outputs}
    gathered = {number for number, source in enumerate(program.inputs) if source.indices is not None}
    live.update(number for number, term in enumerate(program.terms) if term.op == "input" and term.value in gathered)
    for number in range(len(program.terms) - 1, -1, -1):
        if number in live:
            live.update(program.terms[number].args)
    place = {number: i for i, number in enumerate(sorted(live))}
    kept = [program.terms[number] for number in place]
    read = {t.value for t in kept if t.op == "input"}
    read |= {by for number in read if (by := program.inputs[number].indices) is not None}
    reading = {number: i for i, number in enumerate(sorted(read))}
    terms = tuple(
        replace(t, args=tuple([place[a] for a in t.args]), value=reading[t.value] if t.op == "input" else t.value)
        for t in kept
    )
    outputs = tuple(
        replace(o, term=place[o.term], inplace=tuple([reading[i] for i in o.inplace if i in reading]))
        for o in program.outputs
    )
    inputs = [program.inputs[i] for i in reading]
    inputs = [i if i.indices is None else replace(i, indices=reading[i.indices]) for i in inputs]
    return replace(program, inputs=tuple(inputs), terms=terms, outputs=outputs), place


class _Formula:
    """The terms of one node's formulas. ``dtype``: of its first output, or of the variable that it writes."""

    def __init__(
        self,
        terms: Terms,
        names: dict[str, Any],
        host: dict[str, Any],
        lists: dict[str, list[int]],
        node: PlanNode,
        local: Dims,
        streams: dict[StreamName, int],
        dtype: DType,
        space: Sequence[str] = (),
    ) -> None:
        self.terms = terms
        self.names = names
        self.host = host
        self.lists = lists
        self.node = node
        self.local = local
        self.streams = streams
        self.dtype = dtype
        self.space = space
        self.reduced: set[tuple[int, ...]] = set()

    def operand(self, tree: ast.expr) -> Operand:
        """A formula as a term, or as a number."""
        match tree:
            case ast.Constant(value=bool() | int() | float() as number):
                return Number(number)
            case ast.Name(id=name):
                found = self.names.get(name)
                if found is None:
                    raise NotInRegion(f"{name} is not known before the step")
                return found  # type: ignore[no-any-return]
            case ast.BinOp(left=left, op=op, right=right):
                return self._folded(_OPERATORS[type(op)], self.operand(left), self.operand(right))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                operand = self.operand(inner)
                return Number(-operand.value) if isinstance(operand, Number) else self.terms.apply("neg", operand)
            case ast.UnaryOp(operand=inner):
                return self.terms.apply("not", self.operand(inner))
            case ast.BoolOp(op=op, values=values):
                result = self.operand(values[0])
                for other in values[1:]:
                    result = self.terms.apply("and" if isinstance(op, ast.And) else "or", result, self.operand(other))
                return result
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.terms.apply(_COMPARISONS[type(op)], self.operand(left), self.operand(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, args)
        raise NotInRegion(f"{ast.unparse(tree)!r} is no formula of a region")

    def _folded(self, op: str, left: Operand, right: Operand) -> Operand:
        if not (isinstance(left, Number) and isinstance(right, Number)):
            return self.terms.apply(op, left, right)
        a, b = float(left.value), float(right.value)
        return Number({"add": a + b, "sub": a - b, "mul": a * b}[op] if op != "divide" else a / b)

    def _call(self, name: str, args: Sequence[ast.expr]) -> Operand:
        if name in REDUCTIONS:
            operand = self.operand(args[0])
            if isinstance(operand, Number):
                raise NotInRegion(f"{name} of a number")
            axes = self._axes(args[1])
            gone = tuple(a for a in axes if a in self.terms.terms[operand].axes)
            if gone:
                self.reduced.add(gone)
            return self.terms.reduce(name, operand, axes)
        match name:
            case "cast":
                target = as_dtype(held(self.dtype))
                operand = self.operand(args[0])
                return operand if isinstance(operand, Number) else self.terms.cast(operand, target)
            case "count":
                return self._count(self._axes(args[0]))
            case "index":
                (axis,) = self._axes(args[0]) or (None,)
                return Number(0) if axis is None else self.terms.add("index", as_dtype("int64"), (), (axis,), axis)
            case "reshaped":
                return self.operand(args[0])
            case "uniform":
                (stream,) = streams_of(self.node)
                number = self.streams.setdefault(stream, len(self.streams))
                axes = tuple([a for a in self.local if a is not None])
                return self.terms.uniform(number, axes, self.node.outputs[0].dtype)
            case "total":
                assert isinstance(args[0], ast.Name)
                first, *rest = self.lists[args[0].id]
                result: Operand = first
                for term in rest:
                    result = self.terms.apply("add", result, term)
                return result
        return self.terms.apply(name, *[self.operand(a) for a in args])

    def _count(self, axes: tuple[int, ...]) -> Operand:
        """Return how many points lie along axes, as float32."""
        dtype = self._floating()
        result: Operand = Number(1)
        for axis in axes:
            extent = self.terms.cast(self.terms.add("extent", as_dtype("int64"), value=axis), dtype)
            result = extent if isinstance(result, Number) else self.terms.apply("mul", result, extent)
        return result

    def _floating(self) -> DType:
        dtypes = {held(v.dtype) for v in self.node.inputs if v.dtype.is_floating}
        return as_dtype("float64" if "float64" in dtypes else "float32")

    def _axes(self, tree: ast.expr) -> tuple[int, ...]:
        """Axes of the space that an expression for axes names; those of size 1 are none."""
        local, rank = self.local, len(self.local)
        match tree:
            case ast.Name(id=word) if word in self.space:
                places = [self.space.index(word)]
            case ast.Name(id=word) if word in AXIS_WORDS:
                places = list(range(rank)) if word == "every" else self._missing()
            case ast.Call(func=ast.Name(id=word), args=[inner]):
                (first,) = self._places(inner, rank)
                places = list(range(first, rank) if word == "since" else range(first))
            case _:
                places = self._places(tree, rank)
        return tuple(sorted({axis for p in places if (axis := local[p]) is not None}))

    def _missing(self) -> list[int]:
        """The dims that the first output has not, or has as 1."""
        shape = self.node.outputs[0].shape or ()
        offset = len(self.local) - len(shape)
        return [i for i in range(len(self.local)) if i < offset or shape[i - offset] == 1]

    def _places(self, tree: ast.expr, rank: int) -> list[int]:
        match tree:
            case ast.Name(id=name):
                value = self.host.get(name, self.node.attrs.get(name))
            case _:
                value = ast.literal_eval(tree)
        if value is None:
            raise NotInRegion(f"{ast.unparse(tree)} is not known before the step")
        numbers = value.reshape(-1).tolist() if hasattr(value, "reshape") else value
        return [int(n) % rank for n in (numbers if isinstance(numbers, list | tuple) else [numbers])] if rank else []


_HELD = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
)


def _number(value: Any) -> Number | None:
    return Number(value) if isinstance(value, bool | int | float) else None


def _space_of(node: PlanNode, form: Form | None) -> Space:
    if form is None:
        raise NotInRegion(f"{node.op} says nothing of regions")
    reason = what_forbids(node, form)
    if reason is not None:
        raise NotInRegion(f"{node.name}: {reason}")
    return tuple(d for d in local_shape(node, form) if d != 1)
