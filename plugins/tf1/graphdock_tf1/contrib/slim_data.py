"""Input of ``tf.contrib.slim``: datasets of files, readers behind queues, and decoders of Examples."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError, UnimplementedError


class Dataset:
    """Dataset of files, a reader's class and a decoder; further arguments become attributes.

    Args:
      data_sources: files, or patterns of them. reader: such as ``tf.TFRecordReader``. decoder: a DataDecoder.
      num_samples: how many rows. items_to_descriptions: name of an item -> what it is.
    """

    def __init__(
        self, data_sources: Any, reader: Any, decoder: Any, num_samples: int, items_to_descriptions: Any, **kwargs: Any
    ) -> None:
        kwargs["data_sources"] = data_sources
        kwargs["reader"] = reader
        kwargs["decoder"] = decoder
        kwargs["num_samples"] = num_samples
        kwargs["items_to_descriptions"] = items_to_descriptions
        self.__dict__.update(kwargs)


class DataDecoder:
    """Makes named tensors of a record; a subclass says how."""

    def decode(self, data: Any, items: Sequence[str] | None = None) -> list[Any]:
        """The tensors of these items."""
        raise UnimplementedError(f"{type(self).__name__} does not define decode")

    def list_items(self) -> list[str]:
        """Names of the items that there are."""
        raise UnimplementedError(f"{type(self).__name__} does not define list_items")


class ItemHandler:
    """Makes an item of parsed features. Args: keys: of the features, one or several."""

    def __init__(self, keys: Any) -> None:
        self._keys = list(keys) if isinstance(keys, (tuple, list)) else [keys]

    @property
    def keys(self) -> list[str]:
        """Keys of the features."""
        return self._keys

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item of these features."""
        raise UnimplementedError(f"{type(self).__name__} does not define tensors_to_item")


class ItemHandlerCallback(ItemHandler):
    """A function of a dict of features makes the item."""

    def __init__(self, keys: Any, func: Callable[[Mapping[str, Any]], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        return self._func(keys_to_tensors)


class Tensor(ItemHandler):
    """A feature as it is, dense.

    Args:
      shape_keys: features that hold its shape. shape: its shape; of these two one at most.
      default_value: of what a sparse feature leaves out.

    Raises:
      ValueError: both ``shape`` and ``shape_keys``.
    """

    def __init__(self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0) -> None:
        if shape_keys is not None and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        given = [shape_keys] if isinstance(shape_keys, str) else list(shape_keys or ())
        super().__init__([tensor_key, *given])
        self._shape, self._default = shape, default_value

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        tensor, *sides = (keys_to_tensors[key] for key in self._keys)
        shape = self._shape
        if sides:
            dense = [_tf.sparse_tensor_to_dense(s) if isinstance(s, _tf.SparseTensor) else s for s in sides]
            shape = _tf.concat([_tf.reshape(_tf.cast(s, _tf.int32), [-1]) for s in dense], 0)
        if isinstance(tensor, _tf.SparseTensor):
            tensor = tensor if shape is None else _tf.sparse_reshape(tensor, _tf.cast(shape, _tf.int64))
            return _tf.sparse_tensor_to_dense(tensor, self._default)
        return tensor if shape is None else _tf.reshape(tensor, shape)


class Image(ItemHandler):
    """An image, of bytes that ``decode_image`` knows, or of raw ones where its format is ``raw``.

    Args:
      image_key, format_key: of the features; default ``image/encoded``, ``image/format``.
      shape: of the image, which raw ones need. channels: how many. dtype: of raw ones, and of the result.
      repeated, dct_method: of several images in a row; without effect.

    Raises:
      UnimplementedError: ``repeated``.
    """

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int = 3,
        dtype: Any = _tf.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        if repeated:
            raise UnimplementedError("slim.tfexample_decoder.Image: repeated", hint="tf.map_fn over the encoded ones")
        super().__init__([image_key or "image/encoded", format_key or "image/format"])
        self._shape, self._channels, self._dtype = shape, channels, dtype

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        encoded, kind = (_tf.reshape(keys_to_tensors[key], []) for key in self._keys)

        def raw() -> Any:
            flat = _tf.decode_raw(encoded, self._dtype)
            return flat if self._shape is None else _tf.reshape(flat, self._shape)

        def coded() -> Any:
            return _tf.cast(_tf.image.decode_image(encoded, self._channels), self._dtype)

        if self._shape is None:  # raw bytes are no image then
            image = coded()
            image.set_shape([None, None, self._channels])
            return image
        is_raw = _tf.logical_or(_tf.equal(kind, "raw"), _tf.equal(kind, "RAW"))
        return _tf.reshape(_tf.cond(is_raw, raw, lambda: _tf.reshape(coded(), self._shape)), self._shape)


class BoundingBox(ItemHandler):
    """Boxes ``[number, 4]`` of four features. Args: keys: their last parts; prefix: what stands before them."""

    def __init__(self, keys: Sequence[str] | None = None, prefix: str = "") -> None:
        names = ["ymin", "xmin", "ymax", "xmax"] if keys is None else list(keys)
        if len(names) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(names)}")
        super().__init__([prefix + name for name in names])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        found = (keys_to_tensors[key] for key in self._keys)
        return _tf.stack([side.values if isinstance(side, _tf.SparseTensor) else side for side in found], 1)


class TFExampleDecoder(DataDecoder):
    """Decodes an Example.

    Args:
      keys_to_features: as ``parse_single_example`` takes them. items_to_handlers: item -> ItemHandler.
    """

    def __init__(self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]) -> None:
        self._features, self._handlers = keys_to_features, items_to_handlers

    def list_items(self) -> list[str]:
        return list(self._handlers)

    def decode(self, data: Any, items: Sequence[str] | None = None) -> list[Any]:
        parsed = _tf.parse_single_example(data, self._features)
        handlers = [self._handlers[item] for item in (self._handlers if items is None else items)]
        return [handler.tensors_to_item({key: parsed[key] for key in handler.keys}) for handler in handlers]


