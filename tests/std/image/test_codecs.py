"""Image files there and back, against Pillow and against files made by hand; and what is said where Pillow is missing."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from PIL import Image

from tests.std.image.support import run

Y, X = np.mgrid[0:24, 0:30]
SMOOTH = np.stack([X * 8, Y * 10, (X + Y) * 4], -1).astype(np.uint8)
NOISE = np.random.default_rng(0).integers(0, 255, (5, 6, 4)).astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """A PNG file, written by hand."""
    height, width, channels = pixels.shape
    big = pixels.astype(pixels.dtype.newbyteorder(">"))
    rows = b"".join(b"\0" + row.tobytes() for row in big)
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def written(image: Any, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def decode(function: Any, data: bytes, *args: Any, **options: Any) -> Any:
    return run(lambda c: function(c, *args, **options), np.array(data, object))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_is_read_and_written_without_loss(channels: int) -> None:
    pixels = np.ascontiguousarray(NOISE[..., :channels])
    np.testing.assert_array_equal(decode(tf.image.decode_png, png(pixels)), pixels)
    file = run(tf.image.encode_png, pixels)
    np.testing.assert_array_equal(decode(tf.image.decode_image, file), pixels)


def test_channels_are_made_as_asked() -> None:
    data = png(NOISE[..., :3])
    assert decode(tf.image.decode_png, data, channels=1).shape == (5, 6, 1)
    four = decode(tf.image.decode_png, data, channels=4)
    np.testing.assert_array_equal(four[..., :3], NOISE[..., :3])
    assert (four[..., 3] == 255).all()
    grey = decode(tf.image.decode_png, png(NOISE[..., :1]), channels=3)
    np.testing.assert_array_equal(grey, np.repeat(NOISE[..., :1], 3, -1))


def test_sixteen_bits() -> None:
    deep = (NOISE[..., :1].astype(np.uint16) * 250 + 7).astype(np.uint16)
    np.testing.assert_array_equal(decode(tf.image.decode_png, png(deep), dtype=tf.uint16), deep)
    np.testing.assert_array_equal(decode(tf.image.decode_png, png(deep)), deep >> 8)
    np.testing.assert_array_equal(decode(tf.image.decode_png, png(NOISE), dtype=tf.uint16), NOISE * np.uint16(257))
    wide = decode(tf.image.decode_png, png(deep), channels=4, dtype=tf.uint16)
    assert (wide[..., :3] == deep).all() and (wide[..., 3] == 65535).all()
    np.testing.assert_array_equal(decode(tf.image.decode_png, run(tf.image.encode_png, deep), dtype=tf.uint16), deep)
    colour = np.repeat(deep, 3, -1)
    np.testing.assert_array_equal(decode(tf.image.decode_png, png(colour), dtype=tf.uint16), colour)


def test_jpeg_there_and_back_is_near() -> None:
    file = run(lambda x: tf.image.encode_jpeg(x, quality=95, chroma_downsampling=False), SMOOTH)
    assert file[:3] == b"\xff\xd8\xff"
    got = decode(tf.image.decode_jpeg, file)
    assert got.dtype == np.uint8 and np.abs(got.astype(int) - SMOOTH).max() < 16
    low = run(lambda x: tf.image.encode_jpeg(x, quality=10), SMOOTH)
    assert len(low) < len(file)
    assert Image.open(io.BytesIO(run(lambda x: tf.image.encode_jpeg(x, progressive=True), SMOOTH))).info["progressive"]
    grey = decode(tf.image.decode_jpeg, file, channels=1)
    assert grey.shape == (24, 30, 1)
    np.testing.assert_array_equal(decode(tf.image.decode_image, file), got)


def test_jpeg_may_be_read_smaller_or_in_part() -> None:
    data = written(Image.fromarray(SMOOTH), "JPEG", quality=95)
    whole = decode(tf.image.decode_jpeg, data)
    assert [decode(tf.image.decode_jpeg, data, ratio=r).shape for r in (2, 4, 8)] == [(12, 15, 3), (6, 8, 3), (3, 4, 3)]
    np.testing.assert_array_equal(decode(tf.image.decode_and_crop_jpeg, data, [2, 3, 10, 12]), whole[2:12, 3:15])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not inside"):
        decode(tf.image.decode_and_crop_jpeg, data, [20, 3, 10, 12])


def test_gif_has_frames() -> None:
    frames = [Image.fromarray(np.roll(SMOOTH, 5 * k, 1)).quantize(32) for k in range(3)]
    data = written(frames[0], "GIF", save_all=True, append_images=frames[1:])
    got = decode(tf.image.decode_gif, data)
    assert got.shape == (3, 24, 30, 3)
    np.testing.assert_array_equal(got[2], np.asarray(frames[2].convert("RGB")))
    np.testing.assert_array_equal(decode(tf.image.decode_image, data), got)
    np.testing.assert_array_equal(decode(tf.image.decode_image, data, expand_animations=False), got[0])


def test_decode_image_converts() -> None:
    data = written(Image.fromarray(SMOOTH), "BMP")
    np.testing.assert_array_equal(decode(tf.image.decode_bmp, data), SMOOTH)
    got = decode(tf.image.decode_image, data, dtype=tf.float32)
    np.testing.assert_allclose(got, SMOOTH / np.float32(255), rtol=1e-6)
    with pytest.raises(TypeError, match="uint8, uint16 or float32"):
        tf.image.decode_image(b"", dtype=tf.int8)


def test_static_shapes_and_is_jpeg() -> None:
    contents = tf.placeholder(tf.string, [])
    assert tf.image.decode_png(contents, channels=3).shape.as_list() == [None, None, 3]
    assert tf.image.decode_jpeg(contents).shape.as_list() == [None, None, None]
    assert tf.image.decode_gif(contents).shape.as_list() == [None, None, None, 3]
    assert tf.image.decode_image(contents).shape.dims is None
    assert tf.image.decode_image(contents, expand_animations=False).shape.ndims == 3
    jpeg = written(Image.fromarray(SMOOTH), "JPEG")
    assert decode(tf.image.is_jpeg, jpeg) and not decode(tf.image.is_jpeg, png(NOISE))


def test_quality_may_be_adjusted() -> None:
    worse = run(lambda x: tf.image.adjust_jpeg_quality(x, 20), SMOOTH)
    assert worse.shape == SMOOTH.shape and 0 < np.abs(worse.astype(int) - SMOOTH).max() < 80
    floats = run(lambda x: tf.image.adjust_jpeg_quality(x, 20), SMOOTH / np.float32(255))
    assert floats.dtype == np.float32 and np.abs(floats - worse / 255).max() < 0.05
    with tf.Graph().as_default(), tf.Session() as session:
        drawn = tf.image.random_jpeg_quality(tf.constant(SMOOTH), 5, 95, seed=1)
        assert drawn.shape.as_list() == [24, 30, 3]
        assert len({session.run(drawn).tobytes() for _ in range(5)}) > 1
    with pytest.raises(ValueError, match="no range"):
        tf.image.random_jpeg_quality(SMOOTH, 50, 20)


@pytest.mark.parametrize("data", [b"", b"no image", png(NOISE)[:40]])
def test_what_is_no_image_is_refused(data: bytes) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="no image|can't be read"):
        decode(tf.image.decode_png, data)


def test_without_pillow_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install 'graphdock\[images\]'"):
        decode(tf.image.decode_png, png(NOISE))


@pytest.mark.slow
def test_pillow_is_not_imported_before_it_is_needed() -> None:
    program = (
        "import sys, graphdock as tf; x = tf.image.decode_png(tf.constant(b'')); "
        "tf.Session().run(tf.image.rot90(tf.zeros([2, 2, 1]))); sys.exit('PIL' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def _claims(width: int, height: int) -> bytes:
    """A PNG of some bytes whose header claims so many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "decode", [tf.image.decode_png, tf.image.decode_jpeg, tf.image.decode_gif, tf.image.decode_image]
)
def test_a_header_that_claims_too_many_pixels_is_refused_before_they_are_allocated(decode: Any) -> None:
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="claim too many pixels"):
        session.run(decode(_claims(100_000, 100_000)))


def test_a_side_that_jpeg_does_not_have_is_refused() -> None:
    wide = np.zeros((1, 65_501, 3), np.uint8)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="too large for JPEG"):
        session.run(tf.image.encode_jpeg(wide))


def test_a_png_of_16_bits_keeps_them_as_floats():
    """TensorFlow: 900 of 65535, not 3 of 255; pixels of 8 bits are the same number of 255."""
    deep = np.array([[[3, 900, 65535], [60000, 256, 0]]], np.uint16)
    found = decode(tf.image.decode_image, run(tf.image.encode_png, deep), dtype=tf.float32)
    np.testing.assert_allclose(found, deep / 65535, rtol=1e-6)
    found = decode(tf.image.decode_image, run(tf.image.encode_png, NOISE), dtype=tf.float32)
    np.testing.assert_allclose(found, NOISE / 255, rtol=1e-6)
