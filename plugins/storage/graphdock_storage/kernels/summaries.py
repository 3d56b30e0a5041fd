"""Kernels of summaries: their bytes, made in host memory whatever the device. The formats are :mod:`graphdock_storage.events`'s."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock import messages
from graphdock.contracts import Bound, BuildContext, KernelDef, PlanNode, errors

from graphdock_storage.events.audio import wav
from graphdock_storage.events.histogram import histogram
from graphdock_storage.events.images import pixels, png
from graphdock_storage.events.summaries import scalar_encoder, tags_of
from graphdock_storage.tensor_messages import tensor_proto

__all__ = ["KERNELS"]

#: Encoders that are kept; a program with more tags in one operation makes them from step to step.
_KEPT = 1000


def refused(node: PlanNode, message: str, **facts: Any) -> errors.InvalidArgumentError:
    """The error of values that an op can't take."""
    return errors.InvalidArgumentError(message, op=node.origin, site=node.site, **facts)


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _gives(ctx: BuildContext, compute: Callable[..., bytes]) -> Bound:
    """The kernel of a function that gives bytes."""

    def fresh(*args: Any) -> Any:
        out = np.empty((), object)
        out[()] = compute(*args)
        return out

    def planned(*args: Any) -> None:
        args[-1][()] = compute(*args[:-1])

    return Bound(fresh if ctx.fresh else planned)


def _scalar(ctx: BuildContext) -> Bound:
    encoders: dict[bytes, Callable[[Any], bytes]] = {}

    def encoder(tag: bytes) -> Callable[[Any], bytes]:
        if len(encoders) >= _KEPT:
            encoders.clear()
        return encoders.setdefault(tag, scalar_encoder(tag))

    def planned(tags: Any, values: Any, out: Any) -> None:
        tag = tags.item()
        out[()] = (encoders.get(tag) or encoder(tag))(values.item())

    def compute(tags: Any, values: Any) -> bytes:
        pairs = zip(tags.ravel().tolist(), values.ravel().tolist(), strict=True)
        return b"".join([(encoders.get(tag) or encoder(tag))(value) for tag, value in pairs])

    if ctx.inputs[1].shape == () and not ctx.fresh:  # one number per step is what is done most
        return Bound(planned)
    return _gives(ctx, compute)


def _histogram(ctx: BuildContext) -> Bound:
    def compute(tag: Any, values: Any) -> bytes:
        if values.dtype.kind not in "iu" and not np.isfinite(values).all():
            what = "Nan" if np.isnan(values).any() else "Infinity"
            raise refused(
                ctx.node,
                f"{what} in summary histogram for: {ctx.node.origin}",
                hint="tf.check_numerics finds where it comes from",
            )
        return _bytes(tag.item(), histo=histogram(values))

    return _gives(ctx, compute)


def _bytes(tag: bytes, **fields: Any) -> bytes:
    """A Summary with one value."""
    made: bytes = messages.Summary(value=[{"tag": decoded(tag), **fields}]).SerializeToString()
    return made


def _tags(tag: bytes, kind: bytes, most: int, count: int) -> list[bytes]:
    if most == 1:
        return [tag + b"/" + kind] * count
    return [b"%s/%s/%d" % (tag, kind, i) for i in range(count)]


def _image(ctx: BuildContext) -> Bound:
    most, bad_color = ctx.attr("max_images"), ctx.attr("bad_color")
    if not all(0 <= number < 256 for number in bad_color):
        raise refused(ctx.node, "bad_color has a number that is no uint8", got=str(list(bad_color)))

    def compute(tag: Any, tensor: Any) -> bytes:
        _, height, width, channels = tensor.shape
        if tensor.shape[0] and not tensor.size:
            raise refused(ctx.node, f"an image of {height} by {width} pixels is no picture")
        parts = []
        for name, image in zip(_tags(tag.item(), b"image", most, min(most, len(tensor))), tensor, strict=False):
            file = png(pixels(image, bad_color))
            sizes = {"height": height, "width": width, "colorspace": channels}
            parts.append(_bytes(name, image={**sizes, "encoded_image_string": file}))
        return b"".join(parts)

    return _gives(ctx, compute)


def _audio(ctx: BuildContext) -> Bound:
    most = ctx.attr("max_outputs")

    def compute(tag: Any, tensor: Any, sample_rate: Any) -> bytes:
        rate = float(sample_rate)
        if not 0 < rate < 2**31:
            raise refused(ctx.node, "sample_rate is wrong", expected="frames per second, above 0", got=f"{rate:g}")
        parts = []
        for name, samples in zip(_tags(tag.item(), b"audio", most, min(most, len(tensor))), tensor, strict=False):
            samples = samples[:, None] if samples.ndim == 1 else samples
            frames, channels = samples.shape
            if not channels:
                raise refused(ctx.node, "a sound without channels is no sound")
            file = wav(samples, round(rate))
            sizes = {"sample_rate": rate, "num_channels": channels, "length_frames": frames}
            parts.append(_bytes(name, audio={**sizes, "encoded_audio_string": file, "content_type": "audio/wav"}))
        return b"".join(parts)

    return _gives(ctx, compute)


def _tensor(ctx: BuildContext) -> Bound:
    dtype = ctx.inputs[1].dtype

    def compute(tag: Any, tensor: Any, metadata: Any) -> bytes:
        try:
            told = messages.from_bytes("SummaryMetadata", metadata.item(), "serialized_summary_metadata")
        except errors.DataLossError as error:
            raise refused(ctx.node, error.message) from error
        return _bytes(tag.item(), tensor=tensor_proto(tensor, dtype), metadata=told)

    return _gives(ctx, compute)


def _merge(ctx: BuildContext) -> Bound:
    def compute(*inputs: Any) -> bytes:
        parts: list[bytes] = []
        for each in inputs:
            parts += [each.item()] if not each.ndim else each.ravel().tolist()
        try:
            tags = [tag for part in parts for tag in tags_of(part) if tag]
        except errors.DataLossError as error:
            raise refused(ctx.node, f"one of the inputs is no Summary: {error.message}") from error
        if len(set(tags)) < len(tags):
            twice = decoded(next(tag for tag in tags if tags.count(tag) > 1))
            raise refused(ctx.node, f"Duplicate tag {twice} found in summary inputs")
        return b"".join(parts)

    return _gives(ctx, compute)


KERNELS = [
    KernelDef("ScalarSummary", "host", _scalar, host=("values",)),
    KernelDef("HistogramSummary", "host", _histogram, host=("values",)),
    KernelDef("ImageSummary", "host", _image, host=("tensor",)),
    KernelDef("AudioSummaryV2", "host", _audio, host=("tensor", "sample_rate")),
    KernelDef("TensorSummaryV2", "host", _tensor, host=("tensor",)),
    KernelDef("MergeSummary", "host", _merge, host=("inputs",)),
]
