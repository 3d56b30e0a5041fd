"""Reading: bytes that changed are noticed, and so is a file that was cut off."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from graphdock.errors import DataLossError, GraphdockError, NotFoundError
from graphdock_storage.checkpoint import open_checkpoint, write


@pytest.fixture
def saved(tmp_path, item):
    write(
        str(tmp_path / "m"),
        [
            item("layer/weights", np.arange(600, dtype=np.float32).reshape(20, 30)),
            item("layer/bias", np.arange(7, dtype=np.int64)),
            item("words", np.array([b"some", b"words", b""], object)),
            item("cut", np.arange(6, dtype=np.float64).reshape(3, 2), (5, 2), "0,3:-"),
            item("cut", np.arange(4, dtype=np.float64).reshape(2, 2), (5, 2), "3,2:-"),
        ],
    )
    return tmp_path


def values(prefix):
    with open_checkpoint(prefix) as found:
        return {name: found.read(name) for name in found.tensors}


def test_a_missing_name_has_near_ones(saved):
    with open_checkpoint(str(saved / "m")) as found, pytest.raises(NotFoundError, match="'layer/biases'") as caught:
        found.read("layer/biases")
    assert "layer/bias" in caught.value.hint and str(saved / "m") in str(caught.value)


def test_a_byte_of_a_tensor_that_changed_names_it(saved):
    (path,) = saved.glob("*.safetensors")
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with open_checkpoint(str(saved / "m")) as found:
        assert found.read("layer/bias").tolist() == list(range(7)), "what is whole is read"
        with pytest.raises(DataLossError, match=r"the tensor 'words' .* checksum"):
            found.read("words")


@pytest.mark.parametrize("missing", ["cut off", "gone", "longer"])
def test_a_data_file_of_another_length(saved, missing):
    (path,) = saved.glob("*.safetensors")
    if missing == "gone":
        path.unlink()
    else:
        os.truncate(path, path.stat().st_size + (10 if missing == "longer" else -10))
    with pytest.raises(DataLossError, match=r"lacks a data file|is cut off or no longer itself"):
        open_checkpoint(str(saved / "m"))


def mutate(data, rng):
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 3))):
        kind, at = rng.choice("fdic"), rng.randrange(max(len(data), 1))
        if kind == "f" and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "d":
            del data[at : at + rng.choice((1, 8, 4000))]
        elif kind == "i":
            data[at:at] = rng.randbytes(rng.choice((1, 8)))
        else:
            data = data[:at]
    return bytes(data)


SEEDS = [pytest.param(range(40), id="sample"), pytest.param(range(40, 4000), id="rest", marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("seeds", SEEDS)
def test_mutated_files_give_errors_or_what_was_saved(saved, seeds):
    """A header of a data file is for other libraries: a change there is not noticed, and harms nothing."""
    expected = values(str(saved / "m"))
    files = sorted(p for p in saved.iterdir())
    whole = {path: path.read_bytes() for path in files}
    refused = 0
    for seed in seeds:
        rng = random.Random(seed)
        path = files[seed % len(files)]
        path.write_bytes(mutate(whole[path], rng))
        try:
            found = values(str(saved / "m"))
        except GraphdockError as error:
            refused += 1
            assert str(saved / "m") in str(error), seed
        else:
            assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in expected.items()}, seed
        path.write_bytes(whole[path])
    assert refused > len(seeds) * 0.7
