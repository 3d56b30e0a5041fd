"""Laws of what runs, changes or writes plans: programs that give the same on any executor, with any pass, through any form.

    for law in LAWS:
        check_executor("mine", law)      # raises Refused, or ConformanceError with what differs

Each law builds a graph and says what is run in it, step after step. What a session with the author's executor or pass gives is
compared with what the straight-line executor gives without it: arrays bit by bit where they are integers, else within 1e-5.
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import graphdock as tf
import numpy as np
from graphdock.contracts.opdef import resolve
from graphdock.plugin.host import Host

from graphdock_testing.case import ConformanceError, Refused, Untested
from graphdock_testing.checkpoint_laws import CHECKPOINT_LAWS, check_checkpoint_format
from graphdock_testing.facts.settings import named_error
from graphdock_testing.law_graphs import LAWS, Steps
from graphdock_testing.numeric import same_bits
from graphdock_testing.transport_laws import TRANSPORT_LAWS, check_transport

__all__ = [
    "CHANGES",
    "CHECKPOINT_LAWS",
    "DAMAGE",
    "LAWS",
    "OUTPUTS",
    "PARTS",
    "TRANSPORT_LAWS",
    "ConformanceError",
    "Refused",
    "Steps",
    "check_checkpoint_format",
    "check_executor",
    "check_graph_format",
    "check_pass",
    "check_placer",
    "check_transport",
    "laws_of",
]

_STRAIGHT = "straight_line"


def check_executor(name: str, law: str, host: Host | None = None) -> None:
    """Compare an executor with the straight-line one.

    Args:
      host: who has it; default: the process's own.

    Raises:
      Refused: the executor can't run the law's graph, as it says when the plan is made. ConformanceError: what differs.
      NotFoundError: no plugin brings such an executor.
    """
    with tf.Graph(host).as_default() as graph:
        steps = LAWS[law]()
    expected = list(_results(graph, steps, {"executor": _STRAIGHT}))
    with _session(graph, {"executor": name}) as session:
        try:
            session.explain(steps.fetches, steps.feeds[0])
        except tf.errors.UnimplementedError as error:
            raise Refused(f"{name} refuses {law!r}: {error.message}") from error
    _compare(_results(graph, steps, {"executor": name}), expected, f"{law!r} on the executor {name}")
    if steps.python and steps.raises is None:
        _check_deadline(name, host)
    if steps.raises is None:
        _check_threads(graph, steps, name, law, expected)


#: What is asked of a pass besides the laws, which one that does nothing keeps.
CHANGES = "changes something"


def check_pass(name: str, law: str, host: Host | None = None) -> None:
    """Compare plans with a pass and without it.

    Raises:
      ConformanceError: what differs, in the law or, of ``CHANGES``, in a graph of the pass's own ``sample``. Untested: of
        ``CHANGES``, where the plan of no such graph, or without a sample of no law, is another one with the pass.
    """
    if law == CHANGES:
        _check_changes(name, host)
        return
    with tf.Graph(host).as_default() as graph:
        steps = LAWS[law]()
    expected = list(_results(graph, steps, {"passes": {name: False}}))
    _compare(_results(graph, steps, {}), expected, f"{law!r} with the pass {name}")
    _compare(_results(graph, steps, {"debug": True}), expected, f"{law!r} with the pass {name}, in debug mode")


def check_placer(name: str, law: str, host: Host | None = None) -> None:
    """Compare plans of one cpu with plans of three, whose nodes a placer has placed.

    Raises:
      PluginError: the placer raised, or gave nodes devices that they may not be on. ConformanceError: what differs.
      NotFoundError: no plugin brings such a placer.
    """
    with tf.Graph(host).as_default() as graph:
        steps = LAWS[law]()
    expected = list(_results(graph, steps, {}))
    fields = {"placer": name, "device_count": {"cpu": 3}}
    _compare(_results(graph, steps, fields), expected, f"{law!r} with the placer {name}")
    with _session(graph, fields) as session:
        first, second = (session.explain(steps.fetches, steps.feeds[0]) for _ in range(2))
    if [row.device for row in first.rows] != [row.device for row in second.rows]:
        raise ConformanceError(f"{law!r}: the placer {name} gave one plan two placements")


#: Graphs that are drawn by a pass's own sample.
_DRAWN = 8
_SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


def _check_changes(name: str, host: Host | None) -> None:
    """Compare a pass's own samples, if it has any. Raises Untested where no plan of those, or of the laws, is another one."""
    graph = tf.Graph(host)
    sample = next((r.each.sample for r in graph.host.load_passes() if r.each.name == name), None)
    drawn = [_drawn(tf.Graph(host), name, sample, seed) for seed in range(_DRAWN)] if sample else []
    changed = False
    for number, (graph, steps) in enumerate(drawn):
        expected, what = list(_results(graph, steps, {"passes": {name: False}})), f"sample {number}"
        _compare(_results(graph, steps, {}), expected, f"{what} with the pass {name}")
        _compare(_results(graph, steps, {"debug": True}), expected, f"{what} with the pass {name}, in debug mode")
        changed = changed or _changes(graph, steps, name)
    if changed:
        return
    for build in () if drawn else LAWS.values():
        with tf.Graph(host).as_default() as graph:
            steps = build()
        if _changes(graph, steps, name):
            return
    whose = f"the {_DRAWN} graphs of its own sample" if drawn else f"the {len(LAWS)} samples"
    raise Untested(f"the pass {name} changed none of {whose}: that it keeps their results says nothing of it")


