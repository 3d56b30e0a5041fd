"""``tensorflow.examples.tutorials.mnist.input_data``: MNIST in batches, as the tutorials of TensorFlow 1 read it.

Nothing is downloaded: the four files are looked for in the folder that the program names.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

import graphdock as tf
import numpy as np
from graphdock.errors import NotFoundError
from numpy.typing import NDArray

from graphdock_tensorflow.run import digits

__all__ = ["DataSet", "Datasets", "extract_images", "extract_labels", "maybe_download", "read_data_sets"]

#: Where the files of MNIST are published.
SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"


class Datasets(NamedTuple):
    """Three sets of images with their labels."""

    train: DataSet
    validation: DataSet
    test: DataSet


class DataSet:
    """Images and labels, given out in batches that begin anew, shuffled, after each epoch.

    Args:
      images: uint8 ``[N, height, width, 1]``. labels: ``[N]``, or ``[N, 10]`` one-hot.
      dtype: ``tf.float32``: values from 0 to 1; ``tf.uint8``: as they are. reshape: images become rows of pixels.
      seed: of the shuffling; None for another at each run. fake_data: batches are ones, for tests of programs.
    """

    def __init__(
        self,
        images: NDArray[Any],
        labels: NDArray[Any],
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = tf.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        wanted = tf.as_dtype(dtype).base_dtype
        if wanted not in (tf.uint8, tf.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self._random = np.random.RandomState(tf.get_seed(seed)[0] if seed is None else seed)
        self._fake = np.ones(784).tolist(), ([1] + [0] * 9) if one_hot else 0
        self._is_fake = fake_data
        if len(images) != len(labels):
            raise ValueError(f"images.shape: {images.shape} labels.shape: {labels.shape}")
        if reshape:
            images = images.reshape(len(images), int(np.prod(images.shape[1:])))
        if wanted == tf.float32:
            images = np.multiply(images.astype(np.float32), np.float32(1.0 / 255.0))
        self._images, self._labels = images, labels
        self._at = self._epochs = 0

    @property
    def images(self) -> NDArray[Any]:
        """All images, in the order of the present epoch."""
        return self._images

    @property
    def labels(self) -> NDArray[Any]:
        """All labels, in the order of the images."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """Return how many images there are."""
        return 10000 if self._is_fake else len(self._images)

    @property
    def epochs_completed(self) -> int:
        """Return how often all were given out."""
        return self._epochs

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """The next images and labels; where an epoch ends, the batch goes on with the next one's first."""
        if fake_data:
            return [self._fake[0]] * batch_size, [self._fake[1]] * batch_size
        if not self._at and not self._epochs and shuffle:
            self._shuffle()
        begin, self._at = self._at, self._at + batch_size
        if self._at <= self.num_examples:
            return self._images[begin : self._at], self._labels[begin : self._at]
        self._epochs += 1
        rest = self._images[begin:], self._labels[begin:]
        if shuffle:
            self._shuffle()
        self._at = batch_size - len(rest[0])
        return (
            np.concatenate([rest[0], self._images[: self._at]]),
            np.concatenate([rest[1], self._labels[: self._at]]),
        )

    def _shuffle(self) -> None:
        order = self._random.permutation(self.num_examples)
        self._images, self._labels = self._images[order], self._labels[order]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = tf.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str = SOURCE_URL,
) -> Datasets:
    """MNIST from the files in a folder: for training without the first ``validation_size``, for validation, and for testing.

    Raises:
      NotFoundError: the files are not there; it says which, and how they or toy data are had. ValueError: ``validation_size`` is
        more than there is.
    """
    if fake_data:
        nothing = np.zeros((0, 28, 28, 1), np.uint8), np.zeros((0, 10) if one_hot else (0,))
        return Datasets(*(DataSet(*nothing, True, one_hot, dtype, reshape, seed) for _ in range(3)))
    folder = Path(train_dir)
    missing = [n for n in digits.FILES if not ((folder / n).is_file() or (folder / n).with_suffix("").is_file())]
    if not missing:
        read: list[NDArray[Any]] = [digits.read_idx(folder / name) for name in digits.FILES]
        train, train_labels, test, test_labels = read
    elif digits.toy_data_allowed():
        print(f"graphdock run: no MNIST in {str(folder)!r}; scikit-learn's digits stand in for it", file=sys.stderr)
        (train, train_labels), (test, test_labels) = digits.toy()
        validation_size = min(validation_size, len(train) // 10)
    else:
        raise NotFoundError(
            f"MNIST is not in {str(folder)!r}: {', '.join(missing)} "
            + ("are" if len(missing) > 1 else "is")
            + " missing",
            hint=f"graphdock downloads nothing: put the files of {source_url} there, or run with --toy-data",
        )
    if one_hot:
        train_labels, test_labels = np.eye(10)[train_labels], np.eye(10)[test_labels]
    if not 0 <= validation_size <= len(train):
        raise ValueError(f"Validation size should be between 0 and {len(train)}. Received: {validation_size}.")
    cut = validation_size
    parts = (
        (train[cut:], train_labels[cut:]),
        (train[:cut], train_labels[:cut]),
        (test, test_labels),
    )
    return Datasets(*(DataSet(x[..., None], y, False, one_hot, dtype, reshape, seed) for x, y in parts))


def extract_images(f: Any) -> NDArray[np.uint8]:
    """Images ``[N, rows, columns, 1]`` of an open file of MNIST's, compressed."""
    return digits.read_idx(Path(f.name))[..., None]


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> NDArray[Any]:
    """Labels of an open file of MNIST's, compressed."""
    labels = digits.read_idx(Path(f.name))
    return np.eye(num_classes)[labels] if one_hot else labels


def maybe_download(filename: str, work_directory: str) -> str:
    """Path of a file of MNIST that is there. Raises NotFoundError where it is not: graphdock downloads nothing."""
    from graphdock_tf1.contrib.downloads import maybe_download as there

    path: str = there(filename, work_directory, SOURCE_URL + filename)
    return path


def __getattr__(name: str) -> Any:
    if name == "input_data":  # from tensorflow.examples.tutorials.mnist import input_data
        return sys.modules[__name__]
    if name == "mnist":
        from graphdock_tensorflow.run import mnist_network

        return mnist_network
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
