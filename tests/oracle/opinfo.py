"""Values and gradients of ``torch.testing``'s samples beside graphdock's.

    python -m tests.oracle.opinfo                 every op that both have; exit status 1 where one differs unexplained
    python -m tests.oracle.opinfo softmax matmul  these, with each sample that differs

Needs torch (``pip install torch expecttest``). Of each op the samples of float64 and complex128, with gradients, of float32, int64
and bool are taken, at most ``--samples`` of each dtype. Agreement: 1e-9 relative for float64 and complex128, 1e-4 for float32, the
same numbers for integers. An op of ``TOLERANCES_OF`` has its own, with the reason. A sample that TensorFlow's op cannot be asked
for is counted as unlike, by the word that says why.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.oracle.opinfo_explained import EXPLAINED, TOLERANCES_OF
from tests.oracle.opinfo_table import TABLE, Unlike

TOLERANCES = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.int64: (0, 0),
    torch.complex128: (1e-9, 1e-9),
    torch.bool: (0, 0),
}
#: Samples of more elements are left out.
LARGEST = 10_000
#: PyTorch draws no references of these with gradients.
WITHOUT_REFERENCES = {"where"}
WITH_GRADIENTS = (torch.float64, torch.complex128)
#: What graphdock raises for a graph that it refuses; anything else of it is a fault too, but of the script or of the host.
REFUSALS = (tf.errors.GraphdockError, TypeError, ValueError, AttributeError, IndexError, KeyError)


@dataclass
class Agreement:
    """What became of an op's samples."""

    agree: int = 0
    unlike: Counter[str] = field(default_factory=Counter)
    #: What differs: the dtype, the sample's number, what is compared, by how much.
    faults: list[str] = field(default_factory=list)

    @property
    def compared(self) -> int:
        return self.agree + len(self.faults)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare graphdock with PyTorch's OpInfo samples.")
    parser.add_argument("ops", nargs="*", help="names of OpInfo entries; default: all that both have")
    parser.add_argument("--samples", type=int, default=40, help="most samples per op and dtype (default: 40)")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", module="torch")
    found: dict[str, Agreement] = {}
    print(f"PyTorch {torch.__version__}, NumPy {np.__version__}; at most {given.samples} samples per op and dtype")
    print(f"{'op':46} {'compared':>8} {'agree':>6} {'%':>6}  unlike, and why")
    for name in given.ops or TABLE:
        found[name] = compare(name, given.samples)
        print("\n".join(lines(name, found[name], None if given.ops else 1)), flush=True)
    print(summary(found))
    return 1 if any(unexplained(name, of) for name, of in found.items()) else 0


def lines(name: str, found: Agreement, most: int | None) -> list[str]:
    """An op's line of the table; below, why some of its samples differ, and at most ``most`` that nothing explains."""
    share = f"{100 * found.agree / found.compared:.1f}" if found.compared else "-"
    unlike = ", ".join(f"{count} {why}" for why, count in found.unlike.most_common())
    result = [f"{name:46} {found.compared:8} {found.agree:6} {share:>6}  {unlike}".rstrip()]
    left = unexplained(name, found)
    for pattern, why in EXPLAINED.get(name, ()):
        count = sum(bool(re.search(pattern, fault)) for fault in found.faults)
        result += [f"    {count} explained: {why}"] if count else []
    result += [f"    {len(left)} unexplained"] if left else []
    return result + [f"        {fault}" for fault in left[:most]]


def unexplained(name: str, found: Agreement) -> list[str]:
    """The faults that no pattern of ``EXPLAINED`` finds."""
    patterns = [pattern for pattern, _ in EXPLAINED.get(name, ())]
    return [fault for fault in found.faults if not any(re.search(p, fault) for p in patterns)]


def summary(found: dict[str, Agreement]) -> str:
    compared = {name: of for name, of in found.items() if of.compared}
    left = [name for name, of in compared.items() if unexplained(name, of)]
    return (
        f"{len(compared)} ops compared, {sum(of.compared >= 20 for of in compared.values())} of them in 20 samples and more; "
        f"{sum(of.compared for of in compared.values())} samples compared, "
        f"{sum(of.agree for of in compared.values())} agree; "
        f"{sum(not of.faults for of in compared.values())} ops at 100 %, "
        f"{sum(bool(of.faults) for of in compared.values()) - len(left)} explained, {len(left)} unexplained"
    )


def compare(name: str, limit: int) -> Agreement:
    """Every sample of an op."""
    found = Agreement()
    for info in (o for o in op_db if o.name == name):
        for dtype in TOLERANCES:
            if not info.supports_dtype(dtype, "cpu"):
                continue
            grads = dtype in WITH_GRADIENTS and info.supports_autograd
            for number, sample in enumerate(itertools.islice(_samples(info, dtype, grads), limit)):
                verdict, text = _sample(name, info, sample, dtype, grads)
                if verdict == "agree":
                    found.agree += 1
                elif verdict == "unlike":
                    found.unlike[text] += 1
                else:
                    found.faults.append(f"{info.formatted_name} {str(dtype)[6:]} {number}: {text}")
    return found


def _samples(info: Any, dtype: torch.dtype, grads: bool) -> Iterator[Any]:
    """The samples of tests of operators and gradients, then those of tests against references."""
    torch.manual_seed(0)
    np.random.seed(0)
    drawn = [info.sample_inputs("cpu", dtype, requires_grad=grads)]
    if info.reference_inputs_func is not None and info.name not in WITHOUT_REFERENCES:
        drawn.append(info.reference_inputs("cpu", dtype, requires_grad=grads))
    return (sample for sample in itertools.chain(*drawn) if _elements(sample.input) <= LARGEST)