def _changes(graph: Any, steps: Steps, name: str) -> bool:
    """Return whether a plan is another one with the pass."""
    with _session(graph, {}) as changed, _session(graph, {"passes": {name: False}}) as plain:
        plans = [session.explain(steps.fetches, steps.feeds[0]) for session in (changed, plain)]
    one, other = ([(row.op, row.device, row.kernel) for row in plan.rows] for plan in plans)
    return one != other or plans[0].source != plans[1].source


def _drawn(graph: Any, name: str, sample: Any, seed: int) -> tuple[Any, Steps]:
    """A graph of a pass's sample; every other one is fed NaN, infinities and -0.0 among its numbers."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    try:
        with graph.as_default():
            fetches, feeds = (resolve(sample) if isinstance(sample, str) else sample)(rng)
            fetches, feeds = list(fetches) if isinstance(fetches, (list, tuple)) else [fetches], dict(feeds)
            fed = {tensor: np.array(value, tensor.dtype.as_numpy_dtype) for tensor, value in feeds.items()}
    except Exception as error:
        raise ConformanceError(named_error(error, f"the sample of the pass {name}")) from error
    for array in fed.values():
        if seed % 2 and array.dtype.kind == "f" and array.size:
            places = rng.choice(array.size, -(-array.size // 3), replace=False)
            array.flat[places] = rng.choice(np.array(_SPECIAL, array.dtype), len(places))
    kept = graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)
    return graph, Steps(fetches, [fed] * 2, [variable.initializer for variable in kept])


#: What is asked of a form of graphs besides the laws: that it reads only what outputs need, and no damaged text.
OUTPUTS, DAMAGE = "outputs", "damage"
#: Nodes of the graph for these, which nothing reads, and places at which its text is damaged, one at a time.
_LEAVES, _PLACES = 16, 32


def check_graph_format(name: str, law: str, host: Host | None = None) -> None:
    """Compare a graph with what becomes of it when it is written in a form and read again.

    Raises:
      Refused: the form can't hold the law's graph, or is only read: ``write`` raises UnimplementedError; of ``DAMAGE``, what it
        writes is no text.
      ConformanceError: what differs.
    """
    if law in (OUTPUTS, DAMAGE):
        (_check_outputs if law == OUTPUTS else _check_damage)(name, host)
        return
    with tf.Graph(host).as_default() as graph:
        steps = LAWS[law]()
    if steps.python:
        raise Refused(f"{law!r} holds a Python function")
    try:
        written = graph.as_graph_def(form=name)
    except tf.errors.UnimplementedError as error:
        raise Refused(f"{name} does not hold {law!r}: {error.message}") from error
    with tf.Graph(host).as_default() as again:
        tf.import_graph_def(written, name="")
    _same_graph(graph, again, name)
    named = Steps(
        [again.as_graph_element(f.name) for f in steps.fetches],
        [{again.as_graph_element(t.name): v for t, v in feed.items()} for feed in steps.feeds],
        [again.as_graph_element(f.name) for f in steps.before],
        steps.raises,
    )
    _compare(_results(again, named, {}), list(_results(graph, steps, {})), f"{law!r} in the form {name}")


def _leaves(name: str, host: Host | None) -> tuple[Any, Any]:
    """A form, and a graph of nodes that nothing reads, as it writes it. Raises Refused where it does not."""
    with tf.Graph(host).as_default() as graph:
        x = tf.placeholder(tf.float32, name="x")
        for number in range(_LEAVES):
            tf.nn.relu(x, name=f"leaf_{number}")
    try:
        written = graph.as_graph_def(form=name)
    except tf.errors.UnimplementedError as error:
        raise Refused(f"{name} writes no graphs: {error.message}") from error
    return graph.host.graph_formats.find(name), written


def _check_outputs(name: str, host: Host | None) -> None:
    """A form reads the nodes that outputs need, no others, and says where there is no such node."""
    form, written = _leaves(name, host)
    ops = tf.Graph(host).host.ops
    for outputs in (["leaf_3:0"], ["leaf_3", "leaf_5:0"]):
        needed = {"x", *(o.partition(":")[0] for o in outputs)}
        found = {node["name"] for node in form.read(written, ops, outputs=outputs).data["nodes"]}
        beyond = sorted(n for n in found if n.startswith("leaf_") and n not in needed)
        if beyond or not needed <= found:
            what = f"has {beyond[0]!r}" if beyond else f"lacks {min(needed - found)!r}"
            raise ConformanceError(f"{name}, read for the outputs {outputs}, {what}")
    try:
        form.read(written, ops, outputs=["no_such_node:0"])
    except tf.errors.GraphdockError:
        return
    raise ConformanceError(f"{name} says nothing of an output that is not in the graph")


def _check_damage(name: str, host: Host | None) -> None:
    """Text of which some characters are others is refused with a GraphdockError: seldom it is another graph's."""
    form, written = _leaves(name, host)
    if not isinstance(written, (str, bytes)):
        raise Refused(f"what {name} writes is no text")
    refused = 0
    for number in range(_PLACES):
        at = (2 * number + 1) * len(written) // (2 * _PLACES)
        junk: Any = "\0#\0(" if isinstance(written, str) else b"\xff\0\xff\0"
        damaged: Any = written[:at] + junk + written[at + 4 :]
        try:
            if not form.accepts(damaged):
                refused += 1
                continue
            with tf.Graph(host).as_default():
                tf.import_graph_def(damaged, name="")
        except tf.errors.GraphdockError:
            refused += 1
        except Exception as error:
            what = f"{name} raises {type(error).__name__} where its text is damaged at {at}: {error}"
            raise ConformanceError(what) from error
    if refused < _PLACES // 2:
        raise ConformanceError(
            f"{name} reads {_PLACES - refused} of {_PLACES} texts in which four characters are others: what it does not "
            f"understand it has to refuse"
        )


