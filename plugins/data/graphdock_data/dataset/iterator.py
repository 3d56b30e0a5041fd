"""Iterator: the Python side of iterators over datasets. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_data.dataset.elements import flatten, map_up_to, pack, refuse_windows, spread_kinds
from graphdock_data.dataset.stages.stage import Pipeline

__all__ = ["Iterator"]


class Iterator:
    """Elements of datasets of one structure, one after another, in a session.

    ``Dataset.make_one_shot_iterator``, ``Dataset.make_initializable_iterator``, :meth:`from_structure` and
    :meth:`from_string_handle` make them.

    Attributes:
      output_types, output_shapes, output_classes: nested structures of the components' dtypes, shapes and classes.
    """

    def __init__(
        self,
        iterator_resource: Any,
        initializer: Any,
        output_types: Any,
        output_shapes: Any,
        output_classes: Any = None,
    ) -> None:
        self._iterator_resource = iterator_resource
        self._initializer = initializer
        self.output_types = output_types
        self.output_shapes = output_shapes
        self.output_classes = structured_classes(output_types, output_classes)
        self._structure, self._kinds, self._dims = spread_kinds(output_types, output_shapes, self.output_classes)
        self._string_handle: Any = None
        self._pipeline: Pipeline | None = None  # of a one-shot iterator

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator for several datasets of one structure, which :meth:`make_initializer` begins.

        Args:
          output_types: nested structure of dtypes. output_shapes: of shapes; default: not known.
          shared_name: under which sessions of a container share it.
          output_classes: of ``tf.Tensor`` and ``tf.SparseTensor``; default: all are tensors.
        """
        types = map_up_to(_tf.as_dtype, output_types, output_types)
        made = Iterator(None, None, types, structured_shapes(types, output_shapes), output_classes)
        made._iterator_resource = _resource(made._kinds, made._dims, shared_name)
        return made

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator that a string names, which a step may feed: what ``session.run(iterator.string_handle())`` gave.

        Args:
          string_handle: a scalar string. output_types, output_shapes, output_classes: as of the iterators that it may name.
        """
        types = map_up_to(_tf.as_dtype, output_types, output_types)
        made = Iterator(None, None, types, structured_shapes(types, output_shapes), output_classes)
        made._string_handle = _ops.convert_to_tensor(string_handle, _tf.string)
        return made

    @property
    def initializer(self) -> Any:
        """The operation that begins it. Raises ValueError where :meth:`make_initializer` makes that, or there is none."""
        if self._initializer is not None:
            return self._initializer
        raise InvalidArgumentError(
            "Iterator does not have an initializer.",
            hint="make_initializable_iterator(), or iterator.make_initializer(dataset)",
        )

    def make_initializer(self, dataset: Any, name: str | None = None) -> Any:
        """An operation that begins a dataset in this iterator.

        Raises:
          TypeError: its elements are of another structure, other dtypes or shapes that do not fit.
        """
        if self._iterator_resource is None:
            raise InvalidArgumentError("an iterator from a string handle has no initializer")
        refuse_windows(dataset._structure, "an iterator")
        mine, its = flatten(self.output_types), flatten(dataset.output_types)
        if mine != its or self.output_classes != dataset.output_classes:
            raise ArgumentTypeError(
                f"Expected output types {self.output_types!r} but got dataset with output types {dataset.output_types!r}."
            )
        pairs = zip(flatten(self.output_shapes), flatten(dataset.output_shapes), strict=True)
        if not all(more_general(one, other) for one, other in pairs):
            raise ArgumentTypeError(
                f"Expected output shapes compatible with {self.output_shapes!r} but got dataset with output shapes "
                f"{dataset.output_shapes!r}."
            )
        return begin(self._iterator_resource, dataset, name or "make_initializer")

    def get_next(self, name: str | None = None) -> Any:
        """The next element, a nested structure of tensors. A step that has it takes one element, however often it is read.

        Raises:
          in the step OutOfRangeError: there are no more. FailedPreconditionError: the iterator was not begun; the message says
          what to run.
        """
        what = {"output_types": list(self._kinds), "output_shapes": list(self._dims)}
        name = name or "IteratorGetNext"
        if self._iterator_resource is None:
            made = _ops.apply_op("GraphdockIteratorGetNextOf", name, string_handle=self._string_handle, **what)
        else:
            made = _ops.apply_op(
                "GraphdockIteratorGetNext", name, iterator=self._iterator_resource, **self._one_shot(), **what
            )
        return pack(self._structure, made, lambda leaf, *components: leaf.tensor(*components))

    def string_handle(self, name: str | None = None) -> Any:
        """A scalar string that names this iterator, to be fed to one of :meth:`from_string_handle` in the same process."""
        if self._iterator_resource is None:
            return self._string_handle
        return _ops.apply_op(
            "GraphdockIteratorToStringHandle",
            name or "IteratorToStringHandle",
            iterator=self._iterator_resource,
            **self._one_shot(),
        )

    def _one_shot(self) -> dict[str, Any]:
        pipeline = self._pipeline
        return {"dataset": pipeline, "arguments": [] if pipeline is None else list(pipeline.tensors)}


def more_general(one: Any, other: Any) -> bool:
    """Return whether a shape allows all that another one does."""
    if one.ndims is None:
        return True
    return other.ndims == one.ndims and all(
        a is None or a == b for a, b in zip(one.as_list(), other.as_list(), strict=True)
    )


def structured_shapes(types: Any, shapes: Any) -> Any:
    """Shapes in the structure of dtypes, as TensorShapes; all unknown where none are given."""
    if shapes is None:
        return map_up_to(lambda t: _tf.TensorShape(None), types, types)
    return map_up_to(_tf.TensorShape, types, shapes)


def structured_classes(types: Any, classes: Any) -> Any:
    """Classes in the structure of dtypes; Tensor where none are given. Raises TypeError: others than Tensor and SparseTensor."""
    if classes is None:
        return map_up_to(lambda t: _tf.Tensor, types, types)
    for one in flatten(classes):
        if not isinstance(one, type) or not issubclass(one, _tf.Tensor | _tf.SparseTensor):
            raise ArgumentTypeError("classes of components are tf.Tensor and tf.SparseTensor", got=repr(one))
    return map_up_to(lambda c: c, types, classes)


def _resource(types: Any, shapes: Any, shared_name: str | None) -> Any:
    return _ops.apply_op(
        "GraphdockIterator",
        "Iterator",
        shared_name=shared_name or "",
        output_types=list(types),
        output_shapes=list(shapes),
    )


def begin(resource: Any, dataset: Any, name: str) -> Any:
    """The operation that begins a dataset in an iterator."""
    pipeline = Pipeline.of(dataset._stage)
    return _ops.apply_op(
        "GraphdockMakeIterator", name, iterator=resource, dataset=pipeline, arguments=list(pipeline.tensors)
    )


def initializable(dataset: Any, shared_name: str | None) -> Iterator:
    """An iterator over a dataset, with the operation that begins it."""
    refuse_windows(dataset._structure, "an iterator")
    resource = _resource(dataset._stage.types, dataset._stage.shapes, shared_name)
    return _of(dataset, resource, begin(resource, dataset, "MakeIterator"))


def _of(dataset: Any, resource: Any, initializer: Any) -> Iterator:
    made = Iterator(resource, initializer, dataset.output_types, dataset.output_shapes, dataset.output_classes)
    made._structure, made._kinds, made._dims = dataset._structure, dataset._stage.types, dataset._stage.shapes
    return made


def one_shot(dataset: Any) -> Iterator:
    """An iterator that begins by itself.

    Raises:
      ValueError: the dataset needs a placeholder, a variable or another resource.
    """
    refuse_windows(dataset._structure, "an iterator")
    pipeline = Pipeline.of(dataset._stage)
    for function in pipeline.functions:
        if function.handles:
            raise _stateful("a function captures a variable, a table or another resource")
    seen, stack = set(), [t.op for t in pipeline.tensors]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.verb == "feed" and not isinstance(op.graph, _ops.BodyGraph):
            raise _stateful(f"Cannot capture a placeholder (name:{op.name}, type:{op.type}) by value.")
        if op.op_def.accesses or op.verb == "handle":
            raise _stateful(f"Cannot capture a stateful node (name:{op.name}, type:{op.type}) by value.")
        stack.extend([t.op for t in op.inputs])
    made = _of(dataset, _resource(dataset._stage.types, dataset._stage.shapes, None), None)
    made._pipeline = pipeline
    return made


def _stateful(why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "Failed to create a one-shot iterator for a dataset. `Dataset.make_one_shot_iterator()` does not support datasets that "
        "capture stateful objects, such as a `Variable` or `LookupTable`. In these cases, use "
        f"`Dataset.make_initializable_iterator()`. (Original error: {why})"
    )
