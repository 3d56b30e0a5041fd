"""GraphDefs of TensorFlow's form that are long in one way: a family each, of which ``n`` says how long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphdock.messages import make

FLOAT, INT32, BOOL, RESOURCE, REF = 1, 3, 10, 20, 101


def graph() -> Any:
    made = make("GraphDef")
    made.versions.producer = 134
    return made


def node(where: Any, name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    """Add a node; an int attribute is a dtype, a bytes one text, a list dtypes, a str a function, a tuple a shape."""
    made = where.add(name=name, op=op)
    made.input.extend(inputs)
    for key, value in attrs.items():
        attr = made.attr[key]
        if isinstance(value, list):
            attr.list.type.extend(value)
        elif isinstance(value, bytes):
            attr.s = value
        elif isinstance(value, str):
            attr.func.name = value
        elif isinstance(value, tuple):
            attr.shape.SetInParent()
            for size in value:
                attr.shape.dim.add(size=size)
        else:
            attr.type = value
    return made


def constant(where: Any, name: str, shape: tuple[int, ...] = (), dtype: int = FLOAT, values: int = 1) -> Any:
    made = node(where, name, "Const", dtype=dtype)
    tensor = made.attr["value"].tensor
    tensor.dtype = dtype
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    getattr(tensor, {FLOAT: "float_val", INT32: "int_val", BOOL: "bool_val"}[dtype]).extend([1] * values)
    return made


def function(made: Any, name: str, inputs: int = 1) -> Any:
    """A function of floats that gives one; its ``ret`` is to be filled."""
    found = made.library.function.add()
    found.signature.name = name
    for i in range(inputs):
        found.signature.input_arg.add(name=f"x{i}", type=FLOAT)
    found.signature.output_arg.add(name="y", type=FLOAT)
    return found


def chain(n: int) -> Any:
    made = graph()
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        node(made.node, f"i{i}", "Identity", f"i{i - 1}" if i else "x", T=FLOAT)
    return made


def calls(n: int) -> Any:
    """One function, called n times, one call behind the other."""
    made = graph()
    body = function(made, "f")
    node(body.node_def, "a", "Neg", "x0", T=FLOAT)
    body.ret["y"] = "a:y:0"
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        node(made.node, f"c{i}", "PartitionedCall", f"c{i - 1}" if i else "x", f="f", Tin=[FLOAT], Tout=[FLOAT])
    return made


def call_tree(n: int) -> Any:
    """Functions that each call the next one twice, n of them."""
    made = graph()
    for i in range(n):
        body, last = function(made, f"f{i}"), "x0"
        for k in range(2):
            if i + 1 < n:
                node(body.node_def, f"n{k}", "PartitionedCall", last, f=f"f{i + 1}", Tin=[FLOAT], Tout=[FLOAT])
                last = f"n{k}:output:0"
            else:
                node(body.node_def, f"n{k}", "Neg", last, T=FLOAT)
                last = f"n{k}:y:0"
        body.ret["y"] = last
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    node(made.node, "top", "PartitionedCall", "x", f="f0", Tin=[FLOAT], Tout=[FLOAT])
    return made


def long_name(n: int) -> Any:
    """A call whose name has n characters, of a function of n nodes, which are named after it."""
    made = graph()
    body = function(made, "f")
    for i in range(n):
        node(body.node_def, f"a{i}", "Neg", f"a{i - 1}:y:0" if i else "x0", T=FLOAT)
    body.ret["y"] = f"a{n - 1}:y:0"
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    node(made.node, "c" * n, "PartitionedCall", "x", f="f", Tin=[FLOAT], Tout=[FLOAT])
    return made


def big_body(n: int) -> Any:
    """A function with a constant of n elements, called n times."""
    made = graph()
    body = function(made, "f")
    constant(body.node_def, "big", (n,), values=n)
    node(body.node_def, "a", "Neg", "x0", T=FLOAT)
    body.ret["y"] = "a:y:0"
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        node(made.node, f"c{i}", "PartitionedCall", f"c{i - 1}" if i else "x", f="f", Tin=[FLOAT], Tout=[FLOAT])
    return made


def taken_names(n: int) -> Any:
    """Calls whose nodes would have names that n nodes have."""
    made = graph()
    body = function(made, "f")
    node(body.node_def, "a", "Neg", "x0", T=FLOAT)
    body.ret["y"] = "a:y:0"
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        node(made.node, f"c/a_{i}" if i else "c/a", "Identity", "x", T=FLOAT)
        node(made.node, f"c{i or ''}", "PartitionedCall", "x", f="f", Tin=[FLOAT], Tout=[FLOAT])
    return made


def branches(n: int) -> Any:
    """Conds of TensorFlow 1, one behind the other, with a predicate each."""
    made = graph()
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    last = "x"
    for i in range(n):
        node(made.node, f"p{i}", "Placeholder", dtype=BOOL)
        node(made.node, f"s{i}", "Switch", last, f"p{i}", T=FLOAT)
        node(made.node, f"a{i}", "Neg", f"s{i}:1", T=FLOAT)
        node(made.node, f"b{i}", "Identity", f"s{i}", T=FLOAT)
        node(made.node, f"m{i}", "Merge", f"b{i}", f"a{i}", T=FLOAT).attr["N"].i = 2
        last = f"m{i}"
    return made


def branches_beside(n: int) -> Any:
    """Conds of one predicate, none of which needs another; what enters them has one label, of which each body has n."""
    made = graph()
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    node(made.node, "p", "Placeholder", dtype=BOOL)
    for i in range(n):
        node(made.node, f"k{i}/s", "Switch", "x", "p", T=FLOAT)
        node(made.node, f"a{i}", "Neg", f"k{i}/s:1", T=FLOAT)
        node(made.node, f"m{i}", "Merge", f"k{i}/s", f"a{i}", T=FLOAT).attr["N"].i = 2
    return made


def loops(n: int) -> Any:
    """Loops of TensorFlow 1, none of which needs another."""
    made = graph()
    constant(made.node, "zero", (), INT32)
    for i in range(n):
        frame = f"w{i}".encode()
        enter = node(made.node, f"w{i}/Enter", "Enter", "zero", T=INT32, frame_name=frame)
        enter.attr["parallel_iterations"].i = 1
        node(made.node, f"w{i}/Merge", "Merge", f"w{i}/Enter", f"w{i}/Next", T=INT32).attr["N"].i = 2
        node(made.node, f"w{i}/Less", "Less", f"w{i}/Merge", f"w{i}/Merge", T=INT32)
        node(made.node, f"w{i}/Cond", "LoopCond", f"w{i}/Less")
        node(made.node, f"w{i}/Switch", "Switch", f"w{i}/Merge", f"w{i}/Cond", T=INT32)
        node(made.node, f"w{i}/Neg", "Neg", f"w{i}/Switch:1", T=INT32)
        node(made.node, f"w{i}/Next", "NextIteration", f"w{i}/Neg", T=INT32)
        node(made.node, f"w{i}/Exit", "Exit", f"w{i}/Switch", T=INT32)
    return made


def variables(n: int) -> Any:
    """Variables by reference, which a chain of updates goes through."""
    made = graph()
    node(made.node, "v", "VariableV2", dtype=FLOAT, shape=())
    constant(made.node, "one")
    for i in range(n):
        node(made.node, f"u{i}", "AssignAdd", f"u{i - 1}" if i else "v", "one", T=FLOAT)
    return made


def readers(n: int) -> Any:
    """A variable by reference that n nodes read."""
    made = graph()
    node(made.node, "v", "VariableV2", dtype=FLOAT, shape=())
    for i in range(n):
        node(made.node, f"r{i}", "Neg", "v", T=FLOAT)
    return made


def sums(n: int) -> Any:
    """A chain between a sum and its reshape, with a reader at each step."""
    made = graph()
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    node(made.node, "s", "Shape", "x", T=FLOAT)
    node(made.node, "args", "BroadcastGradientArgs", "s", "s", T=INT32)
    for i in range(n):
        node(made.node, f"sum{i}", "Sum", f"g{i - 1}" if i else "x", "args", T=FLOAT, Tidx=INT32)
        node(made.node, f"g{i}", "Neg", f"sum{i}", T=FLOAT)
    node(made.node, "r", "Reshape", f"g{n - 1}", "s", T=FLOAT, Tshape=INT32)
    return made


def unknown_ops(n: int) -> Any:
    made = graph()
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        node(made.node, f"i{i}", f"NoSuchOp{i}", f"i{i - 1}" if i else "x")
    return made


def wide(n: int) -> Any:
    """A node with n inputs, and n that wait for it by name."""
    made = graph()
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    node(made.node, "all", "AddN", *["x"] * n, *[f"^c{i}" for i in range(n)], T=FLOAT).attr["N"].i = n
    for i in range(n):
        node(made.node, f"c{i}", "NoOp")
    return made


def ifs(n: int) -> Any:
    made = graph()
    for name in ("f", "g"):
        body = function(made, name)
        node(body.node_def, "a", "Neg", "x0", T=FLOAT)
        body.ret["y"] = "a:y:0"
    node(made.node, "p", "Placeholder", dtype=BOOL)
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        last = f"c{i - 1}" if i else "x"
        node(
            made.node,
            f"c{i}",
            "StatelessIf",
            "p",
            last,
            then_branch="f",
            else_branch="g",
            Tcond=BOOL,
            Tin=[FLOAT],
            Tout=[FLOAT],
        )
    return made


def whiles(n: int) -> Any:
    made = graph()
    body = function(made, "body")
    node(body.node_def, "a", "Neg", "x0", T=FLOAT)
    body.ret["y"] = "a:y:0"
    test = function(made, "test")
    test.signature.output_arg[0].type = BOOL
    node(test.node_def, "l", "Less", "x0", "x0", T=FLOAT)
    test.ret["y"] = "l:z:0"
    node(made.node, "x", "Placeholder", dtype=FLOAT)
    for i in range(n):
        node(made.node, f"c{i}", "StatelessWhile", f"c{i - 1}" if i else "x", cond="test", body="body", T=[FLOAT])
    return made


FAMILIES: dict[str, Callable[[int], Any]] = {
    f.__name__: f
    for f in (
        *(chain, calls, call_tree, long_name, big_body, taken_names, branches, branches_beside, variables),
        *(readers, sums, unknown_ops, wide, ifs, whiles, loops),
    )
}
