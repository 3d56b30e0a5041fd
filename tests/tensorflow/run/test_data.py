"""Data sets are read from the files where people keep them."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError
from graphdock_tensorflow.run import digits
from graphdock_tensorflow.run.datasets import cifar10, mnist
from graphdock_tensorflow.run.mnist import read_data_sets


def write_idx(path, array):
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name, count in zip(digits.FILES, (50, 50, 20, 20), strict=True):
        image = "images" in name
        write_idx(tmp_path / name, rng.integers(0, 256 if image else 10, (count, 28, 28) if image else (count,)))
    return tmp_path


def test_mnist_is_read_and_cut(folder):
    sets = read_data_sets(str(folder), one_hot=True, validation_size=10, seed=1)
    assert (sets.train.num_examples, sets.validation.num_examples, sets.test.num_examples) == (40, 10, 20)
    assert sets.train.images.shape == (40, 784) and sets.train.labels.shape == (40, 10)
    assert sets.train.images.dtype == np.float32 and 0 <= sets.train.images.min() <= sets.train.images.max() <= 1
    raw = digits.read_idx(folder / digits.FILES[0])
    np.testing.assert_array_equal(sets.validation.images[3], raw[3].ravel() * np.float32(1 / 255.0))


def test_an_epoch_gives_each_image_once(folder):
    train = read_data_sets(str(folder), validation_size=0, seed=5).train
    want = {row.tobytes() for row in train.images}
    got = [row.tobytes() for _ in range(5) for row in train.next_batch(10)[0]]
    assert set(got) == want and len(got) == len(want) and train.epochs_completed == 0
    rest, _ = train.next_batch(30)
    after, labels = train.next_batch(30)
    assert train.epochs_completed == 2 and len(after) == len(labels) == 30
    assert {r.tobytes() for r in rest}.isdisjoint(r.tobytes() for r in after[:20])


def test_batches_pair_images_with_their_labels(folder):
    train = read_data_sets(str(folder), validation_size=0, seed=5).train
    of = {row.tobytes(): label for row, label in zip(train.images, train.labels, strict=True)}
    for _ in range(7):
        for row, label in zip(*train.next_batch(16), strict=True):
            assert of[row.tobytes()] == label


@pytest.mark.parametrize("damage", [b"", b"\0\0", b"\0\0\x08\x01\0\0\0\x09abc", b"\x1f\x8bnothing"])
def test_a_damaged_file_is_named(folder, damage):
    (folder / digits.FILES[1]).write_bytes(damage)
    with pytest.raises(InvalidArgumentError, match="train-labels"):
        read_data_sets(str(folder))


def test_missing_files_are_named(folder):
    (folder / digits.FILES[2]).unlink()
    with pytest.raises(NotFoundError, match="t10k-images-idx3-ubyte.gz is missing"):
        read_data_sets(str(folder))


def test_keras_archives(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(NotFoundError, match="mnist.npz"):
        mnist.load_data()
    (tmp_path / "datasets").mkdir()
    x, y = np.zeros((3, 28, 28), np.uint8), np.arange(3)
    np.savez(tmp_path / "datasets" / "mnist.npz", x_train=x, y_train=y, x_test=x[:1], y_test=y[:1])
    (x_train, y_train), (x_test, _) = mnist.load_data()
    assert x_train.shape == (3, 28, 28) and y_train.tolist() == [0, 1, 2] and len(x_test) == 1
    (tmp_path / "datasets" / "mnist.npz").write_bytes(b"x")
    with pytest.raises(InvalidArgumentError, match="mnist.npz"):
        mnist.load_data()


def test_a_pickle_that_runs_something_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    folder = tmp_path / "datasets" / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    (folder / "data_batch_1").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    with pytest.raises(InvalidArgumentError, match="asks for os.system"):
        cifar10.load_data()
    assert not (tmp_path / "ran").exists()
