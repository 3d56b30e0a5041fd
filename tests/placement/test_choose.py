"""Which kernel a node gets: pin, order of backends, priority, tie; and what happens when the wanted device has none.

Each plugin's kernel for Square fills its output with a number of its own, so that the result names the kernel that ran.
"""

import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef
from graphdock.contracts.ir import Value, make_node
from graphdock.errors import ConfigError, KernelNotFoundError, KernelTieError
from graphdock.placement.choose import Chooser
from graphdock.plugin.host import Host

SOURCE = """\
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

def fill(number):
    def build(ctx):
        if ctx.fresh:
            return lambda x: np.full_like(x, number)
        return lambda x, y: y.fill(number)
    return build

def small(node):
    shape = node.inputs[0].shape
    return None if shape == (2,) else f"shape {shape} is not (2,)"

@hookimpl
def register_kernels():
    return [KernelDef("Square", "cpu", fill(number), name, **more) for number, name, more in TABLE]
"""


@pytest.fixture
def square(site, process_host, monkeypatch):
    """Installs plugins ``name=[(number, kernel, more), ...]`` and returns a function that runs Square."""
    site.plugin("unused")

    def install(**plugins):
        for name, rows in plugins.items():
            text = ", ".join(
                f"({n}, {k!r}, dict({', '.join(f'{a}={v}' for a, v in more.items())}))" for n, k, more in rows
            )
            site.plugin(name, SOURCE + f"TABLE = [{text}]\n")
        process_host(Host())

        def run(backends, x=(1.0, 3.0), dtype=tf.float32, device=None, **fields):
            with tf.Graph().as_default() as graph, tf.device(device):
                y = tf.square(tf.placeholder(dtype, [len(x)], name="x"), name="sq")
                with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends, **fields)) as session:
                    return session.run(y, {"x:0": np.array(x, dtype.np)}).tolist()

        return run

    return install


A = {"a": [(100, "fast", {})]}
AB = {"a": [(100, "fast", {})], "b": [(200, "slow", {})]}

RULES = [
    ("the only backend", A, dict(backends=["cpu"]), [1, 9]),
    ("the first of two backends", A, dict(backends=["a", "cpu"]), [100, 100]),
    ("the order decides, not the name", AB, dict(backends=["b", "a", "cpu"]), [200, 200]),
    (
        "the order decides before the priority",
        {**A, "b": [(200, "slow", {"priority": 9})]},
        dict(backends=["a", "b", "cpu"]),
        [100, 100],
    ),
    (
        "priority within one backend",
        {"a": [(100, "fast", {}), (101, "faster", {"priority": 1})]},
        dict(backends=["a", "cpu"]),
        [101, 101],
    ),
    ("a pin beats the order", AB, dict(backends=["a", "b", "cpu"], kernels={"Square@cpu": "b.slow"}), [200, 200]),
    (
        "a pin beats the priority",
        {"a": [(100, "fast", {}), (101, "faster", {"priority": 1})]},
        dict(backends=["a", "cpu"], kernels={"Square@cpu": "a.fast"}),
        [100, 100],
    ),
    ("a label waits for its pin", {"a": [(100, "fast", {"label": "'rare'"})]}, dict(backends=["a", "cpu"]), [1, 9]),
    (
        "a pin chooses a label",
        {"a": [(100, "fast", {"label": "'rare'"})]},
        dict(backends=["a", "cpu"], kernels={"Square@cpu": "a.fast"}),
        [100, 100],
    ),
    (
        "a pin on another device does not count",
        AB,
        dict(backends=["a", "b", "cpu"], kernels={"Square@cuda": "b.slow"}),
        [100, 100],
    ),
    (
        "types that do not fit",
        {"a": [(100, "fast", {"types": {"T": ["float64"]}})]},
        dict(backends=["a", "cpu"]),
        [1, 9],
    ),
    (
        "types that fit",
        {"a": [(100, "fast", {"types": {"T": ["float64"]}})]},
        dict(backends=["a", "cpu"], dtype=tf.float64),
        [100, 100],
    ),
    (
        "a check that refuses",
        {"a": [(100, "fast", {"check": "small"})]},
        dict(backends=["a", "cpu"], x=(1, 2, 3)),
        [1, 4, 9],
    ),
    ("a check that agrees", {"a": [(100, "fast", {"check": "small"})]}, dict(backends=["a", "cpu"]), [100, 100]),
    ("a plugin that is not named brings nothing", {**AB}, dict(backends=["b", "cpu"]), [200, 200]),
]


