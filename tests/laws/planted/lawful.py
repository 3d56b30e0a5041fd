"""Faults of executors, passes, placers and forms of graphs: each is found by one law, which the fault's ``text`` names."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from typing import Any

from graphdock.contracts import GraphFormat, GraphRead, ImportReport, Pass, Placer, Rewriter, hookimpl
from graphdock.plugin.host import Host
from graphdock_opgen.new_files import render
from graphdock_testing.laws import CHANGES

from planted.bench import Fault

KIT = frozenset({"conformance"})
KINDS = ("executor", "pass", "placer", "form", "checkpoint")


def law_host(hook: str, item: Any) -> Host:
    """A host whose plugin ``fault`` returns the item from the hook."""
    host = Host()
    made = hookimpl(specname=hook)(lambda: [item])
    host.register("fault", types.SimpleNamespace(__name__="fault", **{hook: made}))
    return host


# -- executors: the scaffold's, with changes of its source

#: Orders by data alone, the last one that is ready first.
_OTHERWISE = """
def _otherwise(nodes):
    left, seen = list(nodes), set()
    while left:
        ready = [n for n in left if {v.node for v in n.inputs if v.node is not None} | set(n.control) <= seen]
        left.remove(ready[-1])
        seen.add(ready[-1])
        yield ready[-1]


class MineProgram"""

#: name -> (what stands in the source, what stands there instead, the law that finds it)
EXECUTORS = {
    "an order without order edges": (
        "for node in graph.nodes:  #",
        "for node in _otherwise(graph.nodes):  #",
        "updates",
    ),
    "a token that nobody looks at": ("step.token.check()", "pass", "python"),
    "results that are views": ("np.array(run.get(v, HOST_MEMORY))[()]", "run.get(v, HOST_MEMORY)", "aliases"),
    "float64 for float32": (
        "np.array(run.get(v, HOST_MEMORY))[()]",
        "np.array(run.get(v, HOST_MEMORY), np.float64 if v.dtype.name == 'float32' else None)[()]",
        "kernels",
    ),
    "the same numbers in every step": ("stream.begin(ordinals[name.name])", "stream.begin(0)", "random"),
    "one stream for all draws": ("step.services.ordinal(name) for name in names", "0 for name in names", "random"),
    "errors that name no node": (
        "explained = kernel_error(error, node)",
        "explained = errors.InternalError(str(error))",
        "errors",
    ),
    "variables that hold nothing": ("if not variable.initialized:", "if False:", "uninitialized"),
    "reads that are the variable's memory": (".snapshot()", ".buffer", "updates"),
    "an assignment that is forgotten": ("variable.assign(self.get(node.inputs[1], HOST_MEMORY))", "None", "training"),
    "it keeps the first step's values": (
        "if node not in self.step.state:\n            self.step.state[node] = self.build(node)\n"
        "        return self.step.state[node]",
        "kept = self.step.state\n        if node not in kept:\n            kept[node] = self.build(node)\n"
        "        return lambda inputs: kept.setdefault((node, 0), kept[node](inputs))",
        "kernels",
    ),
    "one thread's values for all": (
        "run = _Step(self.placed, step, dict(zip(graph.inputs, feeds, strict=True)))",
        "run = self.__dict__.setdefault('run_', _Step(self.placed, step, {}))\n"
        "        run.step = step\n        run.values.update({v: f for v, f in zip(graph.inputs, feeds) if v not in run.values})",
        "kernels",
    ),
    "no fetch in the order asked": ("for v in graph.outputs]", "for v in reversed(graph.outputs)]", "kernels"),
}


def executor(old: str, new: str) -> Any:
    """The executor of ``graphdock new plugin mine --executor``, with one text for another."""
    source = render("executor/executor.py", name="mine", title="Mine")
    assert source.count(old) == 1, old
    names: dict[str, Any] = {"__name__": "mine"}
    exec(compile(source.replace(old, new).replace("\nclass MineProgram", _OTHERWISE), "mine.py", "exec"), names)
    return names["MineExecutor"]()


# -- passes


def _replaces(change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
    """A pass; ``change(node, kept)`` gives the values that stand for the node's, or None."""

    def run(graph: Any, context: Any) -> None:
        kept: dict[Any, Any] = {}
        with Rewriter(graph) as rewriter:
            for node in graph.nodes:
                if (values := change(node, kept)) is not None:
                    rewriter.replace(node, values)

    return run


