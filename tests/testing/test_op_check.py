"""opcheck: right ops pass on the author's own inputs; each kind of fault is named, whichever kernel, gradient or rule has it."""

from __future__ import annotations

import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError, UnknownOpError
from graphdock.plugin.host import Host
from graphdock_testing import opcheck
from graphdock_testing.conformance import ConformanceError
from numpy.typing import NDArray

RNG = np.random.default_rng(0)
RIGHT = {
    "Softmax": ([RNG.normal(size=(3, 4)).astype(np.float32)], {}),
    "MatMul": ([RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))], {}),
    "AddN": ([[np.ones(3), np.ones(3)]], {}),
    "Sum": ({"x": RNG.normal(size=(3, 4)), "axis": [0]}, {}),
    "ResourceApplyGradientDescent": ([np.ones(3, np.float32), np.float32(0.1), np.ones(3, np.float32)], {}),
    "RandomUniform": ([[2, 3]], {"dtype": "float32", "seed": 3}),
}


@pytest.mark.parametrize("op", RIGHT)
def test_a_right_op_passes(op):
    args, attrs = RIGHT[op]
    found = opcheck(op, args, attrs)
    assert any(text == "SUCCESS" for text in found.values())
    assert all(text == "SUCCESS" or text.startswith("SKIPPED: no input") for text in found.values())


@pytest.fixture
def host():
    """A host of its own as the default graph's."""
    host = Host()
    with tf.Graph(host).as_default():
        yield host


F = NDArray[np.float64]


def halved(host, name="lab::halve", body=lambda x: x / 2):
    @tf.custom_op(name, shapes={"x": "[*S]", "y": "[*S]"}, outputs=["y"])
    def halve(x: F) -> F:
        return body(x)

    return halve


def right_gradient(op, grad):
    return [grad * 0.5]


def test_a_function_made_an_op_passes_with_its_gradient(host):
    halve = halved(host)
    halve.register_gradient(right_gradient)
    assert opcheck(halve, [[1.0, 2.0, 3.0]], host=host) == {"user.halve_body@cpu": "SUCCESS", "gradient": "SUCCESS"}


def fault(host, words, op, args=([1.0, 2.0, 3.0],), **options):
    with pytest.raises(ConformanceError, match=words) as caught:
        opcheck(op, list(args), host=host, **options)
    return str(caught.value)


def test_a_wrong_gradient_is_found(host):
    halve = halved(host)
    halve.register_gradient(lambda op, grad: [grad])
    fault(host, "gradient: .*is not the numeric one", halve)


def test_every_kernel_is_checked_and_named(host):
    halve = halved(host)
    halve.register_kernel("cpu")(lambda x: x / 2)
    halve.register_kernel("cpu", name="wrong", label="exotic")(lambda x: x / 3)
    assert "elements differ" in fault(host, "user.wrong@cpu", halve)
    found = opcheck(halve, [[1.0]], host=host, raise_exception=False)
    assert found["user.halve_body@cpu"] == "SUCCESS" and "elements differ" in found["user.wrong@cpu"]


def kernel_fault(host, build, **fields):
    halve = halved(host)
    halve.register_kernel("cpu", build=True, name="suspect", **fields)(build)
    return fault(host, ".", halve, kernels=["user.suspect"])


def test_a_kernel_that_writes_its_input_is_found(host):
    def build(ctx):
        def compute(x, *out):
            result = np.multiply(x, 0.5, *out)
            x += 1
            return result

        return compute

    text = kernel_fault(host, build)
    assert "read-only" in text or "changed its input 'x'" in text


def test_a_kernel_that_writes_beside_its_output_is_found(host):
    def build(ctx):
        def compute(x, *out):
            result = np.multiply(x, 0.5, *out)
            if out:
                np.lib.stride_tricks.as_strided(out[0], (out[0].size + 1,), (8,))[-1] = 0
            return result

        return compute

    assert "wrote beside its output" in kernel_fault(host, build)


def test_a_kernel_that_takes_its_output_for_zero_is_found(host):
    def build(ctx):
        def compute(x, *out):
            if not out:
                return x * 0.5
            out[0][...] += x * 0.5
            return None

        return compute

    assert "elements differ" in kernel_fault(host, build)


def test_a_kernel_that_draws_is_found(host):
    rng = np.random.default_rng()

    def build(ctx):
        def compute(x, *out):
            noise = 1 + rng.integers(0, 8, x.shape) * np.finfo(x.dtype).eps
            return np.multiply(x * 0.5, noise, *out)

        return compute

    assert "other bits" in kernel_fault(host, build)


