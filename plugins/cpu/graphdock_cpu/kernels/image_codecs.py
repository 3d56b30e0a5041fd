"""Kernels that read and write image files, by Pillow. It is an extra: nothing of it is imported before an op needs it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, errors

from graphdock_cpu.kernels import png16
from graphdock_cpu.kernels.shaped import Made, Shape, bind, like_first

__all__ = ["KERNELS"]

#: What may be read; a format is told by the contents.
_FORMATS = ("JPEG", "PNG", "GIF", "BMP")
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow(ctx: BuildContext) -> Any:
    """``PIL.Image``. Raises UnimplementedError where Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError as error:
        raise errors.UnimplementedError(
            f"{ctx.node.op} reads and writes images by Pillow, which is not installed",
            hint="pip install 'graphdock[images]'",
        ) from error
    return Image


def _open(ctx: BuildContext, image: Any, contents: Any) -> Any:
    """The file, opened. Raises InvalidArgumentError where it is of none of the formats."""
    data = contents.item()
    try:
        return image.open(io.BytesIO(data), formats=_FORMATS)
    except image.DecompressionBombError as error:
        raise _too_large(error) from error
    except (OSError, ValueError, SyntaxError) as error:
        start = data[:8]
        raise errors.InvalidArgumentError(
            "contents are no image",
            expected=f"a file of one of {', '.join(_FORMATS)}",
            got=f"{len(data)} bytes that begin with {start!r}",
        ) from error


def _too_large(error: Exception) -> errors.InvalidArgumentError:
    """A file's header claims more pixels than anybody means; they would be allocated before its data turns out to be too short."""
    return errors.InvalidArgumentError(
        f"contents claim too many pixels: {error}",
        hint="a program that trusts its files may raise PIL.Image.MAX_IMAGE_PIXELS",
    )


def _channels(file: Any, asked: int) -> int:
    """How many channels to give: those asked for, else those of the file."""
    if asked:
        return asked
    if file.format == "GIF":
        return 3
    if file.mode in ("L", "1", "I", "I;16", "I;16B"):
        return 1
    if file.mode == "LA":
        return 2
    return 4 if file.mode == "RGBA" or file.mode == "P" and "transparency" in file.info else 3


def _pixels(ctx: BuildContext, file: Any, asked: int, dtype: Any = np.uint8) -> Any:
    """One frame as ``[H,W,C]``. Raises InvalidArgumentError where the file ends too early."""
    count = _channels(file, asked)
    deep = file.mode.startswith("I") or any("16" in str(tile[3]) for tile in file.tile)
    grey = count == 1 and file.format == "PNG" and file.mode in ("RGB", "RGBA", "P")
    try:
        if deep and not file.mode.startswith("I"):
            found = png16.read(file.fp.getvalue())
            count = asked or found.shape[2]
            made = _as_channels(found, count)
        else:
            file.load()
            if deep:
                made = _as_channels(np.asarray(file).astype(np.uint16)[..., None], count)
            elif grey:
                made = _grey(np.asarray(file.convert("RGB")))
            else:
                made = np.asarray(file.convert(_MODES[count]))
    except (OSError, ValueError, SyntaxError) as error:
        raise errors.InvalidArgumentError(f"contents can't be read: {error}") from error
    if deep:
        made = made if dtype == np.uint16 else (made >> 8).astype(np.uint8)
    elif dtype == np.uint16:
        made = made.astype(np.uint16) * np.uint16(257)
    return np.ascontiguousarray(made.reshape(*made.shape[:2], count), dtype)


def _as_channels(pixels: Any, count: int) -> Any:
    """Pixels of 16 bits with as many channels, opaque where they did not say."""
    colours = pixels[..., : 3 if pixels.shape[2] > 2 else 1]
    if count < 3 and colours.shape[2] == 3:
        colours = _grey(colours)
    elif count > 2 and colours.shape[2] == 1:
        colours = np.repeat(colours, 3, 2)
    if count % 2:
        return colours
    opaque = np.full_like(pixels[..., :1], 2**16 - 1)
    return np.concatenate([colours, opaque if pixels.shape[2] % 2 else pixels[..., -1:]], 2)


def _grey(colours: Any) -> Any:
    """The luma of red, green and blue by libpng's integers; pixels of 16 bits are rounded, those of 8 bits cut."""
    half = 0 if colours.dtype == np.uint8 else 1 << 14
    return ((colours.astype(np.int64) @ np.array([[9797], [19234], [3737]]) + half) >> 15).astype(colours.dtype)


def _frames(ctx: BuildContext, file: Any) -> Any:
    made = []
    try:
        for n in range(getattr(file, "n_frames", 1)):
            file.seek(n)
            made.append(_pixels(ctx, file, 3))
    except (EOFError, OSError, SyntaxError) as error:
        raise errors.InvalidArgumentError(f"contents can't be read: {error}") from error
    return np.stack(made)


def _refuse(ctx: BuildContext, attr: str, value: Any) -> None:
    if ctx.attr(attr) != value:
        raise errors.UnimplementedError(f"{ctx.node.op} does not know {attr}={ctx.attr(attr)!r}")