def _forwards(op: str, index: int = 0) -> Callable[[Any, Any], None]:
    return _replaces(lambda node, kept: [node.inputs[index]] if node.op == op else None)


def _alike(op: str, key: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    """All nodes of an op that have one key become the first."""

    def change(node: Any, kept: Any) -> Any:
        if node.op != op:
            return None
        first = kept.setdefault(key(node), node)
        return None if first is node else list(first.outputs)

    return _replaces(change)


def _raises(graph: Any, context: Any) -> None:
    raise ZeroDivisionError("no pass")


#: name -> (pass, the law that finds it)
PASSES = {
    "it takes tanh for nothing": (_forwards("Tanh"), "training"),
    "it takes a sum for its first operand": (_forwards("Add"), "redundant"),
    "it takes a draw for another": (_alike("RandomUniform", lambda node: node.outputs[0].shape), "random"),
    "it takes a read for the one before": (_alike("ReadVariableOp", lambda node: node.inputs[0]), "updates"),
    "it takes two negations for one": (_forwards("Neg"), "redundant"),
    "it raises": (_raises, "kernels"),
    "it changes nothing": (lambda graph, context: None, CHANGES),
}


# -- placers


class _Spread(Placer):
    """Groups by turns; each fault changes what it answers."""

    name, turn = "fault", 0

    def place(self, problem: Any) -> Any:
        return {i: may[i % len(may)] for i, may in enumerate(problem.groups)}


class _Fickle(_Spread):
    def place(self, problem):
        self.turn += 1
        return {i: may[self.turn % len(may)] for i, may in enumerate(problem.groups)}


class _Elsewhere(_Spread):
    def place(self, problem):
        return dict.fromkeys(range(len(problem.groups)), "/device:tpu:0")


class _NoGroup(_Spread):
    def place(self, problem):
        return {len(problem.groups) + 7: problem.devices[0]}


class _Raising(_Spread):
    def place(self, problem):
        raise ZeroDivisionError("no place")


PLACERS = {
    "two answers to one problem": _Fickle,
    "a device that is not there": _Elsewhere,
    "a group that is not there": _NoGroup,
    "it raises": _Raising,
}


# -- forms of graphs: graphdock's JSON, of which each fault changes the nodes


def _attr(name: str, value: Any) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        if name in node["attrs"]:
            node["attrs"][name] = value

    return change


def _data(function: Callable[[Any], Any], *kinds: str) -> Callable[[Any], None]:
    """Changes the elements of constants of some dtypes."""

    def change(node: Any) -> None:
        tensor = node["attrs"].get("value", {}).get("tensor", {})
        if tensor.get("dtype") in kinds and "data" in tensor:
            tensor["data"] = [function(v) for v in tensor["data"]]

    return change


def _flat(node: Any) -> None:
    tensor = node["attrs"].get("value", {}).get("tensor", {})
    if 0 in tensor.get("shape", ()):
        tensor["shape"] = [0]


def _inputs(function: Callable[[list[str]], list[str]]) -> Callable[[Any], None]:
    def change(node: Any) -> None:
        node["inputs"] = function(node.get("inputs", []))

    return change


def _other_op(node: Any) -> None:
    node["op"] = {"Relu": "Tanh"}.get(node["op"], node["op"])


#: name -> (change of a node, the law that finds it)
FORMS = {
    "another op": (_other_op, "kernels"),
    "operands the wrong way round": (_inputs(lambda given: given[::-1] if len(given) == 2 else given), "kernels"),
    "control inputs are lost": (_inputs(lambda given: [i for i in given if i[0] != "^"]), "layers"),
    "devices are lost": (lambda node: node.pop("device", None), "layers"),
    "a flag is lost": (_attr("transpose_b", {"bool": False}), "layers"),
    "a number of another sort": (_attr("epsilon", {"float": 0.001}), "layers"),
    "strides are lost": (_attr("strides", {"list(int)": [1, 1, 1, 1]}), "layers"),
    "an attribute that is a dtype is lost": (_attr("output_type", {"type": "int64"}), "layers"),
    "shapes of placeholders are lost": (
        lambda node: _attr("shape", {"shape": None})(node) if node["op"] == "Placeholder" else None,
        "kernels",
    ),
    "seeds are lost": (_attr("seed2", {"int": 9}), "random"),
    "numbers of six digits": (
        _data(lambda v: v if isinstance(v, str) else float(f"{v:.6g}"), "float64", "float32"),
        "layers",
    ),
    "NaN is zero": (_data(lambda v: 0.0 if v == "nan" else v, "float32", "float64", "float16"), "constants"),
    "infinity is the largest number": (_data(lambda v: 3e38 if v == "inf" else v, "float32"), "constants"),
    "-0 is 0": (_data(lambda v: 0.0 if v == 0 else v, "float32", "float64", "float16"), "constants"),
    "whole numbers through doubles": (
        _data(lambda v: min(int(float(v)), 2**63 - 1), "int64"),
        "constants",
    ),
    "numbers without a sign": (_data(lambda v: v & (2**63 - 1), "uint64"), "constants"),
    "bytes as text": (_data(lambda v: "? A" if isinstance(v, dict) else v, "string"), "constants"),
    "no elements, no shape": (_flat, "constants"),
    "names of resources are lost": (_attr("shared_name", {"string": ""}), "shared"),
    "containers are lost": (_attr("container", {"string": ""}), "shared"),
}


class _Form(GraphFormat):
    name, summary = "faulty", "graphdock's JSON, with a fault"

    def __init__(self, change: Callable[[Any], None]):
        self._change = change

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list)

    def read(self, value: Any, ops: Any, mapped: Any = (), outputs: Any = ()) -> GraphRead:
        return GraphRead(value[0], ImportReport())

    def write(self, graph: Any, add_shapes: bool = False) -> Any:
        data = json.loads(graph.as_graph_def(form="JSON"))
        for node in data["nodes"]:
            self._change(node)
        return [data]