def _same_graph(graph: Any, again: Any, form: str) -> None:
    """Raise ConformanceError where an op that was written and read again is another one.

    A form may have other ops for one, as TensorFlow's has for loops; a resource without a name of its own may get its op's.
    """
    named = {op.name: op for op in again.get_operations()}
    for op in graph.get_operations():
        other = named.get(op.name)  # within a body a form may name ops as it will
        if other is None or other.type != op.type:
            continue
        shaped = not op.inputs  # other shapes follow, from what a form knows of resources
        facts = {
            "control inputs": [sorted(c.name for c in o.control_inputs) for o in (op, other)],
            "device": [o.device for o in (op, other)],
            "outputs": [[(t.dtype.name, shaped and str(t.shape)) for t in o.outputs] for o in (op, other)],
            **{name: [o.node_attrs[name] for o in (op, other)] for name in op.node_attrs if name in other.node_attrs},
        }
        for what, (before, after) in facts.items():
            if hasattr(before, "get_operations"):
                _same_graph(before, after, form)
            elif not (
                same_bits(before, after) if isinstance(before, np.ndarray) else after in (before, before or op.name)
            ):
                raise ConformanceError(f"{op.name} in the form {form}: its {what} is {after!r}, not {before!r}")


#: What a kit calls a part of a plugin -> where the host has them, and what compares one with a law.
PARTS: Mapping[str, tuple[str, Callable[[str, str, Host | None], None]]] = {
    "executor": ("executors", check_executor),
    "pass": ("passes", check_pass),
    "placer": ("placers", check_placer),
    "graph format": ("graph_formats", check_graph_format),
    "checkpoint format": ("checkpoint_formats", check_checkpoint_format),
    "transport": ("transports", check_transport),
}


def laws_of(kind: str) -> list[str]:
    """The laws that a part of a kind of :data:`PARTS` is held to, in order."""
    if kind == "checkpoint format":
        return list(CHECKPOINT_LAWS)
    if kind == "transport":
        return list(TRANSPORT_LAWS)
    return [*LAWS, *{"pass": (CHANGES,), "graph format": (OUTPUTS, DAMAGE)}.get(kind, ())]


def _session(graph: Any, fields: Mapping[str, Any]) -> Any:
    return tf.Session(graph=graph, config=tf.SessionConfig(**fields), host=graph.host)


