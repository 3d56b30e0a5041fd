"""Functions of a graph's library: calls are replaced by what they call; ``If`` and ``While`` get them as bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphdock.errors import InvalidArgumentError

from graphdock_tensorflow.graphs.bodies import Body, identity_n
from graphdock_tensorflow.graphs.convert import convert, node_of
from graphdock_tensorflow.graphs.nodes import Level, Node, op_of, output_counts
from graphdock_tensorflow.graphs.sums import make_sums
from graphdock_tensorflow.graphs.table import HISTORIES, OWN_WHILE
from graphdock_tensorflow.graphs.values import dims_of, dtype_name, from_attr

__all__ = ["Library"]

#: How deep functions may call one another.
DEEPEST = 32


class Library:
    """The functions of a GraphDef.

    Args:
      finish: what makes conds and loops of a body's primitives, once its nodes are graphdock's.

    Raises:
      InvalidArgumentError: functions call one another without end, or become too much.
    """

    def __init__(self, message: Any, producer: int, finish: Callable[[Level], None]) -> None:
        self._functions = {f.signature.name: f for f in message.function}
        self._sizes = {name: f.ByteSize() for name, f in self._functions.items()}
        self._producer = producer
        self._finish = finish
        self._depth = 0

    def __contains__(self, op: str) -> bool:
        return op in self._functions

    def expand(self, level: Level) -> None:
        """Replace the calls of a level, its Ifs and its Whiles."""
        for name in list(level):
            node = level[name]
            if node.raw is None:
                continue
            rule = _RULES.get(node.op)
            if rule is None and node.why == "op" and node.op in self._functions:
                rule = Library._call
            if rule is None:
                continue
            node.why = ""
            self._depth += 1
            try:
                if self._depth > DEEPEST:
                    raise InvalidArgumentError(f"GraphDef: functions call one another deeper than {DEEPEST}", op=name)
                rule(self, level, node)
            finally:
                self._depth -= 1

    # -- bodies -------------------------------------------------------------------------------------------------------

    def _body(self, node: Node, function: str, label: str, level: Level) -> Body | None:
        """The body of a function, its nodes graphdock's; None where there is none of that name, which is said of the node."""
        found = self._functions.get(function)
        if found is None:
            node.why = f"the function {function!r}, which is not there"
            return None
        level.room.take("bodies", self._sizes[function], node.name)
        body = Body(f"{node.name.rpartition('/')[2]}/{label}", Level(level.ops, level.room))
        tensors: dict[str, str] = {}
        for arg in found.signature.input_arg:
            if arg.number_attr or arg.type_list_attr or arg.type_attr:
                node.why = f"the function {function!r}, which takes any dtypes"
                return None
            tensors[arg.name] = body.argument(arg.name, dtype_name(arg.type, f"function {function!r}"))
        waiting: dict[str, list[str]] = {}
        for message in found.node_def:
            made = _bare(message)
            waiting[made.name] = [t for t in message.input if not t.startswith("^")]
            body.level.put(made)
        for name in waiting:
            convert(body.level, name, self._producer)
        meant = {
            _numbered(name, i): self._tensor(body.level, text, tensors)
            for name, inputs in waiting.items()
            for i, text in enumerate(inputs)
        }
        body.level.replace_inputs(meant)
        make_sums(body.level)
        self.expand(body.level)
        body.outputs = [self._tensor(body.level, found.ret[a.name], tensors) for a in found.signature.output_arg]
        body.targets = [found.control_ret[c] for c in found.signature.control_output if c in found.control_ret]
        self._finish(body.level)
        return body

    def _tensor(self, level: Level, text: str, arguments: Mapping[str, str]) -> str:
        """The tensor that ``"x"`` or ``"node:output:0"`` means in a function."""
        if text in arguments:
            return arguments[text]
        parts = text.split(":")
        if len(parts) != 3 or parts[0] not in level or not parts[2].isdecimal():
            if len(parts) == 2 and parts[0] in level and parts[1].isdecimal():
                return text
            raise InvalidArgumentError(f"GraphDef: {text[:100]!r} is no tensor of a function")
        name, output, index = parts
        return f"{name}:{self._offset(level[name], output, level.ops) + int(index)}"

    def _offset(self, node: Node, output: str, ops: Any) -> int:
        """The number of the first tensor of an output, by TensorFlow's or graphdock's name of it."""
        function = self._functions.get(node.wrote)
        if function is not None:
            names = [a.name for a in function.signature.output_arg]
            return names.index(output) if output in names else 0
        if node.op not in ops:
            return 1 if output == "r1" else 0  # of BroadcastGradientArgs
        opdef = ops.get(node.op)
        names = [a.name for a in opdef.outputs]
        if output not in names or len(names) == 1:
            return 0  # the one output, under TensorFlow's name
        return sum(output_counts(opdef, node.attrs)[: names.index(output)])

    # -- nodes that have functions --------------------------------------------------------------------------------------

    def _call(self, level: Level, node: Node) -> None:
        function = node.raw.attr["f"].func.name if "f" in node.raw.attr else node.raw.op
        body = self._body(node, function, "call", level)
        if body is None:
            return
        if len(body.arguments) != len(node.inputs):
            node.why = f"the function {function!r}, which takes another number of arguments"
            return
        level.room.take("bodies", len(body.level) * len(node.name), node.name)
        names = {n: level.fresh(f"{node.name}/{n}") for n in body.level}
        outside = dict(zip(body.arguments, node.inputs, strict=True))

        def renamed(tensor: str) -> str:
            return outside.get(tensor) or f"{names[op_of(tensor)]}:{tensor.rpartition(':')[2]}"

        arguments = set(map(op_of, body.arguments))
        for inner in body.level.values():
            if inner.name in arguments:
                continue
            controls = [names[c] for c in inner.controls if c not in arguments] + node.controls
            inner.inputs, inner.controls = [renamed(t) for t in inner.inputs], controls
            inner.name = names[inner.name]
            inner.device = inner.device or node.device
            level.put(inner)
        targets = [names[t] for t in body.targets if t in names]
        identity_n(level, node.name, [renamed(t) for t in body.outputs], node, [*targets, *node.controls])

    def _if(self, level: Level, node: Node) -> None:
        if level.dtype(node.inputs[0]) != "bool":
            node.why = "a branch that no bool decides"
            return
        then, other = (
            self._body(node, node.raw.attr[f"{which}_branch"].func.name, which, level) for which in ("then", "else")
        )
        if then is None or other is None:
            return
        node.why = then.why() or other.why()
        if node.why:
            return
        raw = node.raw
        node.op, node.raw = "Cond", None
        node.attrs = {n: {"list(type)": [dtype_name(t, n) for t in raw.attr[n].list.type]} for n in ("Tin", "Tout")}
        node.attrs |= {"then_branch": then.data(), "else_branch": other.data()}

    def _while(self, level: Level, node: Node) -> None:
        test = self._body(node, node.raw.attr["cond"].func.name, "cond", level)
        step = self._body(node, node.raw.attr["body"].func.name, "body", level)
        if test is None or step is None:
            return
        node.why = test.why() or step.why()
        count = len(node.inputs)
        if not node.why and not count == len(step.arguments) == len(step.outputs) == len(test.arguments):
            node.why = "a loop whose functions take other arguments"
        if node.why:
            return
        kept = [i for i in range(count) if step.outputs[i] != step.arguments[i]]  # the others no iteration changes
        order = [*kept, *[i for i in range(count) if i not in set(kept)]]
        shapes = [node.raw.attr["output_shapes"].list.shape[i] for i in kept] if _has_shapes(node, count) else None
        invariants = [None] * len(kept) if shapes is None else [dims_of(s, f"node {node.name!r}") for s in shapes]
        invariants = [
            [] if level.dtype(node.inputs[i]) == "variant" else d for i, d in zip(kept, invariants, strict=True)
        ]
        for body in (test, step):
            body.arguments = [body.arguments[i] for i in order]
        for tensor, dims in zip(step.arguments, invariants, strict=False):
            step.level[op_of(tensor)].attrs["shape"] = {"shape": dims}
        for tensor, dims in zip(test.arguments, invariants, strict=False):
            test.level[op_of(tensor)].attrs["shape"] = {"shape": dims}
        step.outputs = [step.outputs[i] for i in kept]
        inputs = [node.inputs[i] for i in order]
        dtypes = [level.dtype(t) or "float32" for t in inputs]
        loop = Node(level.fresh(f"{node.name}/loop"), "While", inputs, list(node.controls), device=node.device)
        loop.wrote = node.wrote
        loop.attrs = {
            "Tin": {"list(type)": dtypes},
            "Tout": {"list(type)": dtypes[: len(kept)]},
            "cond": test.data(len(kept)),
            "body": step.data(len(kept)),
            "output_shapes": {"list(shape)": invariants},
        }
        level.put(loop)
        results = {i: f"{loop.name}:{k}" for k, i in enumerate(kept)}
        handles = {
            f"{node.name}:{i}": results.get(i, t)
            for i, t in enumerate(node.inputs)
            if level.dtype(t) in ("resource", "variant")
        }
        level.replace_inputs(handles)
        tensors = [results.get(i, t) for i, t in enumerate(node.inputs)]
        filler = next((t for t in tensors if level.dtype(t) not in ("resource", "variant")), None)
        shown = [t if level.dtype(t) not in ("resource", "variant") else filler for t in tensors]
        identity_n(level, node.name, [t for t in shown if t is not None], node, [loop.name])

    def _own_while(self, level: Level, node: Node) -> None:
        """A loop with histories, which only graphdock writes; the one without them that it stands beside is the same one."""
        test = self._body(node, node.raw.attr["cond"].func.name, "cond", level)
        step = self._body(node, node.raw.attr["body"].func.name, "body", level)
        if test is None or step is None:
            return
        node.why = test.why() or step.why()
        if node.why:
            return
        kinds = {a.name: a.type for a in level.ops.get("While").attrs if a.type != "func"}
        kinds |= {"Tin": "list(type)", "Tout": "list(type)"}
        raw, node.raw, node.op = node.raw, None, "While"
        node.attrs = {n: {k: from_attr(k, raw.attr[n], f"node {node.name!r}: {n}")} for n, k in kinds.items()}
        count = len(node.attrs["output_shapes"]["list(shape)"])
        node.attrs["cond"] = test.data(count)
        node.attrs["body"] = step.data(count + max(node.attrs["scanned"]["int"], 0))
        forward = level.get(node.name.removesuffix(HISTORIES))
        if forward is not None and forward is not node and forward.wrote in ("While", "IdentityN"):
            level.replace_inputs({f"{forward.name}:{i}": f"{node.name}:{i}" for i in range(count)})


def _has_shapes(node: Node, count: int) -> bool:
    return "output_shapes" in node.raw.attr and len(node.raw.attr["output_shapes"].list.shape) == count


def _numbered(name: str, place: int) -> str:
    return f"\0{name}\0{place}"


def _bare(message: Any) -> Node:
    """The node of a function, whose inputs are numbered until all outputs can be counted."""
    copy = type(message)()
    copy.CopyFrom(message)
    del copy.input[:]
    node = node_of(copy)
    place = 0
    for text in message.input:
        if text.startswith("^"):
            node.controls.append(text[1:])
        else:
            node.inputs.append(_numbered(message.name, place))
            place += 1
    return node


def _rules() -> Iterator[tuple[str, Callable[[Library, Level, Node], None]]]:
    yield from dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), Library._call).items()
    yield from dict.fromkeys(("If", "StatelessIf"), Library._if).items()
    yield OWN_WHILE, Library._own_while
    yield from dict.fromkeys(("While", "StatelessWhile"), Library._while).items()


_RULES: dict[str, Callable[[Library, Level, Node], None]] = dict(_rules())