def _decode_jpeg(ctx: BuildContext) -> Bound:
    image, asked, ratio = _pillow(ctx), ctx.attr("channels"), ctx.attr("ratio")
    _refuse(ctx, "try_recover_truncated", False)

    def compute(contents: Any, window: Any = None) -> Any:
        file = _open(ctx, image, contents)
        if file.format == "JPEG":
            file.draft({1: "L", 3: "RGB"}.get(asked, file.mode), tuple(max(n // ratio, 1) for n in file.size))
        made = _pixels(ctx, file, asked)
        if window is None:
            return made
        row, column, height, width = window.tolist()
        if (
            min(row, column) < 0
            or min(height, width) < 1
            or row + height > made.shape[0]
            or column + width > made.shape[1]
        ):
            raise errors.InvalidArgumentError(
                f"crop_window {window.tolist()} is not inside of an image of {list(made.shape)}"
            )
        return np.ascontiguousarray(made[row : row + height, column : column + width])

    return Bound(compute)


def _decode(ctx: BuildContext) -> Bound:
    image, asked, dtype = _pillow(ctx), ctx.attr("channels"), ctx.outputs[0].dtype.np
    return Bound(lambda contents: _pixels(ctx, _open(ctx, image, contents), asked, dtype))


def _decode_gif(ctx: BuildContext) -> Bound:
    image = _pillow(ctx)
    return Bound(lambda contents: _frames(ctx, _open(ctx, image, contents)))


def _decode_image(ctx: BuildContext) -> Bound:
    image, asked, dtype = _pillow(ctx), ctx.attr("channels"), ctx.outputs[0].dtype.np
    expand = ctx.attr("expand_animations")

    def compute(contents: Any) -> Any:
        file = _open(ctx, image, contents)
        if file.format != "GIF" or not expand:
            return _pixels(ctx, file, asked, dtype)
        if asked not in (0, 3):
            raise errors.InvalidArgumentError(f"frames of a GIF have 3 channels, not {asked}")
        made = _frames(ctx, file)
        return made if made.dtype == dtype else made.astype(dtype) * dtype.type(257)

    return Bound(compute)


#: Most pixels of a side of a JPEG that libjpeg writes.
_LONGEST = 65500


def _written(file: Any, form: str, **options: Any) -> Any:
    """A file's bytes as a scalar of strings. Raises InvalidArgumentError: the format has no image of that size."""
    if form == "JPEG" and max(file.size) > _LONGEST:
        raise errors.InvalidArgumentError(
            "an image is too large for JPEG", expected=f"at most {_LONGEST} pixels each way", got=f"{file.size}"
        )
    buffer = io.BytesIO()
    file.save(buffer, form, **options)
    made = np.empty((), object)
    made[()] = buffer.getvalue()
    return made


def _encode_jpeg(ctx: BuildContext) -> Bound:
    image, wanted = _pillow(ctx), {"grayscale": 1, "rgb": 3}.get(ctx.attr("format"))
    _refuse(ctx, "xmp_metadata", "")
    per_inch = 2.54 if ctx.attr("density_unit") == "cm" else 1.0
    options = {
        "quality": ctx.attr("quality"),
        "progressive": ctx.attr("progressive"),
        "optimize": ctx.attr("optimize_size"),
        "dpi": tuple(round(ctx.attr(a) * per_inch) for a in ("x_density", "y_density")),
    }
    subsampling = {"subsampling": 2 if ctx.attr("chroma_downsampling") else 0}

    def compute(pixels: Any) -> Any:
        count = pixels.shape[2]
        if wanted not in (None, count):
            raise errors.InvalidArgumentError(f"format {ctx.attr('format')!r} has {wanted} channels, and image {count}")
        file = image.fromarray(pixels[:, :, 0] if count == 1 else pixels)
        return _written(file, "JPEG", **options, **(subsampling if count == 3 else {}))

    return Bound(compute)


def _encode_variable(ctx: BuildContext) -> Bound:
    image = _pillow(ctx)

    def compute(pixels: Any, quality: Any) -> Any:
        if not 0 <= quality <= 100:
            raise errors.InvalidArgumentError(f"quality is {int(quality)}", expected="0 to 100")
        count = pixels.shape[2]
        options = {"subsampling": 2} if count == 3 else {}
        file = image.fromarray(pixels[:, :, 0] if count == 1 else pixels)
        return _written(file, "JPEG", quality=int(quality), dpi=(300, 300), **options)

    return Bound(compute)


def _encode_png(ctx: BuildContext) -> Bound:
    image, level = _pillow(ctx), ctx.attr("compression")
    options = {} if level < 0 else {"compress_level": level}

    def compute(pixels: Any) -> Any:
        count = pixels.shape[2]
        if pixels.dtype == np.uint16 and count > 1:
            made = np.empty((), object)
            made[()] = png16.write(pixels, level)
            return made
        return _written(image.fromarray(pixels[:, :, 0] if count == 1 else pixels), "PNG", **options)

    return Bound(compute)


def _is_jpeg(ctx: BuildContext, shapes: Sequence[Shape]) -> Made:
    def compute(contents: Any, out: Any) -> None:
        begun = [c.startswith(b"\xff\xd8\xff") for c in contents.reshape(-1)]
        out[...] = np.array(begun, np.bool_).reshape(out.shape)

    return compute, ()


_READ = {"host": ("contents",), "modes": ("fresh",)}

KERNELS = [
    KernelDef("DecodeJpeg", "cpu", _decode_jpeg, **_READ),
    KernelDef("DecodeAndCropJpeg", "cpu", _decode_jpeg, host=("contents", "crop_window"), modes=("fresh",)),
    KernelDef("DecodePng", "cpu", _decode, **_READ),
    KernelDef("DecodeBmp", "cpu", _decode, **_READ),
    KernelDef("DecodeGif", "cpu", _decode_gif, **_READ),
    KernelDef("DecodeImage", "cpu", _decode_image, **_READ),
    KernelDef("EncodeJpeg", "cpu", _encode_jpeg, **_READ),
    KernelDef("EncodeJpegVariableQuality", "cpu", _encode_variable, host=("quality", "contents"), modes=("fresh",)),
    KernelDef("EncodePng", "cpu", _encode_png, **_READ),
    KernelDef("IsJpeg", "cpu", bind(_is_jpeg, like_first), host=("contents",)),
]
