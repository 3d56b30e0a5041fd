"""Graphs of float32, a line for each node: ``y = Relu(x)``."""

import re
from collections import Counter

from graphdock.contracts import GraphFormat, GraphRead, ImportReport, Missing
from graphdock.dtypes import float32
from graphdock.errors import DataLossError, InvalidArgumentError, UnimplementedError

HEAD = "# edges\n"
LINE = re.compile(r"([\w/.]+) = (\w+)\((.*)\)")


class Edges(GraphFormat):
    name = "edges"
    summary = "a line for each node (.edges)"

    def accepts(self, value):
        return isinstance(value, str) and value.startswith(HEAD)

    def open(self, path, tags=()):
        if not path.endswith(".edges"):
            return None
        with open(path, encoding="utf-8") as file:
            return "list of edges", file.read()

    def read(self, value, ops, mapped=(), outputs=()):
        nodes, missing, left_out = [], {}, set()
        for number, line in enumerate(value.splitlines()[1:], 2):
            found = LINE.fullmatch(line)
            if found is None:
                raise DataLossError(f"line {number} is no node", expected="name = Op(inputs)", got=repr(line))
            name, op, inputs = found[1], found[2], [i for i in found[3].split(", ") if i]
            if op not in ops:
                missing.setdefault(op, []).append(name)
                left_out.add(name)
            elif any(i.partition(":")[0] in left_out for i in inputs):
                left_out.add(name)
            else:
                opdef = ops.get(op)
                types = [t.name for t in opdef.types] + [a.name for a in opdef.attrs if a.type == "type"]
                attrs = {key: {"type": "float32"} for key in types}
                nodes.append({"name": name, "op": op, "inputs": inputs, "attrs": attrs})
        nodes = self.needed(nodes, [o.partition(":")[0] for o in outputs], left_out)
        report = ImportReport(
            len(nodes) + len(left_out),
            dict(Counter(n["op"] for n in nodes)),
            [Missing(op, "", tuple(names)) for op, names in missing.items()],
            frozenset(left_out),
        )
        return GraphRead({"graphdock_graph": 1, "nodes": nodes}, report)

    def needed(self, nodes, outputs, left_out):
        """Only the nodes that outputs need, where some are named."""
        wanted = set(outputs)
        unknown = wanted - {n["name"] for n in nodes} - left_out
        if unknown:
            raise InvalidArgumentError(f"the graph has no node {min(unknown)!r}")
        found = []
        for node in reversed(nodes if outputs else []):
            if node["name"] in wanted:
                wanted.update(i.partition(":")[0] for i in node["inputs"])
                found.insert(0, node)
        return found if outputs else nodes

    def write(self, graph, add_shapes=False):
        for op in graph.get_operations():
            opdef = graph.host.ops.get(op.type)
            types = [t.name for t in opdef.types] + [a.name for a in opdef.attrs if a.type == "type"]
            others = {a.name: a.default for a in opdef.attrs if a.type != "type" and not a.inferred}
            plain = all(op.get_attr(name) == float32 for name in types) and not op.control_inputs and not op.device
            if not plain or any(repr(op.get_attr(name)) != repr(default) for name, default in others.items()):
                raise UnimplementedError(
                    f"edges have no line for {op.type}({op.name}): an attribute, a dtype, or what it waits for"
                )
        lines = [f"{op.name} = {op.type}({', '.join(t.name for t in op.inputs)})\n" for op in graph.get_operations()]
        return HEAD + "".join(lines)
