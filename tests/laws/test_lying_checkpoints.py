"""Checkpoints whose checksums fit and whose indices lie: they are refused, or what they hold is read; nothing else ever is."""

from __future__ import annotations

import functools
import json
import zlib
from pathlib import Path

import graphdock as tf
import lies
import numpy as np
import pytest
from graphdock.errors import DataLossError, GraphdockError
from graphdock_storage.checkpoint import open_checkpoint
from graphdock_storage.checkpoint.crc32c import crc32c
from graphdock_tensorflow.checkpoints.table import MAGIC, Table
from graphdock_tensorflow.plugin import register_checkpoint_formats

open_checkpoint = functools.partial(open_checkpoint, others=register_checkpoint_formats)

pytest.importorskip("google.protobuf")

VALUES = np.arange(1.0, 7.0, dtype=np.float32)
#: Parts of a vector of six elements that overlap, and elsewhere leave a hole; others are there twice or beyond the vector.
OVERLAPS = {
    "overlap": [(0, 2), (1, 2), (4, 2)],
    "one in another": [(0, 4), (1, 2)],
    "twice": [(0, 3), (0, 3)],
    "three": [(0, 3), (2, 2), (4, 1)],
}


@pytest.fixture
def files(tensorflow_files):
    return tensorflow_files


@pytest.fixture
def fast(files, monkeypatch):
    """The writer of tests sums bit by bit; here it is not what is tested."""
    monkeypatch.setattr(files, "crc32c", crc32c)


def write_own(prefix, tensors):
    """A checkpoint of graphdock's own format; ``tensors`` as of ``tensorflow_files.write_v2``."""
    data, table = bytearray(), {}
    suffix = ".data-00000-of-00001.0123abcd.safetensors"
    for name, value in tensors.items():
        shape, parts = value if isinstance(value, tuple) else (value.shape, [([None] * value.ndim, value)])
        listed = []
        for extents, array in parts:
            raw = array.tobytes()
            spelled = ":".join("-" if e is None else f"{e[0]},{e[1]}" for e in extents)
            listed.append(
                {"slice": spelled, "file": 0, "offset": len(data), "bytes": len(raw), "crc32": zlib.crc32(raw)}
            )
            data += raw
        table[name] = {"dtype": parts[0][1].dtype.name, "shape": list(shape), "parts": listed}
    write_own_index(prefix, {"files": [{"suffix": suffix, "bytes": len(data)}], "tensors": table})
    Path(prefix + suffix).write_bytes(data)


def write_own_index(prefix, table):
    body = json.dumps(table).encode() + b"\n"
    head = {"format": "graphdock checkpoint", "schema": 1, "bytes": len(body), "crc32": zlib.crc32(body)}
    Path(prefix + ".index").write_bytes(json.dumps(head).encode() + b"\n" + body)


@pytest.mark.parametrize("parts", OVERLAPS.values(), ids=OVERLAPS)
@pytest.mark.parametrize("form", ["own", "v1", "v2"])
def test_parts_that_overlap_restore_no_memory_of_the_process(tmp_path, files, monkeypatch, form, parts):
    prefix = str(tmp_path / "m")
    write = {"own": write_own, "v1": files.write_v1, "v2": files.write_v2}[form]
    write(prefix, {"w": ((6,), [([(at, n)], VALUES[at : at + n]) for at, n in parts]), "b": VALUES})
    variable = tf.get_variable("w", [6], tf.float32)
    with lies.canaries(monkeypatch), tf.Session() as sess, pytest.raises(GraphdockError, match="'w'|index"):
        tf.train.Saver([variable]).restore(sess, prefix)
    with lies.canaries(monkeypatch), pytest.raises(GraphdockError, match="'w'|index"):
        tf.train.load_checkpoint(prefix).get_tensor("w")


@pytest.mark.parametrize("form", ["own", "v1", "v2"])
def test_parts_that_tile_a_tensor_are_read(tmp_path, files, form):
    prefix = str(tmp_path / "m")
    write = {"own": write_own, "v1": files.write_v1, "v2": files.write_v2}[form]
    whole = np.arange(36, dtype=np.float32).reshape(6, 6)
    boxes = [((0, 2), (0, 4)), ((2, 4), (0, 2)), ((4, 2), (2, 4)), ((0, 4), (4, 2)), ((2, 2), (2, 2))]  # a whirl
    cut = [([r, c], np.ascontiguousarray(whole[r[0] : sum(r), c[0] : sum(c)])) for r, c in boxes]
    write(prefix, {"w": ((6, 6), cut)})
    with open_checkpoint(prefix) as found:
        assert found.read("w").tolist() == whole.tolist()


