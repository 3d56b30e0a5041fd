"""Frames, windows and short-time Fourier transforms.

Names, argument names and defaults are TensorFlow 1's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.typing import DTypeLike, TensorLike

from graphdock_std.grad_support import static_shape
from graphdock_std.signal.spectral import dct, irfft, rfft


def hann_window(
    window_length: TensorLike, periodic: bool = True, dtype: DTypeLike = "float32", name: str | None = None
) -> _ops.Tensor:
    """Hann's window, ``0.5 - 0.5 cos(2 pi k / n)``; ``[window_length]``. See :func:`hamming_window`."""
    return _cosine_window(name, "hann_window", window_length, periodic, dtype, 0.5, 0.5)


def hamming_window(
    window_length: TensorLike, periodic: bool = True, dtype: DTypeLike = "float32", name: str | None = None
) -> _ops.Tensor:
    """Hamming's window, ``0.54 - 0.46 cos(2 pi k / n)``; ``[window_length]``.

    Args:
      window_length: a positive integer.
      periodic: n is ``window_length`` where that is even, for use in a transform. Else, and for odd ones as in TensorFlow, it is
        one less, and the window is symmetric.
      dtype: a floating one.
    """
    return _cosine_window(name, "hamming_window", window_length, periodic, dtype, 0.54, 0.46)


def _cosine_window(
    name: str | None, usual: str, window_length: Any, periodic: bool, dtype: Any, a: float, b: float
) -> Any:
    wanted = _tf.as_dtype(dtype)
    if not wanted.is_floating:
        raise DTypeError(f"{usual}: a window is floating", expected="a floating dtype", got=wanted.name)
    with _ops.name_scope(name, usual):
        length = _ops.convert_to_tensor(window_length, "int32")
        even = 1 - _tf.floormod(length, 2)
        n = _ops.cast(length + int(bool(periodic)) * even - 1, wanted)
        along = _ops.cast(_tf.range(length), wanted)
        window = a - b * _tf.cos(2 * math.pi * along / _tf.maximum(n, 1))
        return _tf.select(_tf.equal(length, 1), _ops.cast(1.0, wanted), window)


