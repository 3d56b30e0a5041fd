"""Checkpoints of TensorFlow's formats with bytes changed, cut out and put in: clear errors only, or what was saved.

Those of graphdock's own format are mutated in ``tests/storage/checkpoint/test_reading.py``.
"""

from __future__ import annotations

import functools
import random
import tracemalloc

import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock_storage.checkpoint import open_checkpoint
from graphdock_tensorflow.plugin import register_checkpoint_formats

open_checkpoint = functools.partial(open_checkpoint, others=register_checkpoint_formats)

pytest.importorskip("google.protobuf")

TENSORS = {
    "layer/weights": np.arange(600, dtype=np.float32).reshape(20, 30),
    "layer/bias": np.arange(7, dtype=np.int64),
    "words": np.array([b"some", b"words", b""], object),
    "cut": (
        (5, 2),
        [([(0, 3), None], np.arange(6.0).reshape(3, 2)), ([(3, 2), None], np.arange(6.0, 10.0).reshape(2, 2))],
    ),
}


@pytest.fixture
def files(tensorflow_files):
    return tensorflow_files


def values(prefix):
    with open_checkpoint(prefix) as found:
        return {name: found.read(name).tolist() for name in found.tensors}


def mutated(data, rng):
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        kind = rng.choice(("flip", "flip", "cut", "insert", "end", "swap"))
        if kind == "flip" and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del out[at : at + rng.choice((1, 8, 1000))]
        elif kind == "insert":
            out[at:at] = rng.randbytes(rng.choice((1, 8)))
        elif kind == "end":
            del out[at:]
        else:
            out[at : at + 8] = out[:8]
    return bytes(out)


def refitted(files, data, rng):
    """The first block changed, with a checksum that fits again: what lies is not caught by that."""
    end = rng.choice(
        [
            i
            for i in range(5, min(len(data), 400))
            if files.masked(files.crc32c(data[: i - 4])) == int.from_bytes(data[i - 4 : i], "little")
        ]
        or [0]
    )
    if not end:
        return data
    block = bytearray(data[: end - 4])
    block[rng.randrange(len(block) - 1)] ^= 1 << rng.randrange(8)
    return bytes(block) + files.masked(files.crc32c(block)).to_bytes(4, "little") + data[end:]


#: Of those of format V2 every third is the data file, of which there are to be 2,000 too.
SEEDS = [pytest.param(range(24), id="sample"), pytest.param(range(24, 6000), id="rest", marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("version", [1, 2])
def test_only_clear_errors(tmp_path, files, version, seeds):
    prefix = str(tmp_path / "m")
    if version == 1:
        files.write_v1(prefix, TENSORS)
    else:
        files.write_v2(prefix, TENSORS)
    paths = sorted(tmp_path.iterdir())
    whole, expected, refused = {p: p.read_bytes() for p in paths}, values(prefix), 0
    seeds = seeds[:2000] if version == 1 else seeds
    for seed in seeds:
        rng = random.Random(seed)
        path = paths[-1] if seed % 3 else paths[0]
        lying = seed % 4 == 1
        path.write_bytes(refitted(files, whole[path], rng) if lying else mutated(whole[path], rng))
        tracemalloc.start()
        try:
            found = values(prefix)
        except GraphdockError as error:
            refused += 1
            assert str(tmp_path) in str(error), seed
        else:
            assert lying or found == expected, seed
        finally:
            assert tracemalloc.get_traced_memory()[1] < 8 << 20, seed
            tracemalloc.stop()
        path.write_bytes(whole[path])
    assert refused > len(seeds) / 2