def _results(graph: Any, steps: Steps, fields: Mapping[str, Any]) -> Generator[Any]:
    """Results of each step: arrays, or the class of the error and whether it names an op."""
    with _session(graph, fields) as session:
        if steps.before:
            session.run(steps.before)
        for feed in steps.feeds:
            fed = {tensor: np.array(value, tensor.dtype.as_numpy_dtype) for tensor, value in feed.items()}
            kept = {tensor: array.copy() for tensor, array in fed.items()}
            try:
                made = session.run(steps.fetches, fed)
            except tf.errors.GraphdockError as error:
                if steps.raises is None or not isinstance(error, steps.raises):
                    raise ConformanceError(f"a step ends with {type(error).__name__}: {error}") from error
                yield type(error).__name__, error.op is not None
                continue
            if steps.raises is not None:
                raise ConformanceError(f"a step that has to end with {steps.raises.__name__} gives {made}")
            for tensor, array in fed.items():
                if not np.array_equal(array, kept[tensor], equal_nan=array.dtype.kind == "f"):
                    raise ConformanceError(f"a step writes the array that was fed for {tensor.name}")
            yield [np.array(value) for value in made]
            _spoil(made, list(fed.values()))


def _spoil(made: list[Any], fed: list[Any]) -> None:
    """Write over the results, which are the caller's own. Raises ConformanceError where they share memory."""
    arrays = [value for value in made if isinstance(value, np.ndarray)]
    for i, array in enumerate(arrays):
        for other in (*arrays[:i], *fed):
            if np.shares_memory(array, other):
                raise ConformanceError("results of a step share memory with each other or with what was fed")
        if not array.flags.writeable:
            raise ConformanceError("a result of a step is read-only")
        if array.dtype.kind in "fiub":
            array[...] = 77


def _compare(results: Generator[Any], expected: list[Any], what: str) -> None:
    """Raise ConformanceError where results differ. The session that gives them is closed here, not by the collector."""
    with contextlib.closing(results):
        _compare_each(results, expected, what)


def _compare_each(results: Iterator[Any], expected: list[Any], what: str) -> None:
    for number, wanted in enumerate(expected, 1):
        try:
            got = next(results)
        except ConformanceError as error:
            raise ConformanceError(f"{what}, step {number}: {error}") from error
        if isinstance(wanted, tuple):
            if got != wanted:
                raise ConformanceError(
                    f"{what}, step {number}: it raises {got[0]} (op named: {got[1]}), not {wanted[0]}"
                )
            continue
        for index, (a, b) in enumerate(zip(got, wanted, strict=True)):
            if (a.dtype, a.shape) != (b.dtype, b.shape):
                raise ConformanceError(
                    f"{what}, step {number}: result {index} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
                )
            same = np.allclose(a, b, 1e-5, 1e-6, equal_nan=True) if a.dtype.kind == "f" else np.array_equal(a, b)
            if not same:
                raise ConformanceError(f"{what}, step {number}: result {index} is {a}, not {b}")


#: Nodes of the step that has to end before its last one, and seconds that each of them takes.
_CHAIN, _LINK = 300, 0.1


def _check_deadline(name: str, host: Host | None) -> None:
    """A step of many calls of Python ends soon after its deadline, not after all of them."""
    ran = []

    def link(value: Any) -> Any:
        threading.Event().wait(_LINK)
        ran.append(value)
        return value

    with tf.Graph(host).as_default() as graph:
        value = tf.placeholder(tf.float32, [], name="x")
        fed = value
        for _ in range(_CHAIN):
            value = tf.py_func(link, [value], tf.float32)
    with _session(graph, {"executor": name, "operation_timeout": _LINK / 2}) as session:
        try:
            session.run(value, {fed: 1.0})
        except tf.errors.DeadlineExceededError:
            if len(ran) < _CHAIN:
                return
    raise ConformanceError(f"a step on the executor {name} goes on after its deadline")


def _check_threads(graph: Any, steps: Steps, name: str, law: str, expected: list[Any]) -> None:
    """Steps on four threads at once; where nothing is kept between them, each gives what it gave alone."""
    if any("random" in op.op_def.effects for op in graph.get_operations()):
        return
    found: list[BaseException] = []
    with _session(graph, {"executor": name}) as session:
        if steps.before:
            session.run(steps.before)

        def work() -> None:
            try:
                for number, feed in enumerate(steps.feeds):
                    made = [np.array(v) for v in session.run(steps.fetches, feed)]
                    if not steps.before:
                        _compare_each(
                            iter([made]), [expected[number]], f"{law!r} on the executor {name}, of four threads"
                        )
            except BaseException as error:  # noqa: BLE001 - raised below, on the thread of the caller
                found.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if found:
        raise ConformanceError(f"{law!r} on the executor {name}, of four threads: {found[0]}") from found[0]
