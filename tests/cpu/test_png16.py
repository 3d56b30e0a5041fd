"""PNG files of 16 bits with several channels: every filter, interlaced or not, and TensorFlow's answers."""

from __future__ import annotations

import struct
import zlib

import graphdock as tf
import numpy as np
import pytest
from graphdock_cpu.kernels import png16

pytest.importorskip("PIL")

_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def _row(row, before, kind):
    """A row of bytes as the differences that a filter of the format makes, byte by byte as the format's text says."""
    made = np.zeros_like(row)
    for x in range(row.shape[0]):
        for b in range(row.shape[1]):
            left, corner = (int(row[x - 1, b]), int(before[x - 1, b])) if x else (0, 0)
            above = int(before[x, b])
            p = left + above - corner
            paeth = min((left, above, corner), key=lambda v: abs(p - v))
            made[x, b] = (int(row[x, b]) - (0, left, above, (left + above) // 2, paeth)[kind]) % 256
    return made


def _file(pixels, kinds, interlaced):
    images = [pixels[a::c, b::d] for a, b, c, d in _PASSES] if interlaced else [pixels]
    data, number = b"", 0
    for image in images:
        if not image.size:
            continue
        rows = np.ascontiguousarray(image.astype(">u2")).view(np.uint8).reshape(*image.shape[:2], -1)
        before = np.zeros_like(rows[0])
        for row in rows:
            kind = kinds[number % len(kinds)]
            data, before, number = data + bytes([kind]) + _row(row, before, kind).tobytes(), row, number + 1
    height, width, count = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 16, {1: 0, 2: 4, 3: 2, 4: 6}[count], 0, 0, int(interlaced))
    parts = ((b"IHDR", head), (b"tEXt", b"a\0b"), (b"IDAT", zlib.compress(data)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts
    )


@pytest.mark.parametrize("seed", range(24))
def test_random_files_of_all_filters(seed):
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 2**16, (*rng.integers(1, 12, 2), rng.integers(2, 5))).astype(np.uint16)
    pixels //= (1, 200, 16384)[seed % 3]  # anything, neighbours that are near, and many ties between them
    file = _file(pixels, rng.integers(0, 5, 7).tolist(), seed % 4 == 0)
    np.testing.assert_array_equal(png16.read(file), pixels)
    with tf.Graph().as_default(), tf.Session() as sess:
        np.testing.assert_array_equal(sess.run(tf.image.decode_png(file, dtype=tf.uint16)), pixels)
        np.testing.assert_array_equal(sess.run(tf.image.decode_image(file)), pixels >> 8)
        again = tf.image.decode_png(tf.image.encode_png(pixels), dtype=tf.uint16)
        np.testing.assert_array_equal(sess.run(again), pixels)


#: Channels of a file, those asked for, dtype -> what TensorFlow makes of the first pixel below.
ANSWERS = {
    (2, 0, "uint16"): [24152, 35665],
    (2, 1, "uint16"): [24152],
    (2, 3, "uint16"): [24152, 24152, 24152],
    (2, 4, "uint8"): [94, 94, 94, 139],
    (3, 0, "uint8"): [210, 162, 218],
    (3, 1, "uint8"): [182],
    (3, 1, "uint16"): [46841],
    (3, 4, "uint16"): [53887, 41504, 55839, 65535],
    (4, 1, "uint16"): [49403],
    (4, 3, "uint16"): [59790, 51811, 9781],
    (4, 4, "uint8"): [233, 202, 38, 75],
}
PIXELS = {2: [24152, 35665], 3: [53887, 41504, 55839], 4: [59790, 51811, 9781, 19340]}


@pytest.mark.parametrize("case", ANSWERS, ids=str)
def test_channels_as_tensorflow_makes_them(case):
    count, asked, dtype = case
    with tf.Graph().as_default(), tf.Session() as sess:
        file = tf.image.encode_png(np.array([[PIXELS[count]]], np.uint16))
        found = sess.run(tf.image.decode_png(file, asked, tf.as_dtype(dtype)))
        assert found.dtype == dtype and found[0, 0].tolist() == ANSWERS[case]


def test_grey_of_8_bits_is_cut_as_tensorflow_cuts_it():
    colours = np.array([[[254, 79, 175], [192, 82, 99]]], np.uint8)  # whose exact luma is 142.3 and 116.8
    with tf.Graph().as_default(), tf.Session() as sess:
        file = tf.image.encode_png(colours)
        assert sess.run(tf.image.decode_png(file, 1)).ravel().tolist() == [142, 116]
        assert sess.run(tf.image.decode_png(file, 1, tf.uint16)).ravel().tolist() == [142 * 257, 116 * 257]


@pytest.mark.parametrize("damage", ["end", "sum", "filter", "short"])
def test_damaged_files_are_refused(damage):
    file = png16.write(np.arange(60, dtype=np.uint16).reshape(4, 5, 3), -1)
    if damage == "end":
        file = file[:60]
    elif damage == "sum":
        file = file[:50] + bytes([file[50] ^ 1]) + file[51:]
    elif damage == "filter":
        file = _file(np.zeros((2, 2, 3), np.uint16), [0], False).replace(
            zlib.compress(bytes(26)), zlib.compress(bytes([7]) + bytes(25))
        )
        at = file.index(b"IDAT")
        size = struct.unpack_from(">I", file, at - 4)[0]
        file = file[: at + 4 + size] + struct.pack(">I", zlib.crc32(file[at : at + 4 + size])) + file[at + 8 + size :]
    else:
        file = _file(np.zeros((2, 2, 3), np.uint16), [0], False)
        file = file.replace(struct.pack(">II", 2, 2), struct.pack(">II", 2, 9))
        file = file[:29] + struct.pack(">I", zlib.crc32(file[12:29])) + file[33:]
    with tf.Graph().as_default(), tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError):
        sess.run(tf.image.decode_png(file, dtype=tf.uint16))


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_ramps_are_packed_by_their_differences(channels):
    """Rows of pixels as they are take a hundred times as much, where each is filtered the best way a few thousand bytes."""
    ramp = np.stack(np.meshgrid(np.arange(256), np.arange(256), indexing="ij"), -1)
    pixels = np.concatenate([ramp, (ramp.sum(-1, keepdims=True)), ramp[..., :1]], -1)[..., :channels].astype(np.uint16)
    file = png16.write(pixels, 7)
    assert len(file) < 3000 and np.array_equal(png16.read(file), pixels)
    noise = np.random.default_rng(0).integers(0, 65536, (7, 5, channels), np.uint16)
    assert np.array_equal(png16.read(png16.write(noise, -1)), noise)
    assert np.array_equal(png16.read(png16.write(noise[:1, :1], -1)), noise[:1, :1])
