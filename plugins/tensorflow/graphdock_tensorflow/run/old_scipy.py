"""Functions on images that SciPy dropped (``scipy.misc.imread`` and kin), by Pillow."""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.errors import UnavailableError

__all__ = ["bytescale", "fromimage", "imread", "imresize", "imsave", "toimage"]


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise UnavailableError("images are read by Pillow, which is not installed", hint="pip install pillow") from None
    return Image


def bytescale(data: Any, cmin: float | None = None, cmax: float | None = None, high: int = 255, low: int = 0) -> Any:
    """Values from ``cmin`` to ``cmax`` (default: the least and the greatest) as bytes from ``low`` to ``high``; bytes stay."""
    data = np.asarray(data)
    if data.dtype == np.uint8:
        return data
    cmin = data.min() if cmin is None else cmin
    cmax = data.max() if cmax is None else cmax
    scale = (high - low) / ((cmax - cmin) or 1)
    return (((data - cmin) * scale + low).clip(low, high) + 0.5).astype(np.uint8)


def fromimage(im: Any, flatten: bool = False, mode: str | None = None) -> Any:
    """An array ``[height, width]`` or ``[height, width, channels]`` of an image of Pillow's."""
    if mode is not None and im.mode != mode:
        im = im.convert(mode)
    return np.array(im.convert("F") if flatten else im)


def toimage(arr: Any, high: int = 255, low: int = 0, cmin: float | None = None, cmax: float | None = None) -> Any:
    """An image of Pillow's of an array, scaled as :func:`bytescale` does; channels first become channels last."""
    data = np.asarray(arr)
    if data.ndim == 3 and data.shape[2] not in (3, 4) and data.shape[0] in (3, 4):
        data = data.transpose(1, 2, 0)
    return _pillow().fromarray(bytescale(data, cmin, cmax, high, low))


def imread(name: Any, flatten: bool = False, mode: str | None = None) -> Any:
    """The array of an image file."""
    with _pillow().open(name) as image:
        return fromimage(image, flatten, mode)


def imsave(name: Any, arr: Any, format: str | None = None) -> None:
    """Write an array as an image file; the format follows the name."""
    toimage(arr).save(name, format)


def imresize(arr: Any, size: Any, interp: str = "bilinear", mode: str | None = None) -> Any:
    """An image of another size: percent, a fraction, or ``(height, width)``."""
    image = toimage(arr)
    if np.ndim(size) == 1:
        wanted = (int(size[1]), int(size[0]))
    else:
        factor = size / 100 if isinstance(size, (int, np.integer)) else float(size)
        wanted = (int(image.width * factor), int(image.height * factor))
    ways = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "cubic": 3}
    return fromimage(image.resize(wanted, resample=ways[interp]))