#: Changes of the scaffold's form, as of its executor.
LINES = {
    "it reads all of a graph, whatever outputs need": ("return found if outputs else nodes", "return nodes", "outputs"),
    "it reads less than outputs need": (
        'wanted.update(i.partition(":")[0] for i in node["inputs"])',
        "pass",
        "outputs",
    ),
    "it says nothing of an output that is not there": ("    if unknown:\n", "    if False:\n", "outputs"),
    "it leaves out what it does not understand": (
        'raise DataLossError(f"line {number} is no node", expected="name = Op(inputs)", got=repr(line))',
        "continue",
        "damage",
    ),
    "damage is an error of Python's": (
        'raise DataLossError(f"line {number} is no node", expected="name = Op(inputs)", got=repr(line))',
        "raise IndexError(number)",
        "damage",
    ),
}


def lines(old: str, new: str) -> Any:
    """The form of ``graphdock new plugin mine --graph-format``, with one text for another."""
    source = render("graph_format/form.py", name="mine", title="Mine")
    assert source.count(old) == 1, old
    names: dict[str, Any] = {"__name__": "mine"}
    exec(compile(source.replace(old, new), "mine.py", "exec"), names)
    return names["MineFormat"]()


def faults() -> list[Fault]:
    found = [
        Fault(name, "executor", "-", KIT, lambda c=change: law_host("register_executors", executor(*c)), text=law)
        for name, (*change, law) in EXECUTORS.items()
    ]
    for name, (run, law) in PASSES.items():
        made = Pass("faulty", "simplify", 45, "has a fault", run)
        found.append(Fault(name, "pass", "-", KIT, lambda m=made: law_host("register_passes", m), text=law))
    for name, placer in PLACERS.items():
        host = lambda p=placer: law_host("register_placers", p())  # noqa: E731
        found.append(Fault(name, "placer", "-", KIT, host, text="kernels"))
    for name, (change, law) in FORMS.items():
        host = lambda c=change: law_host("register_graph_formats", _Form(c))  # noqa: E731
        found.append(Fault(name, "form", "-", KIT, host, text=law))
    for name, (old, new, law) in LINES.items():
        host = lambda o=old, n=new: law_host("register_graph_formats", lines(o, n))  # noqa: E731
        found.append(Fault(name, "form", "-", KIT, host, text=law))
    return found