def test_a_byte_that_is_no_bool_is_refused(tmp_path, files):
    for form, write in (("own", write_own), ("v2", files.write_v2), ("v1", files.write_v1)):
        prefix = str(tmp_path / form)
        more = {"content": True} if form == "v1" else {}
        write(prefix, {"w": np.array([0, 1, 2], np.uint8).view(bool)}, **more)
        with open_checkpoint(prefix) as found, pytest.raises(DataLossError, match="neither true nor false"):
            found.read("w")


# -- time and memory are linear in the size of the files


def one_block_many_times(files, prefix, n):
    """The index block names a block of n entries n times."""
    keys = [b"", *(b"%08d" % i for i in range(n))]
    entry = files.number(1, 1) + files.text(2, files.shape_message((0,)))
    content = files.stored(files.block([(k, entry if k else files.number(1, 1)) for k in keys]), False)
    handle = files.varint(0) + files.varint(len(content) - 5)
    index = files.stored(files.block([(b"%08d" % i, handle) for i in range(n)], 1), False)
    footer = handle + files.varint(len(content)) + files.varint(len(index) - 5)
    return content + index + footer.ljust(40, b"\0") + MAGIC


def one_key_in_many(files, prefix, n):
    """Every entry of a block has the key of the one before it, of n bytes, with a byte more."""
    out = files.varint(0) + files.varint(0) + files.varint(2) + files.number(1, 1)
    out += files.varint(0) + files.varint(n) + files.varint(0) + b"k" * n
    for i in range(n):
        out += files.varint(n + i) + files.varint(1) + files.varint(0) + b"k"
    content = files.stored(out + b"\0\0\0\0\1\0\0\0", False)
    handle = files.varint(0) + files.varint(len(content) - 5)
    index = files.stored(files.block([(b"z", handle)]), False)
    footer = handle + files.varint(len(content)) + files.varint(len(index) - 5)
    return content + index + footer.ljust(40, b"\0") + MAGIC


def one_slice_many_times(files, prefix, n):
    """An entry with a name of n bytes has a slice n times, which has no elements."""
    slices = files.text(7, files.slice_message([(0, 0)])) * n
    kind = files.number(1, 1) + files.text(2, files.shape_message((3,)))
    Path(prefix + ".data-00000-of-00001").touch()
    return files.table({b"": kind, b"w" * n: kind + slices, files.slice_key("w" * n, [(0, 0)]): kind})


def one_part_for_many(files, prefix, n):
    """The n tensors of an index are the same n bytes of the data file."""
    entry = files.number(1, 4) + files.text(2, files.shape_message((n,))) + files.number(5, n)
    entry += b"\x35" + files.masked(files.crc32c(bytes(n))).to_bytes(4, "little")
    Path(prefix + ".data-00000-of-00001").write_bytes(bytes(n))
    return files.table({b"": files.number(1, 1)} | {b"w%06d" % i: entry for i in range(n)})


def own_parts(files, prefix, n):
    """A tensor of graphdock's own format in n parts, and n tensors of one: no lie, but long."""
    parts = [([(i, 1)], VALUES[:1]) for i in range(n)]
    write_own(prefix, {"w": ((n,), parts)} | {f"w{i}": VALUES[:1] for i in range(n)})
    return Path(prefix + ".index").read_bytes()


def one_block_and_another(files, prefix, n):
    """A tensor of format V1 has n slices, which it names in an order that goes from one block to the other and back."""
    order = [i // 2 + (i % 2) * (n // 2) for i in range(n)]
    files.write_v1(prefix, {"w": ((n,), [([(i, 1)], VALUES[:1]) for i in order])}, packed=False)
    with open(prefix, "rb") as file:
        entries = dict(Table(file.fileno(), prefix))
    return files.table(entries, per_block=n // 2 + 1)


FAMILIES = [
    one_block_many_times,
    one_key_in_many,
    one_slice_many_times,
    one_part_for_many,
    one_block_and_another,
    own_parts,
]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.sampled(2)
def test_reading_takes_steps_and_bytes_in_proportion_to_the_files(tmp_path, files, fast, monkeypatch, family):
    costs = []
    for n in (64, 512):
        prefix = str(tmp_path / f"{n}")
        text = family(files, prefix, n)
        Path(prefix if family is one_block_and_another else prefix + ".index").write_bytes(text)
        size = sum(p.stat().st_size for p in tmp_path.glob(f"{n}*"))

        def read(prefix=prefix):
            with open_checkpoint(prefix) as found:
                for name in found.tensors:
                    found.read(name)

        lies.refused(read)  # what is made once
        costs.append([cost / size for cost in (lies.steps(read), lies.held(read), lies.read_bytes(monkeypatch, read))])
    few, many = costs
    assert all(m <= 2 * f + 1 for f, m in zip(few, many, strict=True)), (few, many)
