"""Graphs of float32, a line for each node: ``y = Relu(x)``."""

import re
from collections import Counter

from graphdock.contracts import GraphFormat, GraphRead, ImportReport, Missing
from graphdock.errors import DataLossError

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
        report = ImportReport(
            len(nodes) + len(left_out),
            dict(Counter(n["op"] for n in nodes)),
            [Missing(op, "", tuple(names)) for op, names in missing.items()],
            frozenset(left_out),
        )
        return GraphRead({"graphdock_graph": 1, "nodes": nodes}, report)

    def write(self, graph, add_shapes=False):
        lines = [f"{op.name} = {op.type}({', '.join(t.name for t in op.inputs)})\n" for op in graph.get_operations()]
        return HEAD + "".join(lines)
