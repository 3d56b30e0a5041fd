"""Stage: a node of a dataset's tree, which makes an iterator over elements; and Run, what one iterator keeps beside them.

An element is a tuple of components, which are arrays or NumPy's scalars; of strings always arrays. The nested structure around them
is the dataset's business (:mod:`graphdock_data.dataset.elements`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from graphdock import ops as _ops
from graphdock.contracts import errors

__all__ = ["Dims", "Element", "Function", "Pipeline", "Resumed", "Run", "Stage", "Steps", "Value", "as_text", "fill"]

Element: TypeAlias = tuple[Any, ...]
Dims: TypeAlias = "tuple[int | None, ...] | None"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An argument of a stage: an array, or the tensor that gives one when an iterator begins.

    Attributes:
      array: where it is known already; read-only. tensor: where it is not.
    """

    array: Any = None
    tensor: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of elements, traced once.

    Attributes:
      body: its graph. captures: the tensors that it captures, but for handles: arguments behind the element.
      handles: it captures a resource, such as a variable or a table.
      inner: the dataset that it returns, whose tensors are what its graph gives; None where it returns an element.
      windows: places of components that are windows, which its graph does not take, and the stages that hand over their elements.
    """

    body: Any
    captures: tuple[Any, ...]
    handles: bool = False
    inner: Pipeline | None = None
    windows: tuple[tuple[int, Stage], ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Stage:
    """A node of a dataset's tree; never changed.

    Attributes:
      types: dtypes of the components. shapes: theirs, as far as they are known.
      site: the user's line that made it. graph: the graph that it was made in, of a function, say.
    """

    title: ClassVar[str]
    #: Whether its components are arrays of their own, which nobody reads again.
    fresh: ClassVar[bool] = False
    types: tuple[Any, ...]
    shapes: tuple[Dims, ...]
    site: str | None = None
    graph: Any = field(default_factory=_ops.get_default_graph, repr=False)

    def iterate(self, run: Run) -> Iterator[Element]:
        """An iterator over its elements. What it raises has passed :meth:`blame`."""
        raise NotImplementedError

    def check(self, run: Run) -> None:
        """Refuse arguments that are wrong, before there is an iterator."""

    def parts(self) -> Iterator[Any]:
        """Its Values, Functions and the stages behind it."""
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            for one in value if isinstance(value, tuple) else (value,):
                if isinstance(one, Stage | Value | Function):
                    yield one

    def tree(self) -> Iterator[Stage]:
        """It and all stages behind it, each as often as it is read."""
        stack = [self]
        while stack:
            yield (stage := stack.pop())
            stack.extend([part for part in stage.parts() if isinstance(part, Stage)])

    def own(self) -> bool:
        """Return whether the components that it gives are nobody else's."""
        return self.fresh

    @property
    def place(self) -> str:
        """Its name and the line that made it, for messages."""
        return f"{self.title} (made at {self.site})" if self.site else self.title

    def blame(self) -> _Blame:
        """A context whose errors name this stage, unless they name another one."""
        return _Blame(self)

    def name(self, error: errors.GraphdockError) -> None:
        """Have an error name this stage, unless it names another one."""
        if "(made at " not in error.message:
            error.message = f"{self.place}: {error.message}"
            error.args = (error.message, *error.args[1:])

    def refusal(self, message: str, **more: Any) -> errors.InvalidArgumentError:
        """An InvalidArgumentError that names this stage."""
        return errors.InvalidArgumentError(f"{self.place}: {message}", **more)


