"""What a plan with patterns gives is what it gives without: of samples of each pattern, and of what looks like them."""

from __future__ import annotations

import dataclasses
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.errors import GraphdockError, PluginError
from graphdock.ops import apply_op
from graphdock.plugin.host import Host
from graphdock_std.patterns import PATTERNS, linear_cross_entropy
from graphdock_testing import queued

#: dtype -> the spacing of its numbers about one, and of what kernels of it add up in.
SPACING = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


#: Patterns whose op does not look at what the program multiplies by nothing, keys behind a query, rows that have no loss, or takes
#: no difference of infinities. Where the program has no number for that reason, there may be one.
_IGNORE = ("_blended", "_added", "_next", "_batch_norm")


@pytest.fixture(scope="module")
def host():
    """A device of its own, for which patterns are looked for."""
    made = Host()
    queued.install(made, seed=3)
    return made


@pytest.fixture
def any_size(monkeypatch):
    """Losses of few classes too are found."""
    monkeypatch.setattr(linear_cross_entropy, "LEAST_BYTES", 0)
    monkeypatch.setattr(linear_cross_entropy, "LEAST_CLASSES", 0)


def outcome(sample, host, dtype, fusion, backends):
    """Results, or the error that there was; and the patterns that were found."""
    with tf.Graph(host=host).as_default() as graph:
        fetches, feeds = sample.build(dtype)
        config = tf.SessionConfig(fusion=fusion, backends=backends)
        with tf.Session(config=config, graph=graph, host=host) as session, np.errstate(all="ignore"):
            notes = session.explain(fetches, feeds).plan.placement.notes if fusion else ()
            got = [np.asarray(v, np.float64) for v in session.run(fetches, feeds)]
    return got, [n.compiler for n in notes if n.claimed]


def check(sample, host, backends=("queued", "cpu")):
    """Whether a pattern was found; raises where results differ.

    Numbers may differ by the spacing of the dtype, and as far as those of the plain program are from those in float64: sums in
    another order, and what is not rounded between. What is not a number is none in both, unless float64 has one there.
    """
    try:
        plain, _ = outcome(sample, host, sample.dtype, False, ("cpu",))
        exact, _ = outcome(sample, host, "float64", False, ("cpu",))
    except GraphdockError:
        return None  # no program
    spacing = max(SPACING.get(o.dtype or "", 0.0) for o in sample.pattern.inputs.values()) or SPACING[sample.dtype]
    fused, found = outcome(sample, host, sample.dtype, True, backends)
    # what gradients cancel is of the size of results
    largest = max([np.max(np.abs(a[np.isfinite(a)]), initial=0.0) for a in exact])
    top = float(tf.as_dtype(sample.dtype).max)
    for number, (mine, theirs, true) in enumerate(zip(fused, plain, exact, strict=True)):
        assert mine.shape == theirs.shape, f"result {number} of {sample}"
        with np.errstate(all="ignore"):
            same = (
                (mine == theirs)
                | (np.isnan(mine) & np.isnan(theirs))
                | (mine == np.where(np.abs(true) > top, np.copysign(np.inf, true), true))
            )
            finite = np.isfinite(theirs) & np.isfinite(true)
            scale = np.max(np.abs(true[finite]), initial=0.0)
            off = np.max(np.abs(theirs - true)[finite], initial=0.0)
            near = np.abs(mine - true) <= spacing * (32 * scale + largest) + 4 * off
            lost = ~np.isfinite(theirs) & np.isfinite(true)  # in the narrow dtype alone
            lost |= np.isnan(theirs) & any(word in name for word in _IGNORE for name in found)
        wrong = ~(same | near | lost)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            raise AssertionError(
                f"result {number} at {at}: {mine[at]} for {theirs[at]} ({true[at]} in float64), by {found}, of {sample}"
            )
    return found


@pytest.mark.parametrize("pattern", [pytest.param(p, id=p.name, marks=pytest.mark.sampled(48)) for p in PATTERNS])
@pytest.mark.sampled(8)
def test_what_looks_like_a_pattern_computes_what_it_did(pattern_samples, host, any_size, pattern):
    for seed in range(4):
        check(pattern_samples.draw(pattern, seed), host)


NAMED = {p.name: p for p in PATTERNS}


def _unchecked(name):
    return dataclasses.replace(NAMED[name], check=None)


def _masked_by_a_bias(query, key, value, scale, seen, low):
    """What patterns had for masks that choose."""
    bias = tf.where(seen, tf.constant(0, low.dtype), tf.constant(low))
    return apply_op("Attention", query=query, key=key, value=value, bias=bias, scale=float(scale))[0]


def _by_another_epsilon(x, gamma, epsilon):
    return apply_op("RMSNorm", x=x, gamma=tf.cast(gamma, x.dtype.accumulator), epsilon=1e-5)[0]


def _without_its_bias(gates, c, forget_bias):
    return tuple(apply_op("LSTMGates", gates=gates, c=c, forget_bias=1.0))


def _relu_forgotten(a, b, bias):
    return apply_op("FusedMatMul", a=a, b=b, bias=bias, activation="none")[0]


#: Faults of patterns: what one forgets to look at, or does otherwise than the program.
FAULTS = [
    _unchecked("matmul_add"),
    _unchecked("conv2d_add"),
    _unchecked("attention_after_3"),
    _unchecked("attention_divided_blended_3"),
    _unchecked("rms_norm_rsqrt_square_2"),
    _unchecked("lstm"),
    _unchecked("rotary_halves_3_2"),
    _unchecked("softmax_cross_entropy_gradient_2"),
    dataclasses.replace(NAMED["attention_after_chosen_3_3"], replacement=_masked_by_a_bias, check=None),
    dataclasses.replace(NAMED["rms_norm_rsqrt_square_2"], replacement=_by_another_epsilon),
    dataclasses.replace(NAMED["lstm"], replacement=_without_its_bias),
    dataclasses.replace(NAMED["matmul_add_relu"], replacement=_relu_forgotten),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.name}-{getattr(f.replacement, '__name__', 'unchecked')}")
@pytest.mark.sampled(4)
def test_a_fault_that_is_planted_is_found(pattern_samples, any_size, fault):
    made = Host()
    planted = dataclasses.replace(fault, not_on=())
    hook = hookimpl(specname="register_patterns")(lambda: [planted])
    made.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    made.backend("lab")
    made.load_patterns().discard("std")  # whose pattern without the fault would be found first
    with pytest.raises((AssertionError, PluginError)):
        for seed in range(60):
            check(pattern_samples.draw(fault, seed), made, ("cpu",))