def get_data_files(data_sources: Any) -> list[str]:
    """Files of sources: those that a pattern finds, in the order of their names, and those that are named, there or not.

    Args:
      data_sources: files, or patterns of them; one, or a list.

    Raises:
      InvalidArgumentError: there is none.
    """
    given = list(data_sources) if isinstance(data_sources, (list, tuple)) else [data_sources]
    patterns = [any(sign in source for sign in "*?[") for source in given]
    files = [f for s, many in zip(given, patterns, strict=True) for f in (sorted(_tf.gfile.Glob(s)) if many else [s])]
    if not files:
        raise InvalidArgumentError(f"no data files found in {data_sources}")
    return files


def parallel_read(
    data_sources: Any,
    reader_class: Callable[..., Any],
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Mapping[str, Any] | None = None,
    shuffle: bool = True,
    dtypes: Sequence[Any] | None = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> Any:
    """Key and record of the next row of several readers, through a queue that queue runners fill.

    Args:
      data_sources: files, or patterns of them. reader_class: makes a reader of ``reader_kwargs``.
      shuffle: mix files and rows, of which ``min_after_dequeue`` stay in the queue. dtypes: of key and record; default: strings.

    Raises:
      InvalidArgumentError: no file is there.
    """
    with _tf.name_scope(scope, "parallel_read"):
        names = _tf.train.string_input_producer(
            get_data_files(data_sources), num_epochs, shuffle, seed, name="filenames"
        )
        kinds = list(dtypes or (_tf.string, _tf.string))
        if shuffle:
            queue = _tf.RandomShuffleQueue(capacity, min_after_dequeue, kinds, seed=seed, name="common_queue")
        else:
            queue = _tf.FIFOQueue(capacity, kinds, name="common_queue")
        rows = [queue.enqueue(reader_class(**(reader_kwargs or {})).read(names)) for _ in range(num_readers)]
        _tf.train.add_queue_runner(_tf.train.QueueRunner(queue, rows))
        return queue.dequeue(name="parallel_read")


class DataProvider:
    """Tensors by name. Args: items_to_tensors: the tensors. num_samples: how many rows there are."""

    def __init__(self, items_to_tensors: Mapping[str, Any], num_samples: int) -> None:
        self._tensors, self._number = items_to_tensors, num_samples

    def get(self, items: Sequence[str]) -> list[Any]:
        """Tensors of these items. Raises ValueError: there is none of a name."""
        missing = [item for item in items if item not in self._tensors]
        if missing:
            raise ValueError(f"Items {missing} are not among {sorted(self._tensors)}")
        return [self._tensors[item] for item in items]

    def list_items(self) -> list[str]:
        """Names of the items."""
        return list(self._tensors)

    def num_samples(self) -> int:
        """Number of rows."""
        return self._number


class DatasetDataProvider(DataProvider):
    """Items of a Dataset's rows, read by :func:`parallel_read`, and ``record_key``, a row's key.

    Raises:
      ValueError: an item is called ``record_key``. InvalidArgumentError: no file is there.
    """

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Mapping[str, Any] | None = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            dataset.reader,
            num_epochs,
            num_readers,
            reader_kwargs,
            shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        if record_key in items:
            raise ValueError(
                f"The item name used for `record_key` cannot also be used for a dataset item: {record_key}"
            )
        tensors = dict(zip(items, dataset.decoder.decode(data, items), strict=True))
        super().__init__({**tensors, record_key: key}, dataset.num_samples)


@contextlib.contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Run the graph's queue runners meanwhile, in the threads of a Coordinator."""
    coordinator = _tf.train.Coordinator()
    threads = _tf.train.start_queue_runners(session, coordinator)
    yield
    coordinator.request_stop()
    coordinator.join(threads)