class Steps(Iterator[Element]):
    """An iterator whose elements a function makes, which goes on after an error, unlike a generator; StopIteration ends it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], Element]) -> None:
        self._make = make

    def __next__(self) -> Element:
        return self._make()


class Resumed(Iterator[Element]):
    """Elements of a generator. After an error that it raised another one goes on, with the state that they share.

    Args:
      begin: makes a generator that begins where the state says.
    """

    __slots__ = ("_begin", "_rest")

    def __init__(self, begin: Callable[[], Iterator[Element]]) -> None:
        self._begin = begin
        self._rest = begin()

    def __next__(self) -> Element:
        try:
            return next(self._rest)
        except StopIteration:
            raise
        except BaseException:
            self._rest = self._begin()
            raise


#: Elements that :func:`fill` takes at once.
_AT_ONCE = 4096


def fill(rows: list[Element], source: Iterator[Element], count: int) -> None:
    """Append so many elements, or as many as there are, in pieces: between them a step can be interrupted."""
    while count > 0:
        before, asked = len(rows), min(count, _AT_ONCE)
        rows.extend(itertools.islice(source, asked))
        if len(rows) - before < asked:
            return
        count -= asked


class _Blame:
    __slots__ = ("_stage",)

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, errors.GraphdockError):
            self._stage.name(error)


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """A whole dataset: its last stage, and what its stages need.

    Attributes:
      tensors: they give arrays, in this order. functions: of its stages, and of datasets that they return.
    """

    stage: Stage
    tensors: tuple[Any, ...]
    functions: tuple[Function, ...]

    @classmethod
    def of(cls, stage: Stage) -> Pipeline:
        """The pipeline that ends with a stage."""
        tensors: dict[Any, None] = {}
        functions: dict[Function, None] = {}
        stack: list[Any] = [stage]
        while stack:
            part = stack.pop()
            if isinstance(part, Stage):
                stack.extend(part.parts())
            elif isinstance(part, Function):
                functions[part] = None
                tensors.update(dict.fromkeys(part.captures))
                if part.inner is not None:
                    functions.update(dict.fromkeys(part.inner.functions))
            elif part.tensor is not None:
                tensors[part.tensor] = None
        return cls(stage, tuple(tensors), tuple(functions))


def _anew(makers: Mapping[Function, Any]) -> dict[Function, Callable[..., Any]]:
    return {function: maker.anew() for function, maker in makers.items()}


@dataclass(slots=True, eq=False)
class Run:
    """State of one iterator over a tree.

    Attributes:
      values: tensor -> its array. functions: Function -> what calls it with arrays.
      makers: Function -> what makes such a caller, which draws what its seeds say, whatever others have drawn (``anew()``).
      closers: called when the iterator ends before its elements do; of threads, say. They may be called twice.
      given: stage -> the elements that another stage hands to it (:class:`graphdock_data.dataset.stages.grouping.Given`).
      outer, body: of an iterator within another one, the state of that, and the graph of the function whose dataset it reads.
    """

    values: Mapping[Any, Any]
    functions: Mapping[Function, Callable[..., Any]]
    closers: dict[Any, Callable[[], None]] = field(default_factory=dict)
    given: Mapping[Stage, Any] = field(default_factory=dict)
    makers: Mapping[Function, Any] = field(default_factory=dict)
    outer: Run | None = None
    body: Any = None
    _states: dict[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, pipeline: Pipeline, arrays: Any, makers: Mapping[Function, Any]) -> Run:
        """A new iterator's state. Raises whatever the stages refuse."""
        run = cls(dict(zip(pipeline.tensors, arrays, strict=True)), _anew(makers), makers=makers)
        run._check(pipeline.stage)
        return run

    def inside(self, function: Function, arrays: Any, given: Mapping[Stage, Any] | None = None) -> Run:
        """The state of an iterator within this one, over the dataset that a function returned."""
        assert function.inner is not None
        values = dict(zip(function.inner.tensors, arrays, strict=True))
        given = {**self.given, **(given or {})}
        run = Run(values, self.functions, self.closers, given, self.makers, self, function.body)
        run._check(function.inner.stage)
        return run

    def _check(self, last: Stage) -> None:
        for stage in last.tree():
            stage.check(self)

    def apart(self, stage: Stage, sources: Sequence[Stage]) -> list[Run]:
        """A state for each source of a stage: one that shares a stage with one before has its own, as TensorFlow's iterators do."""
        runs, seen = list[Run](), set[Stage]()
        for i, source in enumerate(sources):
            behind = set(source.tree())
            runs.append(self.state((stage, i), self._branch) if behind & seen else self)
            seen |= behind
        return runs

    def _branch(self) -> Run:
        return Run(self.values, _anew(self.makers), self.closers, self.given, self.makers)

    def array(self, value: Value) -> Any:
        """The array of an argument."""
        return value.array if value.tensor is None else self.values[value.tensor]

    def number(self, value: Value) -> int:
        """The integer of an argument."""
        return int(self.array(value))

    def state(self, key: Stage | tuple[Stage, Hashable], make: Callable[[], T]) -> T:
        """State that a stage keeps from one of its iterators to the next, in this run.

        A dataset that a function captures, and does not make, keeps it for all calls of the function.
        """
        run, stage = self, key if isinstance(key, Stage) else key[0]
        while run.outer is not None and stage.graph is not run.body:
            run = run.outer
        if key not in run._states:
            run._states[key] = make()
        found: T = run._states[key]
        return found

    def call(self, function: Function) -> Callable[..., Any]:
        """A function of an element's components that gives a tuple of arrays."""
        compute = self.functions[function]
        if any(t.dtype.kind == "S" for t in function.body.outputs):
            compute = _with_texts(compute)
        captured = tuple([self.values[t] for t in function.captures])
        if not captured:
            return compute
        return lambda *components: compute(*components, *captured)

    def close(self) -> None:
        """End the threads."""
        for closer in list(self.closers.values()):
            closer()


def _with_texts(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose scalar strings are arrays too."""

    def call(*arrays: Any) -> tuple[Any, ...]:
        return tuple([as_text(made) if isinstance(made, bytes) else made for made in compute(*arrays)])

    return call


def as_text(value: bytes) -> Any:
    """A scalar string."""
    made = np.empty((), object)
    made[()] = value
    return made