@pytest.mark.parametrize("scale", [1.0, np.finfo(np.float64).eps])
def test_a_function_that_draws_is_told_to_say_so_and_passes_when_it_does(host, scale):
    rng = np.random.default_rng(0)

    def noise(x: F) -> F:
        return x * (1 + scale * rng.integers(1, 9, x.shape))

    options = {"shapes": {"x": "[*S]", "y": "[*S]"}, "outputs": ["y"]}
    silent = tf.custom_op("lab::noise", **options)(noise)
    text = fault(host, "equal inputs gave different bits", silent, args=([1.0] * 64,))
    assert "stateful=True" in text
    told = tf.custom_op("lab::told", stateful=True, **options)(noise)
    told.register_gradient(right_gradient)
    told.register_kernel("cpu")(lambda x: x * (1 + scale * rng.integers(1, 9, x.shape)))
    found = opcheck(told, [[1.0] * 64], host=host)
    gradient = found.pop("gradient")
    assert gradient == "SKIPPED: no input decides what it gives" and set(found.values()) == {"SUCCESS"}


def test_a_stateful_function_is_still_held_to_its_shape_rule(host):
    rng = np.random.default_rng(0)

    @tf.custom_op("lab::drawn", shapes={"x": "[N]", "y": "[N]"}, outputs=["y"], stateful=True)
    def drawn(x: F) -> F:
        return rng.normal(size=len(x) + 1)

    fault(host, "shape", drawn)


def test_a_kernel_that_keeps_a_result_is_found_by_the_step_in_between(host):
    def build(ctx):
        first = []

        def compute(x, *out):
            first.append(x * 0.5)
            if not out:
                return first[0].copy()
            np.copyto(out[0], first[0])
            return None

        return compute

    assert "step 2" in kernel_fault(host, build)


def test_a_wrong_shape_rule_is_found(host):
    @tf.custom_op("lab::first", shapes={"x": "[N]", "y": "[N]"}, outputs=["y"])
    def first(x: F) -> F:
        return x[:1]

    fault(host, "shape", first)


def test_kernels_without_a_reference_are_held_against_one_another(suspects):
    host = suspects.host_with(
        suspects.kernel("cpu", lambda x, *out: np.multiply(x, 2, *out), name="two"),
        suspects.kernel("cpu", lambda x, *out: np.multiply(x, 3, *out), name="three", label="odd"),
        suspects.kernel("chip", lambda x, *out: np.multiply(x, 2, *out), name="far"),
    )
    found = opcheck("fault.Op", [np.ones(3, np.float32)], host=host, backends=("cpu", "fault"), raise_exception=False)
    wrong = [name for name, text in found.items() if text != "SUCCESS" and not text.startswith("SKIPPED")]
    assert wrong == ["fault.three@cpu and fault.two@cpu agree"]
    assert found["fault.far@chip"] == found["fault.far@chip and fault.two@cpu agree"] == "SUCCESS"


def test_another_second_set_of_inputs_may_be_given(host):
    seen = []
    halve = halved(host, body=lambda x: seen.append(x.max()) or x / 2)
    opcheck(halve, [[1.0]], host=host)
    assert {1.0, 0.75} <= set(seen)
    seen.clear()
    opcheck(halve, [[1.0]], other=[[8.0]], host=host)
    assert {1.0, 8.0} <= set(seen) and 0.75 not in seen


def test_arguments_that_do_not_fit_are_told():
    with pytest.raises(UnknownOpError, match="Softmacks"):
        opcheck("Softmacks", [])
    with pytest.raises(NotFoundError, match="no input 'y'"):
        opcheck("Softmax", {"y": [1.0]})
    with pytest.raises(NotFoundError, match="no attribute 'axle'"):
        opcheck("Softmax", [[1.0]], {"axle": 1})
    with pytest.raises(NotFoundError, match=r"no kernel 'cpu\.softmacks'"):
        opcheck("Softmax", [[1.0]], kernels=["cpu.softmacks"])
    with pytest.raises(InvalidArgumentError, match="'b' is not given"):
        opcheck("MatMul", [np.ones((2, 2))])
    with pytest.raises(InvalidArgumentError, match="too many"):
        opcheck("Softmax", [[1.0], [1.0]])
    with pytest.raises(InvalidArgumentError, match=r"tf\.custom_op made"):
        opcheck(np.tanh, [[1.0]])


def test_the_package_imports_nothing_until_it_is_asked_for():
    code = "import sys, graphdock_testing; print('numpy' in sys.modules); graphdock_testing.opcheck; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
