"""Dataset: elements that a program is fed with, as a tree of stages. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.typing import DTypeLike

from graphdock_data.dataset import iterator as _iterator
from graphdock_data.dataset.elements import (
    Window,
    dims_of,
    flatten,
    flatten_up_to,
    flattening,
    map_up_to,
    pack,
    refuse_windows,
    reshaped,
    sparse_at,
    spread,
)
from graphdock_data.dataset.functions import trace, trace_dataset
from graphdock_data.dataset.stages.batching import Batch, MappedBatch, PaddedBatch, Unbatch
from graphdock_data.dataset.stages.cache import Cache
from graphdock_data.dataset.stages.files import FileNames
from graphdock_data.dataset.stages.functional import Filter, FlatMap, Interleave, Map
from graphdock_data.dataset.stages.order import Concatenate, Repeat, Shard, Shuffle, Skip, Take, Zip
from graphdock_data.dataset.stages.parallel import ParallelMap
from graphdock_data.dataset.stages.prefetch import Prefetch
from graphdock_data.dataset.stages.sources import Generator, Range, Slices, Tensors
from graphdock_data.dataset.stages.stage import Dims, Stage, Value
from graphdock_data.dataset.vectorize import map_after_batch

__all__ = ["Dataset"]


#: A buffer that holds all elements there are.
_ALL = 1 << 40


class Dataset:
    """Elements of one nested structure of tuples and dicts, which an iterator gives one after another.

    A dataset does nothing by itself and never changes; its methods make further ones. Functions of elements are traced once into
    graphs; they may use tables and variables, which a one-shot iterator does not allow.

    Attributes:
      output_types, output_shapes, output_classes: nested structures of the components' dtypes, shapes and classes.
    """

    def __init__(self, stage: Stage, structure: Any, options: Any = None) -> None:
        self._stage = stage
        self._structure = structure
        self._options = options

    @property
    def output_types(self) -> Any:
        return pack(self._structure, self._stage.types, _of_leaf(lambda leaf, *kinds: kinds[1], "output_types"))

    @property
    def output_shapes(self) -> Any:
        shapes = [_tf.TensorShape(dims) for dims in self._stage.shapes]
        return pack(self._structure, shapes, _of_leaf(lambda leaf, *parts: _tf.TensorShape(leaf.dims), "output_shapes"))

    @property
    def output_classes(self) -> Any:
        return pack(
            self._structure, [_tf.Tensor] * len(self._stage.types), _of_leaf(lambda *parts: _tf.SparseTensor, None)
        )

    def __repr__(self) -> str:
        return f"<{self._stage.title} shapes: {self.output_shapes}, types: {self.output_types}>"

    # -- sources ----------------------------------------------------------------------------------------------------------

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: the tensors."""
        structure, values, types, shapes = arguments(tensors)
        return Dataset(Tensors(values=values, types=types, shapes=shapes, site=_ops.call_site()), structure)

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """Elements that lie along the first axis of the tensors, which is as long in all of them."""
        structure, values, types, shapes = arguments(tensors)
        length = _tf.TensorShape([None])

        def row(dims: Dims) -> Dims:
            nonlocal length
            shape = _tf.TensorShape(dims).with_rank_at_least(1)
            length = length.merge_with(shape[:1])
            return dims_of(shape[1:])

        structure, cut = reshaped(structure, shapes, row)
        named = {"values": values, "types": types, "shapes": cut, "sparse": sparse_at(structure)}
        return Dataset(Slices(**named, site=_ops.call_site()), structure)

    @staticmethod
    def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
        """The rows of a SparseTensor, each as a tuple of its indices, its values and its shape.

        Raises:
          TypeError: it is something else.
        """
        if not isinstance(sparse_tensor, _tf.SparseTensor):
            raise ArgumentTypeError("`sparse_tensor` must be a `tf.SparseTensor` object.", got=repr(sparse_tensor))
        stage = Dataset.from_tensor_slices(sparse_tensor)._stage
        return Dataset(stage, (0, 1, 2))

    @staticmethod
    def range(*args: Any) -> Dataset:
        """Integers int64, as Python's ``range`` has them.

        Args:
          args: stop; start and stop; start, stop and step.
        """
        if not 1 <= len(args) <= 3:
            raise InvalidArgumentError(f"Invalid arguments to RangeDataset: {args}")
        start, stop, step = {1: (0, *args, 1), 2: (*args, 1)}.get(len(args), args)
        numbers = {"start": integer(start), "stop": integer(stop), "step": integer(step)}
        return Dataset(Range(**numbers, types=(_tf.int64,), shapes=((),), site=_ops.call_site()), 0)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Any = None
    ) -> Dataset:
        """What a Python generator gives; each iterator, and each repetition, calls ``generator`` anew.

        Args:
          generator: returns an iterable of values of the structure of ``output_types``.
          output_types: nested structure of dtypes. output_shapes: of shapes; default: not known.
          args: tensors whose arrays ``generator`` is called with.

        Raises:
          TypeError: ``generator`` is not callable, ``args`` no tuple. In the step InvalidArgumentError: a value of another
          structure, dtype or shape.
        """
        if not callable(generator):
            raise ArgumentTypeError("`generator` must be callable.", got=repr(generator))
        if args is not None and not isinstance(args, tuple | list):
            raise ArgumentTypeError("`args` must be a tuple of tensors", got=repr(args))
        types = map_up_to(_tf.as_dtype, output_types, output_types)
        shapes = _iterator.structured_shapes(types, output_shapes)
        stage = Generator(
            generator=generator,
            args=tuple([argument(a) for a in args or ()]),
            flatten=flattening(types),
            types=tuple(flatten(types)),
            shapes=tuple([dims_of(s) for s in flatten(shapes)]),
            site=_ops.call_site(),
        )
        return Dataset(stage, pack(types, [0] * len(stage.types)))

    @staticmethod
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: Any = None) -> Dataset:
        """The paths that match a pattern, or any of several, found when an iterator begins.

        Args:
          file_pattern: a string with ``*`` and ``?``, or a vector of them.
          shuffle: in a random order; default: yes. seed: as of :meth:`shuffle`.

        Raises:
          in the step InvalidArgumentError: no path matches.
        """
        patterns = argument(file_pattern, _tf.string)
        stage = FileNames(patterns=patterns, types=(_tf.string,), shapes=((),), site=_ops.call_site())
        found = Dataset(stage, 0)
        return found if shuffle is not None and not shuffle else found.shuffle(_ALL, seed=seed)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """An element of each of several datasets, in their nested structure; ends with the shortest.

        Raises:
          TypeError: something is no dataset, or the structure a list.
        """
        found = flatten(datasets)
        for one in found:
            if not isinstance(one, Dataset):
                hint = "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects."
                if isinstance(one, list):
                    hint += " Nested structures do not support Python lists; please use a tuple instead."
                raise ArgumentTypeError(hint, got=repr(one))
        stages = tuple([one._stage for one in found])
        types = tuple([t for s in stages for t in s.types])
        shapes = tuple([dims for s in stages for dims in s.shapes])
        stage = Zip(sources=stages, types=types, shapes=shapes, site=_ops.call_site())
        return Dataset(stage, pack(datasets, [one._structure for one in found]))

    # -- order ------------------------------------------------------------------------------------------------------------

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this dataset, then those of another one.

        Raises:
          TypeError: they are of another structure or other dtypes.
        """
        mine, its = self._stage, dataset._stage
        if self.output_types != dataset.output_types or self.output_classes != dataset.output_classes:
            raise ArgumentTypeError(
                f"Two datasets to concatenate have different types {self.output_types} and {dataset.output_types}"
            )
        shapes = tuple([_in_common(a, b) for a, b in zip(mine.shapes, its.shapes, strict=True)])
        stage = Concatenate(sources=(mine, its), types=mine.types, shapes=shapes, site=_ops.call_site())
        return Dataset(stage, self._structure)

    def shuffle(self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """The elements in a random order: each is one of the next ``buffer_size``.

        Args:
          seed: of the order; with ``tf.set_random_seed`` it is the same in every run.
          reshuffle_each_iteration: each repetition has another order; default: yes.
        """
        again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
        return self._with(Shuffle, size=integer(buffer_size), seeds=seeds(seed), again=again)

    def repeat(self, count: Any = None) -> Dataset:
        """The elements ``count`` times; for good where it is None or -1."""
        return self._with(Repeat, count=integer(-1 if count is None else count))

    def take(self, count: Any) -> Dataset:
        """The first ``count`` elements; all where it is -1."""
        return self._with(Take, count=integer(count))

    def skip(self, count: Any) -> Dataset:
        """All but the first ``count`` elements; none where it is -1."""
        return self._with(Skip, count=integer(count))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Each ``num_shards``-th element, from the one at ``index`` on.

        Raises:
          ValueError: ``num_shards`` is below 1, or ``index`` not below it; of tensors in the step.
        """
        count, at = integer(num_shards), integer(index)
        if count.array is not None and count.array < 1:
            raise InvalidArgumentError("num_shards must be >= 1", got=str(count.array))
        if at.array is not None and (at.array < 0 or count.array is not None and at.array >= count.array):
            raise InvalidArgumentError("index must be >= 0 and < num_shards", got=str(at.array))
        return self._with(Shard, count=count, index=at)

    def cache(self, filename: Any = "") -> Dataset:
        """The elements, which are kept from the first time that an iterator gave all of them.

        Args:
          filename: begins the name of a file that keeps them, for later programs too; default: they stay in memory.
        """
        refuse_windows(self._structure, "Dataset.cache()")
        return self._with(Cache, file=argument(filename, _tf.string))

    def prefetch(self, buffer_size: Any) -> Dataset:
        """The elements, of which a thread makes ``buffer_size`` ahead."""
        return self._with(Prefetch, size=integer(buffer_size))

    # -- batches ----------------------------------------------------------------------------------------------------------

    def batch(self, batch_size: Any, drop_remainder: Any = False) -> Dataset:
        """Batches of ``batch_size`` elements along a new first axis; the last one may be smaller, or is dropped."""
        refuse_windows(self._structure, "Dataset.batch()")
        size, drop = integer(batch_size), argument(drop_remainder, _tf.bool)
        known = _known(size, drop)
        structure, shapes = reshaped(self._structure, self._stage.shapes, lambda d: None if d is None else (known, *d))
        kind, named = Batch, {"size": size, "drop": drop, "shapes": shapes, "sparse": sparse_at(structure)}
        apart = None if named["sparse"] else map_after_batch(self._stage)
        if apart is not None:
            kind, named = MappedBatch, {**named, "source": apart[0], "function": apart[1]}
        return Dataset(self._with(kind, **named)._stage, structure)

    def unbatch(self) -> Dataset:
        """The elements of batches, one after another."""
        refuse_windows(self._structure, "Dataset.unbatch()")
        structure, shapes = reshaped(
            self._structure, self._stage.shapes, lambda dims: None if dims is None else dims[1:]
        )
        return Dataset(self._with(Unbatch, shapes=shapes, sparse=sparse_at(structure))._stage, structure)

    def enumerate(self, start: Any = 0) -> Dataset:
        """Pairs of a number int64, counted from ``start`` on, and an element."""
        return Dataset.zip((Dataset.range(start, np.iinfo(np.int64).max), self))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False
    ) -> Dataset:
        """As :meth:`batch`, of elements that are filled up behind their ends to one shape.

        Args:
          padded_shapes: nested structure of shapes; None or -1 for the dim of the batch's largest element; default: the shapes of
            the elements.
          padding_values: nested structure of scalars; default: 0 and empty strings.

        Raises:
          TypeError: a padding value of another dtype. In the step DataLossError: an element is larger than the padded shape.
        """
        stage = self._stage
        refuse_windows(self._structure, "Dataset.padded_batch()")
        if sparse_at(self._structure):
            raise ArgumentTypeError("Batching of padded sparse tensors is not currently supported")
        if padded_shapes is None:
            padded_shapes = self.output_shapes
            if any(dims is None for dims in stage.shapes):
                raise InvalidArgumentError(
                    "You must provide `padded_shapes` argument because component has an unknown rank."
                )
        size, drop = integer(batch_size), argument(drop_remainder, _tf.bool)
        asked = flatten_up_to(self._structure, padded_shapes)
        padded = tuple([_padded(s, dims) for s, dims in zip(asked, stage.shapes, strict=True)])
        if padding_values is None:
            given: list[Any] = [None] * len(stage.types)
        else:
            given = flatten_up_to(self._structure, padding_values)
        filling = tuple([_padding(value, kind) for value, kind in zip(given, stage.types, strict=True)])
        known = _known(size, drop)
        shapes = tuple([(known, *_dims_of_padded(p, dims)) for p, dims in zip(padded, stage.shapes, strict=True)])
        return self._with(PaddedBatch, size=size, drop=drop, padded=padded, filling=filling, shapes=shapes)

    # -- functions --------------------------------------------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None) -> Dataset:
        """What ``map_func`` makes of each element.

        Args:
          map_func: takes an element (a tuple's items one by one), as tensors; returns a nested structure of tensors. What it
            makes that acts (assigns, prints, asserts, calls Python) runs for each element, whether a result needs it or not.
          num_parallel_calls: calls at once, on threads; -1 for as many as there are processors. Results keep their order.
        """
        traced = trace("Dataset.map()", map_func, self)
        named = {"function": traced.function, "types": traced.types, "shapes": traced.shapes}
        if num_parallel_calls is None:
            return Dataset(self._with(Map, **named)._stage, traced.structure)
        return Dataset(self._with(ParallelMap, calls=integer(num_parallel_calls), **named)._stage, traced.structure)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which ``predicate``, a function as of :meth:`map` that gives a scalar bool, holds.

        Raises:
          ValueError: it gives something else.
        """
        traced = trace("Dataset.filter()", predicate, self)
        if traced.types != (_tf.bool,) or traced.shapes[0] not in ((), None):
            raise InvalidArgumentError("`predicate` must return a scalar boolean tensor.", got=str(traced.result))
        return self._with(Filter, function=traced.function)

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that ``map_func`` makes of each element, one dataset after another.

        Raises:
          TypeError: it returns no dataset.
        """
        traced = trace_dataset("Dataset.flat_map()", map_func, self)
        stage = self._with(FlatMap, function=traced.function, types=traced.types, shapes=traced.shapes)._stage
        return Dataset(stage, traced.structure)

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any, block_length: Any = 1, num_parallel_calls: Any = None
    ) -> Dataset:
        """As :meth:`flat_map`, but of ``cycle_length`` datasets at once, ``block_length`` elements of each at a time.

        Args:
          num_parallel_calls: threads make elements ahead, one for each dataset that is open; the order stays.
        """
        ahead = integer(0) if num_parallel_calls is None else integer(block_length)
        return self._interleaved("Dataset.interleave()", map_func, cycle_length, block_length, ahead)

    def _interleaved(
        self, what: str, map_func: Callable[..., Any], cycle_length: Any, block_length: Any, ahead: Value
    ) -> Dataset:
        traced = trace_dataset(what, map_func, self)
        cycle, block = integer(cycle_length), integer(block_length)
        named = {"function": traced.function, "cycle": cycle, "block": block, "ahead": ahead}
        stage = self._with(Interleave, **named, types=traced.types, shapes=traced.shapes)._stage
        return Dataset(stage, traced.structure)

    def window(self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: Any = False) -> Dataset:
        """Windows of the elements, each a dataset in the place of every tensor, for :meth:`flat_map` and :meth:`interleave`.

        Args:
          size: elements of a window. shift: elements from one window's first to the next one's; default: ``size``.
          stride: elements from one element of a window to the next. drop_remainder: the last windows are full, or left out.

        Raises:
          in the step InvalidArgumentError: a number below 1.
        """
        from graphdock_data.dataset.windows import windows

        return windows(self, size, shift, stride, drop_remainder)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any]) -> Any:
        """The result of a function of all elements: a nested structure of tensors like ``initial_state``, in every step anew.

        Args:
          initial_state: nested structure of tensors, the result of no elements.
          reduce_func: of a state and an element; gives the next state.

        Raises:
          TypeError: it gives a state of other dtypes or another structure.
        """
        from graphdock_data.dataset.windows import reduced

        return reduced(self, initial_state, reduce_func)

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """The result of a function of this dataset.

        Raises:
          TypeError: it returns no dataset.
        """
        made = transformation_func(self)
        if not isinstance(made, Dataset):
            raise ArgumentTypeError("`transformation_func` must return a Dataset.", got=repr(made))
        return made

    def options(self) -> Any:
        """The options that :meth:`with_options` gave this dataset, a ``tf.data.Options``."""
        from graphdock_data.dataset.options import Options

        return Options() if self._options is None else self._options

    def with_options(self, options: Any) -> Dataset:
        """The same elements, with options for :meth:`options`. They change nothing here.

        Raises:
          ValueError: they say something otherwise than options that this dataset has.
        """
        return Dataset(self._stage, self._structure, self.options().merge(options))

    # -- iterators --------------------------------------------------------------------------------------------------------

    def make_one_shot_iterator(self) -> _iterator.Iterator:
        """An iterator that begins by itself, once in a session.

        Raises:
          ValueError: the dataset needs a placeholder, a variable or another resource.
        """
        return _iterator.one_shot(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> _iterator.Iterator:
        """An iterator whose ``initializer`` begins it, also anew.

        Args:
          shared_name: under which sessions of a container share it.
        """
        return _iterator.initializable(self, shared_name)

    def _with(self, kind: type[Stage], /, **fields: Any) -> Dataset:
        """A dataset of this one's structure, with one stage more."""
        mine: dict[str, Any] = {"types": self._stage.types, "shapes": self._stage.shapes, "site": _ops.call_site()}
        return Dataset(kind(**{**mine, "source": self._stage, **fields}), self._structure)


def _of_leaf(sparse: Callable[..., Any], window: str | None) -> Callable[..., Any]:
    """The stand-in for a leaf of several components: of a window the attribute of its dataset, or the class of datasets."""

    def made(leaf: Any, *parts: Any) -> Any:
        if not isinstance(leaf, Window):
            return sparse(leaf, *parts)
        return Dataset if window is None else getattr(leaf.tensor(), window)

    return made


# -- arguments --------------------------------------------------------------------------------------------------------------


def argument(value: Any, dtype: DTypeLike | None = None) -> Value:
    """An argument of a stage, for what converts to a tensor of a dtype.

    Raises:
      DTypeError, InvalidArgumentError: it does not convert.
    """
    if isinstance(value, int | bool) and dtype is not None:
        known, _ = _ops.make_array(value, _tf.as_dtype(dtype))
        return Value(known)
    tensor = _ops.convert_to_tensor(value, dtype)
    return _value(tensor)


def _value(tensor: Any) -> Value:
    return Value(tensor.op.node_attrs["value"]) if tensor.op.type == "Const" else Value(tensor=tensor)


def integer(value: Any) -> Value:
    """An argument that is a scalar int64."""
    if isinstance(value, np.integer):
        value = int(value)
    found = argument(value, _tf.int64)
    dims = found.array.shape if found.tensor is None else dims_of(found.tensor.shape)
    if dims not in ((), None):
        raise InvalidArgumentError("an argument of a dataset must be a scalar", got=str(dims))
    return found


def arguments(tensors: Any) -> tuple[Any, tuple[Value, ...], tuple[Any, ...], tuple[Dims, ...]]:
    """The structure of nested tensors, and their components as arguments, with their dtypes and shapes."""
    structure, found = spread(tensors)
    values, types = tuple([_value(t) for t in found]), tuple([t.dtype for t in found])
    return structure, values, types, tuple([dims_of(t.shape) for t in found])


def seeds(seed: Any) -> tuple[Value, Value] | None:
    """The two seeds of a stage that is made now; None for others in every iterator."""
    if isinstance(seed, _tf.Tensor):
        return integer(_tf.get_seed(0)[0] or 0), integer(_tf.cast(seed, _tf.int64))
    first, second = _tf.get_seed(None if seed is None else int(seed))
    return None if first is None and second is None else (integer(first or 0), integer(second or 0))


def _known(size: Value, drop: Value) -> int | None:
    """The first dim of batches, where it is the same for all."""
    return int(size.array) if size.array is not None and drop.array is not None and drop.array else None


def _in_common(one: Dims, other: Dims) -> Dims:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple([a if a == b else None for a, b in zip(one, other, strict=True)])


def _padded(shape: Any, dims: Dims) -> Value:
    """A padded shape as a vector int64."""
    if isinstance(shape, _tf.Tensor):
        return _padded_tensor(shape, dims)
    asked: Sequence[Any] | None
    if isinstance(shape, np.ndarray):
        asked = shape.tolist()
    elif isinstance(shape, list | tuple) and any(isinstance(d, list | tuple) for d in shape):
        raise InvalidArgumentError("A padded shape must be a vector of int64", got=repr(shape))
    else:
        listed = [shape] if isinstance(shape, int) else shape
        items = listed if isinstance(listed, list | tuple) else _tf.TensorShape(listed).as_list()
        asked = [
            None if d is None else int(getattr(d, "value", d) if getattr(d, "value", d) is not None else -1)
            for d in items
        ]
    numbers = [-1 if d is None else int(d) for d in asked]
    if dims is not None and (
        len(dims) != len(numbers) or any(n >= 0 and d is not None and n < d for n, d in zip(numbers, dims, strict=True))
    ):
        raise InvalidArgumentError(
            f"The padded shape {tuple(numbers)} is not compatible with the corresponding input component shape {dims}."
        )
    return Value(np.array(numbers, np.int64))


def _padded_tensor(shape: Any, dims: Dims) -> Value:
    """A tensor as a padded shape."""
    if not shape.dtype.is_integer:
        raise ArgumentTypeError(f"Padded shape {shape.name} must be a vector of int64", got=shape.dtype.name)
    if not shape.shape.is_compatible_with([None]):
        raise InvalidArgumentError(f"Padded shape {shape.name} must be a vector of int64", got=f"shape {shape.shape}")
    found = argument(shape, _tf.int64)
    if found.array is not None:
        return _padded(found.array, dims)
    size = shape.shape.as_list()[0] if shape.shape.ndims else None
    if size is not None and dims is not None and size != len(dims):
        raise InvalidArgumentError(
            f"The padded shape {(None,) * size} is not compatible with the corresponding input component shape {dims}."
        )
    return found


def _dims_of_padded(padded: Value, dims: Dims) -> tuple[int | None, ...]:
    if padded.array is None:
        return (None,) * (len(dims) if dims is not None else padded.tensor.shape.as_list()[0])
    return tuple([None if n < 0 else n for n in padded.array.tolist()])


def _padding(value: Any, kind: Any) -> Value:
    """What a component is filled up with, a scalar of its dtype."""
    if value is None:
        blank = np.empty((), kind.np)
        blank[()] = b"" if kind.kind == "S" else 0
        return Value(blank)
    found = argument(value, None if isinstance(value, _tf.Tensor) else kind)
    if found.tensor is not None and found.tensor.dtype is not kind:
        raise ArgumentTypeError(
            "Mismatched type between padding value and input dataset's component",
            expected=kind.name,
            got=str(found.tensor.dtype),
        )
    return found