def _elements(value: Any) -> int:
    return value.numel() if isinstance(value, torch.Tensor) else 0


def _sample(name: str, info: Any, sample: Any, dtype: torch.dtype, grads: bool) -> tuple[str, str]:
    with tf.Graph().as_default() as graph:
        leaves: list[tuple[torch.Tensor, Any]] = []

        def convert(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                if value.layout is not torch.strided:
                    raise Unlike("layout")
                made = tf.constant(_array(value), tf.as_dtype(str(value.dtype)[6:]))
                leaves.append((value, made))
                return made
            if isinstance(value, torch.dtype):
                return tf.as_dtype(str(value)[6:])
            if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
                return [convert(v) for v in value]
            return value

        try:
            args = [convert(sample.input), *map(convert, sample.args)]
            kwargs = {k: convert(v) for k, v in sample.kwargs.items()}
            ours = TABLE[name](*args, **kwargs)
        except Unlike as error:
            return "unlike", str(error)
        except tf.errors.DTypeError as error:
            if "does not take" in error.message:
                return "unlike", "dtype"  # one that the op has in TensorFlow neither
            return "differ", f"DTypeError: {error.message}"
        except REFUSALS as error:
            return "differ", f"{type(error).__name__}: {_line(error)}"
        try:
            with torch.enable_grad():  # samples may be drawn where it is off
                theirs = info.op(sample.input, *sample.args, **sample.kwargs)
        except RuntimeError:
            return "unlike", "refused"  # by PyTorch
        tolerance = TOLERANCES_OF.get(name, {}).get(dtype) or TOLERANCES[dtype]
        try:
            with torch.enable_grad():
                return _compare(graph, _flat(ours), _flat(theirs), leaves, tolerance, grads)
        except REFUSALS as error:
            return "differ", f"{type(error).__name__}: {_line(error)}"


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def _compare(
    graph: Any, ours: Sequence[Any], theirs: Sequence[Any], leaves: Any, tolerance: tuple[float, float], grads: bool
) -> tuple[str, str]:
    if len(ours) != len(theirs):
        return "differ", f"{len(ours)} outputs, PyTorch's {len(theirs)}"
    pairs = [(o, t) for o, t in zip(ours, theirs, strict=True) if o is not None]
    fetches = [o for o, _ in pairs]
    want = [_array(t) for _, t in pairs]
    labels = [f"output {i}" for i in range(len(pairs))]
    takes = [(number, t, o) for number, (t, o) in enumerate(leaves) if t.requires_grad] if grads else []
    smooth = [(o, t) for o, t in pairs if isinstance(t, torch.Tensor) and t.requires_grad]
    if takes and smooth:
        rng = np.random.default_rng(0)
        weights = [_weights(rng, t) for _, t in smooth]
        outputs = [t if t.grad_fn is not None else t * 1 for _, t in smooth]  # an input itself has no function
        try:
            right = torch.autograd.grad(
                outputs,
                [t for _, t, _ in takes],
                [torch.from_numpy(w).to(t.dtype) for w, t in zip(weights, outputs, strict=True)],
                allow_unused=True,
            )
        except RuntimeError:
            return "unlike", "refused"
        mine = tf.gradients(
            [o for o, _ in smooth],
            [o for _, _, o in takes],
            [tf.cast(w, o.dtype) for w, (o, _) in zip(weights, smooth, strict=True)],
        )
        for (number, _, leaf), r, g in zip(takes, right, mine, strict=True):
            if r is not None:
                want.append(_array(r))
                fetches.append(tf.zeros_like(leaf) if g is None else tf.convert_to_tensor(g))
                labels.append(f"gradient of input {number}")
    with tf.Session(graph=graph) as sess:
        got = sess.run(fetches)
    for label, a, b in zip(labels, got, want, strict=True):
        text = _difference(np.asarray(a), b, *tolerance)
        if text:
            return "differ", f"{label}: {text}"
    return "agree", ""


def _weights(rng: np.random.Generator, of: torch.Tensor) -> np.ndarray:
    real = np.asarray(rng.normal(size=tuple(of.shape)))
    return np.asarray(real + 1j * rng.normal(size=real.shape)) if of.is_complex() else real


def _array(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        return (value.float() if value.dtype is torch.bfloat16 else value).numpy(force=True)
    return np.asarray(value)


def _difference(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> str:
    """What differs between graphdock's and PyTorch's values; empty where nothing does."""
    if a.shape != b.shape:
        return f"shape {a.shape}, PyTorch's {b.shape}"
    if b.dtype.kind in "biu" and a.dtype.kind in "biu":
        return "" if np.array_equal(a.astype(b.dtype), b) else f"{int(np.sum(a.astype(b.dtype) != b))} elements differ"
    if a.dtype.name == "bfloat16":
        a = a.astype(np.float32)
    if b.dtype.kind in "fc" and not rtol:
        rtol, atol = TOLERANCES[torch.float64]
    if b.dtype.name in ("float32", "complex64"):  # also of integers, of which TensorFlow makes float64
        rtol, atol = max((rtol, atol), TOLERANCES[torch.float32])
    if np.allclose(a, b, rtol, atol, equal_nan=True):
        return ""
    near = np.isclose(a, b, rtol, atol, equal_nan=True)
    at = tuple(int(i) for i in np.argwhere(~near)[0]) if near.ndim else ()
    return f"{int(np.sum(~near))} of {near.size} elements, at {at} {a[at]!s}, PyTorch's {b[at]!s}"


if __name__ == "__main__":
    sys.exit(main())
