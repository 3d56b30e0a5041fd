"""``tensorflow.python.debug``: sessions that stop before and after a step, at a prompt that prints the step's tensors.

A watched step fetches, beside what the program asks for, all tensors that it computes on the way, in the same step. What bodies of
conds and loops hold is not among them. The prompt reads lines of ``sys.stdin``: TensorFlow's ``readline`` interface; there is no
window of curses.
"""

from __future__ import annotations

import argparse
import cmd
import re
import shlex
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn

import graphdock as tf
import numpy as np
from graphdock.locks import new_lock
from graphdock_tf1.train.hooks.run_hook import SessionRunArgs, SessionRunHook

__all__ = ["DebugTensorDatum", "LocalCLIDebugHook", "LocalCLIDebugWrapperSession", "has_inf_or_nan"]

#: dtypes whose tensors have no array.
_WITHOUT_ARRAY = {"resource", "variant"}
#: Which NumPy takes for bytes of no kind.
_BFLOAT16 = tf.bfloat16.as_numpy_dtype


class DebugTensorDatum(NamedTuple):
    """A tensor of a watched step, for filters."""

    node_name: str
    output_slot: int
    debug_op: str = "DebugIdentity"

    @property
    def tensor_name(self) -> str:
        """Name of the tensor: the operation's, a colon, and which of its outputs."""
        return f"{self.node_name}:{self.output_slot}"


def has_inf_or_nan(datum: DebugTensorDatum, tensor: Any) -> bool:
    """Return whether an array of numbers has an infinity or a NaN; a filter."""
    if not isinstance(tensor, (np.ndarray, np.generic)) or not (tensor.dtype.kind in "fc" or tensor.dtype == _BFLOAT16):
        return False
    return not np.isfinite(tensor).all()


class _Words(argparse.ArgumentParser):
    """Options of a command; a mistake is printed and leaves the prompt where it is."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _run_options() -> _Words:
    words = _Words("run", add_help=False)
    words.add_argument("-n", "--no-debug", action="store_true")
    words.add_argument("-t", "--times", type=int, default=1)
    words.add_argument("-f", "--till-filter-pass")
    return words


class _Prompt(cmd.Cmd):
    """Lines of the user, until one says how to go on."""

    prompt = "tfdbg> "

    def __init__(self, debugger: Debugger, step: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.use_rawinput = sys.stdin.isatty()
        self._debugger, self._step = debugger, step

    def do_run(self, line: str) -> bool:
        """run [-n] [-t TIMES] [-f FILTER]: run the step; -n without watching it, -t several, -f until a filter finds a tensor."""
        options = _run_options().parse_args(shlex.split(line))
        if options.till_filter_pass not in (None, *self._debugger.filters):
            raise ValueError(f"no filter {options.till_filter_pass!r}; there are {', '.join(self._debugger.filters)}")
        if options.no_debug and options.till_filter_pass is not None:
            raise ValueError("-n watches no tensors, which -f looks at")
        self._debugger.go_on(options.no_debug, max(options.times, 1), options.till_filter_pass)
        return True

    def do_lt(self, line: str) -> None:
        """lt [REGEX]: list tensors of the step, those whose names have the expression, with dtypes and shapes."""
        for name, value in self._values().items():
            if re.search(line or "", name):
                self._say(f"{name}  {np.asarray(value).dtype}  {list(np.shape(value))}")

    def do_pt(self, line: str) -> None:
        """pt TENSOR or pt TENSOR[SLICE]: print a tensor, or a part of it such as [0, :3]."""
        name, bracket, part = line.partition("[")
        values = self._values()
        name = name.strip() if ":" in name else f"{name.strip()}:0"
        if name not in values:
            raise ValueError(f"the step has no tensor {name!r}; `lt` lists them")
        value = values[name]
        self._say(f"{name} =\n{np.asarray(value)[_slices(part.rstrip().removesuffix(']'))] if bracket else value}")

    def do_ni(self, line: str) -> None:
        """ni NODE: an operation's type, device, inputs, and the line that made it."""
        op = tf.get_default_graph().get_operation_by_name(line.strip().partition(":")[0])
        self._say(f"{op.name}  {op.type}  {op.device or 'any device'}\n  made at {op.site}")
        for tensor in op.inputs:
            self._say(f"  input  {tensor.name}  {tensor.dtype.name}  {tensor.shape}")

    def do_exit(self, line: str) -> NoReturn:
        """exit: end the program."""
        raise SystemExit(0)

    do_quit = do_EOF = do_exit
    do_r, do_list_tensors, do_print_tensor, do_node_info = do_run, do_lt, do_pt, do_ni

    def emptyline(self) -> bool:
        return False

    def onecmd(self, line: str) -> bool:
        try:
            return super().onecmd(line)
        except (ValueError, LookupError, re.error, tf.errors.GraphdockError) as error:
            self._say(f"error: {error}")
            return False

    def _values(self) -> Mapping[str, Any]:
        if self._step is None:
            raise ValueError("no step was watched yet: `run`")
        return self._step

    def _say(self, text: str) -> None:
        print(text, file=self.stdout)


def _slices(text: str) -> tuple[Any, ...]:
    """Indices and slices of what stands between brackets. Raises ValueError for other words."""
    found: list[Any] = []
    for part in text.split(","):
        numbers = [int(n) if n.strip() else None for n in part.split(":")]
        found.append(numbers[0] if len(numbers) == 1 else slice(*numbers))
    return tuple(found)


