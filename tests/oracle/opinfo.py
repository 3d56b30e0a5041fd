"""Values and gradients of ``torch.testing``'s samples beside graphdock's.

    python -m tests.oracle.opinfo                 every op that both have; exit status 1 where one differs unexplained
    python -m tests.oracle.opinfo softmax matmul  these, with each sample that differs

Needs torch (``pip install torch expecttest``). Of each op the samples of float64, with gradients, of float32 and of int64 are
taken, at most ``--samples`` of each dtype. Agreement: 1e-9 relative for float64, 1e-4 for float32, the same numbers for integers.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.oracle.opinfo_table import EXPLAINED, TABLE, Unlike

TOLERANCES = {torch.float64: (1e-9, 1e-9), torch.float32: (1e-4, 1e-5), torch.int64: (0, 0)}


@dataclass
class Agreement:
    """What became of an op's samples."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare graphdock with PyTorch's OpInfo samples.")
    parser.add_argument("ops", nargs="*", help="names of OpInfo entries; default: all that both have")
    parser.add_argument("--samples", type=int, default=40, help="most samples per op and dtype (default: 40)")
    given = parser.parse_args(arguments)
    wanted = given.ops or list(TABLE)
    total, unexplained = Counter[str](), 0
    print(f"{'op':48} {'agree':>6} {'differ':>6} {'unlike':>6}")
    for name in wanted:
        found = compare(name, given.samples)
        total.update(found.counts)
        total["ops"] += found.counts["agree"] > 0
        total["ops with 20"] += found.counts["agree"] >= 20
        why = EXPLAINED.get(name, "") if found.faults else ""
        unexplained += bool(found.faults) and not why
        print(
            f"{name:48} {found.counts['agree']:6} {found.counts['differ']:6} {found.counts['unlike']:6}  {why}",
            flush=True,
        )
        for fault in found.faults[: None if given.ops else 1]:
            print(f"    {fault}")
    print(
        f"{total['ops']} ops with samples that agree, {total['ops with 20']} of them with 20 and more; "
        f"{total['agree']} samples agree, "
        f"{total['differ']} differ, {total['unlike']} ask for what TensorFlow has not; {unexplained} ops differ unexplained"
    )
    return 1 if unexplained else 0


def compare(name: str, limit: int) -> Agreement:
    """Every sample of an op."""
    found = Agreement()
    for info in (o for o in op_db if o.name == name):
        for dtype in TOLERANCES:
            if not info.supports_dtype(dtype, "cpu"):
                continue
            grads = dtype is torch.float64 and info.supports_autograd
            samples = _samples(info, dtype, grads)
            for number, sample in enumerate(itertools.islice(samples, limit)):
                verdict, text = _sample(name, info, sample, dtype, grads)
                found.counts[verdict] += 1
                if verdict == "differ":
                    found.faults.append(f"{info.formatted_name} {dtype} {number}: {text}")
    return found


def _samples(info: Any, dtype: torch.dtype, grads: bool) -> Iterator[Any]:
    torch.manual_seed(0)
    yield from info.sample_inputs("cpu", dtype, requires_grad=grads)
    if not grads:
        yield from info.reference_inputs("cpu", dtype, requires_grad=False)


def _sample(name: str, info: Any, sample: Any, dtype: torch.dtype, grads: bool) -> tuple[str, str]:
    with tf.Graph().as_default() as graph:
        leaves: list[tuple[torch.Tensor, Any]] = []

        def convert(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if value.is_conj() or value.is_neg() or value.layout is not torch.strided:
                    raise Unlike
                made = tf.constant(value.detach().numpy())
                leaves.append((value, made))
                return made
            if isinstance(value, torch.dtype):
                raise Unlike
            if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
                return [convert(v) for v in value]
            return value

        try:
            args = [convert(sample.input), *map(convert, sample.args)]
            kwargs = {k: convert(v) for k, v in sample.kwargs.items()}
            ours = TABLE[name](*args, **kwargs)
        except (Unlike, NotImplementedError):
            return "unlike", ""
        except tf.errors.DTypeError as error:
            if "does not take" in error.message:
                return "unlike", ""  # a dtype that the op has in TensorFlow neither
            return "differ", f"DTypeError: {error.message}"
        except (tf.errors.GraphdockError, TypeError, ValueError, AttributeError) as error:
            return "differ", f"{type(error).__name__}: {str(error).splitlines()[0]}"
        try:
            theirs = info.op(sample.input, *sample.args, **sample.kwargs)
        except RuntimeError:
            return "unlike", ""
        pairs = list(zip(_flat(ours), _flat(theirs), strict=False))
        try:
            return _compare(graph, pairs, leaves, dtype, grads)
        except tf.errors.GraphdockError as error:
            return "differ", f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def _compare(graph: Any, pairs: Sequence[Any], leaves: Any, dtype: torch.dtype, grads: bool) -> tuple[str, str]:
    rtol, atol = TOLERANCES[dtype]
    fetches = [ours for ours, _ in pairs]
    want = [theirs.detach().resolve_conj().resolve_neg().numpy() for _, theirs in pairs]
    labels = [f"output {i}" for i in range(len(pairs))]
    takes = [(t, ours) for t, ours in leaves if t.requires_grad] if grads else []
    smooth = [(o, t) for o, t in pairs if isinstance(t, torch.Tensor) and t.requires_grad]
    if takes and smooth:
        rng = np.random.default_rng(0)
        weights = [rng.normal(size=tuple(t.shape)) for _, t in smooth]
        loss = sum((t * torch.from_numpy(np.asarray(w))).sum() for (_, t), w in zip(smooth, weights, strict=True))
        if loss.is_complex():
            takes = []
        else:
            right = torch.autograd.grad(loss, [t for t, _ in takes], allow_unused=True)
            mine = tf.gradients(
                [o for o, _ in smooth], [o for _, o in takes], [tf.constant(np.asarray(w)) for w in weights]
            )
            for (_, leaf), r, g in zip(takes, right, mine, strict=True):
                if r is not None:
                    want.append(r.numpy())
                    fetches.append(tf.zeros_like(leaf) if g is None else tf.convert_to_tensor(g))
                    labels.append(f"gradient of input {len(labels)}")
    with tf.Session(graph=graph) as sess:
        got = sess.run(fetches)
    for label, a, b in zip(labels, got, want, strict=True):
        if np.shape(a) != np.shape(b):
            return "differ", f"{label}: shape {np.shape(a)}, PyTorch's {np.shape(b)}"
        near = np.allclose(a.astype(b.dtype) if b.dtype.kind in "biu" else a, b, rtol, atol, equal_nan=True)
        if not near:
            worst = (
                np.max(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)))
                if np.asarray(b).dtype.kind != "c"
                else "?"
            )
            return "differ", f"{label}: off by {worst}"
    return "agree", ""


if __name__ == "__main__":
    sys.exit(main())