@pytest.mark.parametrize(("plugins", "call", "result"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_the_rules(square, plugins, call, result):
    assert square(**plugins)(**call) == result


def test_a_kernel_that_is_registered_later_is_a_candidate_from_then_on():
    host = Host()
    host.backend("cpu", None)
    chooser = Chooser(host, ("cpu",), {})
    x = Value("x", tf.float32, (2,))
    node = make_node(host.ops.get("Square"), "y", [x], {"T": tf.float32}, [(tf.float32, (2,))])
    before = chooser.choose(node, "cpu").kernel
    assert chooser.choose(node, "cpu").kernel is before
    host.kernels.add(KernelDef("Square", "cpu", lambda ctx: np.square, "later", priority=9), "cpu", "graphdock_cpu")
    assert chooser.choose(node, "cpu").kernel.full_name == "cpu.later" != before.full_name


def test_a_tie_names_both_packages_and_the_line_that_settles_it(square):
    run = square(a=[(100, "one", {}), (101, "two", {})])
    with pytest.raises(KernelTieError) as caught:
        run(["a", "cpu"])
    assert caught.value.message == ("a.one (of graphdock_a) and a.two (of graphdock_a) tie for Square on cpu")
    assert caught.value.hint == 'settle it under [session.kernels]: "Square@cpu" = "a.one"'
    assert run(["a", "cpu"], kernels={"Square@cpu": "a.two"}) == [101, 101]


def test_a_pin_for_an_op_that_is_not_there(square):
    with pytest.raises(ConfigError) as caught:
        square(**A)(["a", "cpu"], kernels={"Sqare@cpu": "a.fast"})
    assert caught.value.message == "kernels: the pin 'Sqare@cpu' is for 'Sqare', and there is no op of that name"
    assert caught.value.hint == "did you mean 'Square'?"


def test_backends_without_a_device(square):
    with pytest.raises(ConfigError, match=r"none of the backends a \(code\) brings a device"):
        square(**A)(["a"])


def test_a_pin_that_names_no_kernel(square):
    with pytest.raises(ConfigError) as caught:
        square(**A)(["a", "cpu"], kernels={"Square@cpu": "a.fats"})
    assert "names 'a.fats', which is no kernel for it" in caught.value.message
    assert caught.value.hint == "did you mean 'a.fast'?"
    assert "cpu.square" in caught.value.expected


def test_a_pin_that_does_not_fit_is_an_error_and_not_a_fallback(square):
    with pytest.raises(ConfigError, match="does not fit sq: T is float32; it takes float64"):
        square(a=[(100, "fast", {"types": {"T": ["float64"]}})])(["a", "cpu"], kernels={"Square@cpu": "a.fast"})


# -- fallback


@pytest.fixture
def chip(toy, process_host):
    """Square without a kernel: the toy device has one for float32 and none for Log."""
    process_host(Host())

    def run(fallback, device=None, backends=("toy", "cpu")):
        with tf.Graph().as_default() as graph, tf.device(device):
            y = tf.log(tf.placeholder(tf.float32, [2], name="x"), name="logs")
            config = tf.SessionConfig(backends=backends, fallback=fallback)
            with tf.Session(graph=graph, config=config) as session:
                return session.run(y, {"x:0": [1.0, 1.0]}).tolist()

    return run


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "graphdock" and r.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("fallback", "device", "runs", "warned"),
    [
        ("forbid", None, False, False),
        ("warn", None, True, True),
        ("allow", None, True, False),
        ("forbid", "toy", False, False),
        ("warn", "toy", False, False),
        ("allow", "toy", True, False),
        ("forbid", "cpu", True, False),
        ({"default": "forbid", "Log": "allow"}, None, True, False),
        ({"default": "allow", "Log": "forbid"}, None, False, False),
    ],
)
def test_fallback_is_a_policy(chip, caplog, fallback, device, runs, warned):
    with caplog.at_level(logging.WARNING, "graphdock"):
        if runs:
            assert chip(fallback, device) == [0, 0]
        else:
            with pytest.raises(KernelNotFoundError):
                chip(fallback, device)
    assert bool(warnings(caplog)) == warned


def test_the_warning_names_nodes_and_reasons_once_per_plan(chip, caplog):
    with caplog.at_level(logging.WARNING, "graphdock"):
        chip("warn")
    (text,) = warnings(caplog)
    assert "logs (Log) on cpu:0: toy has no kernel for Log" in text


def test_only_listed_backends_are_fallen_back_to(chip):
    with pytest.raises(KernelNotFoundError) as caught:
        chip("allow", backends=("toy",))
    assert caught.value.message.startswith("no kernel for Log(T=float32) on any device of toy; candidates:")
    assert caught.value.op_name == "logs"
    assert "test_choose.py" in caught.value.site


def test_a_missing_kernel_says_what_to_change(chip):
    with pytest.raises(KernelNotFoundError) as caught:
        chip("forbid")
    assert caught.value.hint == 'set fallback = "warn" under [session]'
    with pytest.raises(KernelNotFoundError) as caught:
        chip("warn", "toy")
    assert caught.value.hint == 'loosen the device scope, or set fallback = "allow"'


@pytest.fixture
def odd(toy, process_host):
    """A product that the toy's kernel refuses; returns its error's text, with the line of this file taken out."""
    process_host(Host())

    def run(backends, fallback, device=None):
        with tf.Graph().as_default() as graph, tf.device(device):
            x = tf.placeholder(tf.float32, [2, 3], name="x")
            y = tf.matmul(x, x, transpose_b=True, name="product")
            config = tf.SessionConfig(backends=backends, fallback=fallback)
            with tf.Session(graph=graph, config=config) as session, pytest.raises(KernelNotFoundError) as caught:
                session.run(y, {x: np.ones((2, 3))})
        return caught.value.text.replace(caught.value.site, "SITE")

    return run


def test_messages_word_for_word(odd):
    assert odd(["toy", "cpu"], "warn", "toy") == (
        "no kernel for MatMul(T=float32) on device toy; candidates:\n"
        "    toy.mat_mul (toy): inner size 3 is odd\n"
        "  op: product, made at SITE\n"
        '  hint: loosen the device scope, or set fallback = "allow"'
    )
    assert odd(["toy"], "allow") == (
        "no kernel for MatMul(T=float32) on any device of toy; candidates:\n"
        "    toy.mat_mul (toy): inner size 3 is odd\n"
        "  op: product, made at SITE\n"
        "  hint: add 'cpu' to backends: it has a kernel for MatMul on cpu"
    )


def test_forbidden_fallback_is_explained(odd):
    text = odd(["toy", "cpu"], "forbid")
    assert text.startswith(
        "no kernel for MatMul(T=float32) on any device of toy, cpu; candidates:\n"
        "    toy.mat_mul (toy): inner size 3 is odd\n"
    )
    assert text.endswith('  op: product, made at SITE\n  hint: set fallback = "warn" under [session]')


def test_the_warning_word_for_word(chip, caplog):
    with caplog.at_level(logging.WARNING, "graphdock"):
        chip("warn")
    assert warnings(caplog) == ["1 node falls back to another device: logs (Log) on cpu:0: toy has no kernel for Log"]


def test_a_plugin_that_backends_does_not_name_has_no_say(square):
    run = square(a=[(100, "fast", {"priority": 5})])
    assert run(["a", "cpu"]) == [100, 100]
    assert run(["cpu"]) == [1.0, 9.0]
    with tf.Graph().as_default():
        y = tf.square(tf.placeholder(tf.float32, [2]), name="sq")
        with tf.Session(config=tf.SessionConfig(backends=["cpu"])) as session:
            (row,) = session.explain(y).rows
    assert row.kernel == "cpu.square" and row.why == "the only kernel that fits"


def test_a_deterministic_session_takes_only_kernels_that_give_the_same_bits(square):
    run = square(one=[(1, "quick", {"priority": 9, "deterministic": False}), (2, "same", {})])
    assert run(backends=["one", "cpu"]) == [1, 1]
    assert run(backends=["one", "cpu"], deterministic=True) == [2, 2]
    with pytest.raises(ConfigError, match="other bits on another run"):
        run(backends=["one", "cpu"], deterministic=True, kernels={"Square@cpu": "one.quick"})