class Debugger:
    """Knows which steps are watched, and asks the user, of several threads one at a time.

    ``filters``: name -> function of a datum and its array. Steps of threads whose names ``threads`` does not match are left alone.
    """

    def __init__(self, threads: str | None) -> None:
        self._threads, self._asking = re.compile(threads or ""), new_lock()
        self.filters: dict[str, Callable[[DebugTensorDatum, Any], bool]] = {"has_inf_or_nan": has_inf_or_nan}
        self._plain = False
        self._left = 0
        self._filter: str | None = None
        self._steps = 0

    def go_on(self, plain: bool, times: int, until: str | None) -> None:
        """Say how the next steps run: without watching, how many before the next prompt, and until which filter finds something."""
        self._plain, self._left, self._filter = plain, times, until

    def watches(self, fetches: Any, feeds: Any) -> dict[str, Any] | None:
        """Tensors to fetch beside what a step asks for; None of one that is left alone. Asks the user where it is time to."""
        if not self._threads.match(threading.current_thread().name):
            return None
        with self._asking:
            self._steps += 1
            if self._left <= 0 and self._filter is None:
                print(
                    f"run {self._steps}: {len(tf.nest.flatten(fetches))} fetches, {len(feeds or ())} feeds; `help` lists commands"
                )
                _Prompt(self, None).cmdloop()
            self._left -= 1
            return None if self._plain else {t.name: t for t in _on_the_way(fetches, feeds)}

    def shows(self, values: Mapping[str, Any] | None) -> None:
        """Ask the user after a step that was watched, where it is the last before a prompt or a filter found something."""
        if values is None:
            return
        with self._asking:
            if self._filter is not None:
                found = [n for n, v in values.items() if self.filters[self._filter](_datum(n), v)]
                if not found:
                    return
                print(f"{self._filter} found {', '.join(found)} in run {self._steps}")
            elif self._left > 0:
                return
            self._left, self._filter = 0, None
            _Prompt(self, values).cmdloop()


def _datum(name: str) -> DebugTensorDatum:
    node, _, slot = name.rpartition(":")
    return DebugTensorDatum(node, int(slot))


def _on_the_way(fetches: Any, feeds: Any) -> Iterator[Any]:
    """Tensors that a step computes, from what it asks for back to what is fed."""
    graph = tf.get_default_graph()
    fed = {graph.as_graph_element(key) for key in feeds or () if isinstance(key, (str, tf.Tensor))}
    waiting = [op for item in tf.nest.flatten(fetches) for op in _operations(graph, item, fed)]
    seen = set(waiting)
    while waiting:
        op = waiting.pop()
        for tensor in op.outputs:
            if tensor.dtype.name not in _WITHOUT_ARRAY and graph.is_fetchable(tensor):
                yield tensor
        before = [t.op for t in op.inputs if t not in fed] + list(op.control_inputs)
        for earlier in before:
            if earlier not in seen:
                seen.add(earlier)
                waiting.append(earlier)


def _operations(graph: Any, item: Any, fed: Collection[Any]) -> list[Any]:
    """Operations that a fetch stands for; none for what is fed."""
    if isinstance(item, (tf.SparseTensor, tf.IndexedSlices)):
        return [item.values.op, item.indices.op]
    found = graph.as_graph_element(item)
    return [found] if isinstance(found, tf.Operation) else [found.op] if found not in fed else []


class LocalCLIDebugWrapperSession:
    """A session that asks at a prompt before each step, and shows the tensors of those that are watched.

    Args:
      sess: the session. dump_root, log_usage, ui_type: taken for TensorFlow's sake: nothing is dumped.
      thread_name_filter: an expression; steps of threads whose names it does not match run as without the prompt.
    """

    def __init__(
        self,
        sess: Any,
        dump_root: str | None = None,
        log_usage: bool = True,
        ui_type: str = "readline",
        thread_name_filter: str | None = None,
    ) -> None:
        self._session, self._debugger = sess, Debugger(thread_name_filter)

    def add_tensor_filter(self, filter_name: str, tensor_filter: Callable[[DebugTensorDatum, Any], bool]) -> None:
        """Add a filter for ``run -f NAME``: a function of a datum and its array, which returns whether to stop."""
        self._debugger.filters[filter_name] = tensor_filter

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """As ``Session.run``; the values are those that the program asked for."""
        with self._session.graph.as_default():
            watched = self._debugger.watches(fetches, feed_dict)
            result, values = self._session.run((fetches, watched or {}), feed_dict, options, run_metadata)
            self._debugger.shows(None if watched is None else values)
        return result

    def __enter__(self) -> LocalCLIDebugWrapperSession:
        self._entered = self._session.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._session.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class LocalCLIDebugHook(SessionRunHook):  # type: ignore[misc]
    """The same for a monitored session. Args: as of :class:`LocalCLIDebugWrapperSession`."""

    def __init__(
        self,
        ui_type: str = "readline",
        dump_root: str | None = None,
        thread_name_filter: str | None = None,
    ) -> None:
        self._debugger = Debugger(thread_name_filter)

    def add_tensor_filter(self, filter_name: str, tensor_filter: Callable[[DebugTensorDatum, Any], bool]) -> None:
        """Add a filter: see the session's."""
        self._debugger.filters[filter_name] = tensor_filter

    def before_run(self, run_context: Any) -> Any:
        """Ask for the tensors of a step that is watched."""
        asked = run_context.original_args
        with run_context.session.graph.as_default():
            return SessionRunArgs(self._debugger.watches(asked.fetches, asked.feed_dict))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Show them."""
        with run_context.session.graph.as_default():
            self._debugger.shows(run_values.results)