def frame(
    signal: TensorLike,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> _ops.Tensor:
    """The windows of ``frame_length`` elements that begin every ``frame_step`` elements along an axis.

    Args:
      signal: of any dtype, ``[..., N, ...]``.
      frame_length, frame_step: positive integers, or integer scalars.
      pad_end: begin frames as long as there are elements, and fill up with ``pad_value``. Else only whole frames.
      axis: which; two axes take its place, the frames and their elements.

    Raises:
      ShapeError: the rank is unknown.
      InvalidArgumentError: a ``frame_step`` that is not positive, or a negative ``frame_length``.
    """
    for what, value, least in (("frame_length", frame_length, 0), ("frame_step", frame_step, 1)):
        if isinstance(value, int) and value < least:
            raise InvalidArgumentError(f"frame: {what} is {value}", expected=f"{least} or more")
    with _ops.name_scope(name, "frame"):
        x = _ops.convert_to_tensor(signal)
        shape = static_shape(x)
        if shape is None:
            raise ShapeError("frame needs a tensor of known rank", hint="use set_shape")
        at = axis % len(shape)
        size: Any = _ops.shape(x)[at] if shape[at] is None else shape[at]
        whole = all(isinstance(v, int) for v in (size, frame_length, frame_step))
        if pad_end:
            count = -(-size // frame_step) if whole else -_tf.floordiv(-_tensor(size), _tensor(frame_step))
            missing = (count - 1) * frame_step + frame_length - size
            missing = max(0, missing) if whole else _tf.maximum(0, missing)
            before, after = _ops.shape(x)[:at], _ops.shape(x)[at + 1 :]
            filled = _tf.fill(_tf.concat([before, [missing], after], 0), _ops.convert_to_tensor(pad_value, x.dtype))
            x = _tf.concat([x, filled], at)
        elif whole:
            count = max(0, 1 + (size - frame_length) // frame_step)
        else:
            step = _tensor(frame_step)
            count = _tf.maximum(0, 1 + _tf.floordiv(_tensor(size) - _tensor(frame_length), step))
        if whole:
            return _tf.gather(x, np.arange(count)[:, None] * frame_step + np.arange(frame_length), axis=at)
        return _tf.gather(x, _tf.range(count)[:, None] * frame_step + _tf.range(frame_length), axis=at)


def _tensor(value: Any) -> Any:
    return _ops.convert_to_tensor(value, "int32")


def overlap_and_add(signal: TensorLike, frame_step: Any, name: str | None = None) -> _ops.Tensor:
    """The sum of frames, each ``frame_step`` elements after the one before; the adjoint of :func:`frame`.

    Args:
      signal: numbers, ``[..., frames, frame_length]``.
      frame_step: a positive integer, or an integer scalar.

    Returns:
      ``[..., (frames - 1) * frame_step + frame_length]``.
    """
    with _ops.name_scope(name, "overlap_and_add"):
        x = _ops.convert_to_tensor(signal)
        shape = static_shape(x)
        if shape is None or len(shape) < 2:
            raise ShapeError("overlap_and_add needs frames of known rank", expected="rank 2 or more", got=str(x.shape))
        dims = _ops.shape(x)
        frames, length = (dims[i - 2] if d is None else d for i, d in enumerate(shape[-2:]))
        places = _tf.reshape(_tf.range(frames)[:, None] * frame_step + _tf.range(length), [-1])
        total = (frames - 1) * frame_step + length
        flat = _tf.transpose(_tf.reshape(x, _tf.stack([-1, frames * length])))
        sums = _tf.transpose(_tf.unsorted_segment_sum(flat, places, total))
        result = _tf.reshape(sums, _tf.concat([dims[:-2], [total]], 0))
        result.set_shape([*shape[:-2], total if isinstance(total, int) else None])
        return result


def stft(
    signals: TensorLike,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> _ops.Tensor:
    """Short-time Fourier transform: that of each windowed :func:`frame` (Allen, 1977).

    Args:
      signals: float32 or float64, ``[..., samples]``.
      frame_length, frame_step: integers, in samples.
      fft_length: length of each transform; default: the least power of 2 that holds a frame.
      window_fn: a function of a length and ``dtype=`` that gives a window; None for none.
      pad_end: as for :func:`frame`.

    Returns:
      ``[..., frames, fft_length // 2 + 1]``, complex.
    """
    with _ops.name_scope(name, "stft"):
        x = _ops.convert_to_tensor(signals)
        frames = frame(x, frame_length, frame_step, pad_end)
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=x.dtype)
        return rfft(frames, [_power_of_2(frame_length) if fft_length is None else fft_length])


def inverse_stft(
    stfts: TensorLike,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Any] | None = hann_window,
    name: str | None = None,
) -> _ops.Tensor:
    """The sum of the windowed frames of transforms; arguments as for :func:`stft`.

    With ``window_fn=inverse_stft_window_fn(frame_step)`` it gives back the samples that :func:`stft` was made of, but for the ends.
    """
    with _ops.name_scope(name, "inverse_stft"):
        x = _ops.convert_to_tensor(stfts)
        frames = irfft(x, [_power_of_2(frame_length) if fft_length is None else fft_length])[..., :frame_length]
        shape = static_shape(frames)
        if shape is not None and isinstance(frame_length, int) and shape[-1] is not None and shape[-1] < frame_length:
            frames = _tf.pad(frames, [[0, 0]] * (len(shape) - 1) + [[0, frame_length - shape[-1]]])
        if window_fn is not None:
            frames = frames * window_fn(frame_length, dtype=frames.dtype)
        return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Any] = hann_window, name: str | None = None
) -> Callable[..., Any]:
    """A window for :func:`inverse_stft` that makes up for ``forward_window_fn`` (Griffin and Lim, 1984).

    Args:
      frame_step: an integer, in samples.
      forward_window_fn: the window that :func:`stft` was given.
    """

    def inverse_window(frame_length: Any, dtype: Any) -> Any:
        with _ops.name_scope(name, "inverse_stft_window_fn"):
            forward = forward_window_fn(frame_length, dtype=dtype)
            overlaps = -(-frame_length // frame_step)
            squares = _tf.pad(_tf.square(forward), [[0, overlaps * frame_step - frame_length]])
            sums = _tf.reduce_sum(_tf.reshape(squares, [overlaps, frame_step]), 0, True)
            return forward / _tf.reshape(_tf.tile(sums, [overlaps, 1]), [overlaps * frame_step])[:frame_length]

    return inverse_window


def _power_of_2(length: Any) -> Any:
    """The least power of 2 that is not below ``length``."""
    if isinstance(length, (int, np.integer)):
        return 1 << max(int(length) - 1, 0).bit_length()
    exponent = _tf.ceil(_tf.log(_ops.cast(length, "float64")) / math.log(2.0) - 1e-9)
    return _ops.cast(_tf.pow(_tf.constant(2.0, "float64"), exponent), "int32")


#: Of the mel scale: Hz at which it turns from linear to logarithmic, and mels per unit of the logarithm.
_MEL_BREAK, _MEL_Q = 700.0, 1127.0


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: float = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = "float32",
    name: str | None = None,
) -> _ops.Tensor:
    """A matrix that turns a spectrogram over linear frequencies into one over the mel scale of HTK (Stevens and others, 1937).

    Args:
      num_mel_bins: bands, triangles over mels that overlap by half.
      num_spectrogram_bins: of the spectrogram: ``fft_length // 2 + 1``; the first one, of frequency 0, has no weight.
      sample_rate: samples per second.
      lower_edge_hertz, upper_edge_hertz: where the bands begin and end.
      dtype: a floating one.

    Returns:
      ``[num_spectrogram_bins, num_mel_bins]``.

    Raises:
      InvalidArgumentError: a number that is not positive, or edges out of order or beyond half of the sample rate.
    """
    wanted = _tf.as_dtype(dtype)
    if not wanted.is_floating:
        raise DTypeError("linear_to_mel_weight_matrix is floating", expected="a floating dtype", got=wanted.name)
    positive = {"num_mel_bins": num_mel_bins, "sample_rate": sample_rate, "num_spectrogram_bins": num_spectrogram_bins}
    for key, value in positive.items():
        if value <= 0:
            raise InvalidArgumentError(f"{key} must be positive", got=str(value))
    if not 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2:
        raise InvalidArgumentError(
            "the edges are out of order",
            expected=f"0 <= lower_edge_hertz < upper_edge_hertz <= {sample_rate / 2}",
            got=f"{lower_edge_hertz}, {upper_edge_hertz}",
        )

    def mel(hertz: Any) -> Any:
        return _MEL_Q * np.log1p(np.asarray(hertz, np.float64) / _MEL_BREAK)

    bins = mel(np.linspace(0.0, sample_rate / 2.0, num_spectrogram_bins)[1:])[:, None]
    edges = np.linspace(mel(lower_edge_hertz), mel(upper_edge_hertz), num_mel_bins + 2)
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0.0, np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle)))
    return _tf.constant(np.pad(weights, ((1, 0), (0, 0))).astype(wanted.np), name=name or "linear_to_mel_weight_matrix")


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Mel-frequency cepstral coefficients: the cosine transform of the logarithms of mel bands, scaled as HTK does.

    Args:
      log_mel_spectrograms: float32 or float64, ``[..., num_mel_bins]``.

    Raises:
      ShapeError: there are no bins.
    """
    with _ops.name_scope(name, "mfccs_from_log_mel_spectrograms"):
        x = _ops.convert_to_tensor(log_mel_spectrograms)
        shape = static_shape(x)
        if shape is not None and (not shape or shape[-1] == 0):
            raise ShapeError("mfccs_from_log_mel_spectrograms needs mel bins", got=str(x.shape))
        bins = _ops.shape(x)[-1] if shape is None or shape[-1] is None else shape[-1]
        return dct(x) * _tf.rsqrt(_ops.cast(bins, x.dtype) * 2.0)
