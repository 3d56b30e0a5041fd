"""What every optimizer does: pairs, slots, names, global step, custom rules, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import graphdock as tf
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def started() -> Any:
    session = tf.Session()
    session.run(tf.global_variables_initializer())
    return session


def test_compute_gradients_pairs_each_variable_with_its_gradient() -> None:
    a, b, c = (tf.Variable([1.0, 2.0], name=n) for n in "abc")
    pairs = tf.train.GradientDescentOptimizer(0.1).compute_gradients(tf.reduce_sum(a * a + 3.0 * b))
    assert [v for _, v in pairs] == [a, b, c] and pairs[2][0] is None
    with started() as session:
        np.testing.assert_array_equal(session.run(pairs[0][0]), [2.0, 4.0])
        np.testing.assert_array_equal(session.run(pairs[1][0]), [3.0, 3.0])


def test_var_list_and_trainable_choose_the_variables() -> None:
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    frozen = tf.Variable(1.0, trainable=False, name="frozen")
    loss = a + b + frozen
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    assert [v for _, v in optimizer.compute_gradients(loss)] == [a, b]
    step = optimizer.minimize(loss, var_list=[[b], frozen])
    with started() as session:
        session.run(step)
        assert session.run([a, b, frozen]) == [1.0, 0.0, 0.0]


def test_apply_gradients_applies_what_it_is_given() -> None:
    v = tf.Variable([1.0, 2.0])
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    step = optimizer.apply_gradients([(tf.constant([2.0, -2.0]), v), (None, tf.Variable(3.0))], name="applied")
    assert isinstance(step, tf.Operation) and step.name == "applied"
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [step]
    with started() as session:
        assert session.run(step) is None
        np.testing.assert_array_equal(session.run(v), [0.0, 3.0])


def test_global_step_counts_after_the_update() -> None:
    v = tf.Variable(8.0)
    count = tf.train.get_or_create_global_step()
    step = tf.train.GradientDescentOptimizer(tf.cast(count, tf.float32) + 1.0).minimize(v * 1.0, global_step=count)
    with started() as session:
        for _ in range(3):
            session.run(step)
        assert session.run(v) == 8.0 - 1 - 2 - 3
        assert tf.train.global_step(session, count) == 3


def test_the_global_step_is_one_per_graph() -> None:
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()
    assert step.name == "global_step:0" and step.dtype is tf.int64 and step not in tf.trainable_variables()
    assert tf.train.get_global_step() is step is tf.train.get_or_create_global_step()
    with pytest.raises(tf.errors.AlreadyExistsError, match="global_step:0"):
        tf.train.create_global_step()
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
    with pytest.raises(tf.errors.FailedPreconditionError, match="more than one"):
        tf.train.get_global_step()


def test_the_global_step_may_be_a_variable_of_that_name() -> None:
    assert tf.train.get_global_step() is None
    step = tf.Variable(0, trainable=False, name="global_step")
    assert tf.train.get_global_step() is step is tf.train.get_or_create_global_step()
    with pytest.raises(TypeError, match="integer"):
        tf.train.assert_global_step(tf.Variable(0.5))
    with pytest.raises(ValueError, match="scalar"):
        tf.train.assert_global_step(tf.Variable([1]))
    with pytest.raises(ValueError, match="Variable or a Tensor"):
        tf.train.assert_global_step(3)


def test_slots_stand_below_the_variable_scope_of_the_optimizer() -> None:
    with tf.variable_scope("net"):
        w = tf.get_variable("w", [2])
    with tf.variable_scope("train"):
        tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(w * w))
    names = [v.op.name for v in tf.global_variables()]  # in TensorFlow's order: the powers first
    assert names == ["net/w", "train/beta1_power", "train/beta2_power", "train/net/w/Adam", "train/net/w/Adam_1"]


def test_variables_that_are_not_floating_are_left_alone() -> None:
    count, w = tf.Variable(0), tf.Variable(2.0)
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(w), global_step=count)
    with started() as session:
        session.run(train_op)
        assert session.run([count, w]) == [1, pytest.approx(1.6)]


@pytest.mark.parametrize("scope", [None, "model"])
def test_slots_are_variables_named_after_theirs(scope: str | None) -> None:
    with tf.name_scope(scope or ""):
        w = tf.Variable(tf.ones([2, 3]), name="W")
    prefix = "model/" if scope else ""
    expected = {
        "Adagrad": (tf.train.AdagradOptimizer(0.1, 0.25), {"accumulator": f"{prefix}W/Adagrad:0"}),
        "Momentum": (tf.train.MomentumOptimizer(0.1, 0.9), {"momentum": f"{prefix}W/Momentum:0"}),
        "Adam": (tf.train.AdamOptimizer(), {"m": f"{prefix}W/Adam:0", "v": f"{prefix}W/Adam_1:0"}),
        "AdamW": (tf.train.AdamWOptimizer(0.1), {"m": f"{prefix}W/AdamW:0", "v": f"{prefix}W/AdamW_1:0"}),
        "RMSProp": (
            tf.train.RMSPropOptimizer(0.1),
            {"rms": f"{prefix}W/RMSProp:0", "momentum": f"{prefix}W/RMSProp_1:0"},
        ),
        "Ftrl": (tf.train.FtrlOptimizer(0.1), {"accum": f"{prefix}W/Ftrl:0", "linear": f"{prefix}W/Ftrl_1:0"}),
        "GradientDescent": (tf.train.GradientDescentOptimizer(0.1), {}),
    }
    with tf.name_scope("training"):
        for optimizer, _ in expected.values():
            optimizer.minimize(tf.reduce_sum(w * w))
    for name, (optimizer, slots) in expected.items():
        assert optimizer.get_name() == name and optimizer.get_slot_names() == sorted(slots)
        for slot, variable in slots.items():
            assert optimizer.get_slot(w, slot).name == variable
            assert optimizer.get_slot(w, slot) in tf.global_variables()
        assert tf.trainable_variables() == [w]
    assert expected["Adagrad"][0].get_slot(w, "other") is None
    powers = [v.name for v in expected["Adam"][0].variables()]
    assert powers == [
        f"{n}:0"
        for n in sorted([f"{prefix}W/Adam", f"{prefix}W/Adam_1", "training/beta1_power", "training/beta2_power"])
    ]
    with started() as session:
        np.testing.assert_array_equal(
            session.run(expected["Adagrad"][0].get_slot(w, "accumulator")), np.full((2, 3), 0.25)
        )


def test_a_second_minimize_shares_the_slots() -> None:
    w = tf.Variable([3.0])
    optimizer = tf.train.AdagradOptimizer(0.1)
    first = optimizer.minimize(tf.reduce_sum(w * w))
    count = len(tf.global_variables())
    second = optimizer.minimize(tf.reduce_sum(w))
    assert len(tf.global_variables()) == count and first is not second


def test_the_learning_rate_may_be_fed() -> None:
    w, rate = tf.Variable(tf.constant(1.0, tf.float64)), tf.placeholder(tf.float32, [])
    step = tf.train.GradientDescentOptimizer(rate).minimize(w * 2.0)
    with started() as session:
        session.run(step, {rate: 0.25})
        assert session.run(w) == 0.5


def test_the_learning_rate_may_be_a_function_or_a_variable() -> None:
    w, rate = tf.Variable(1.0), tf.Variable(0.5, trainable=False)
    for given in (lambda: 0.5, rate, lambda: rate):
        tf.train.GradientDescentOptimizer(given)
    step = tf.train.GradientDescentOptimizer(lambda: rate).minimize(w * 1.0)
    with started() as session:
        session.run(step)
        session.run(rate.assign(0.25))
        session.run(step)
        assert session.run(w) == 0.25


def test_clipping_between_compute_and_apply() -> None:
    w = tf.Variable([1.0, 1.0])
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    pairs = optimizer.compute_gradients(tf.reduce_sum(w * [10.0, 0.5]))
    step = optimizer.apply_gradients([(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs])
    with started() as session:
        session.run(step)
        np.testing.assert_array_equal(session.run(w), [0.0, 0.5])


SPARSE = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.5, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.5),
    "adam": lambda: tf.train.AdamOptimizer(0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.5),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_gradients_give_what_dense_ones_give(name: str) -> None:
    """Every row is gathered in every step, row 1 twice: so that rules that leave other rows alone agree too."""
    values = []
    for dense in (False, True):
        with tf.Graph().as_default():
            table = tf.Variable(np.arange(8.0).reshape(4, 2))
            optimizer = SPARSE[name]()
            loss = tf.reduce_sum(tf.gather(table, [1, 3, 1, 0, 2]) ** 2)
            ((grad, var),) = optimizer.compute_gradients(loss)
            assert isinstance(grad, tf.IndexedSlices)
            step = optimizer.apply_gradients([(tf.convert_to_tensor(grad) if dense else grad, var)])
            with started() as session:
                for _ in range(3):
                    session.run(step)
                values.append(session.run(table))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


@pytest.mark.parametrize("name", ["descent", "momentum", "nesterov", "adagrad"])
def test_rows_that_were_not_gathered_stay(name: str) -> None:
    table = tf.Variable(tf.ones([4, 2]))
    step = SPARSE[name]().minimize(tf.reduce_sum(tf.gather(table, [1, 3, 1])))
    with started() as session:
        session.run(step)
        moved = session.run(table)
        np.testing.assert_array_equal(moved[[0, 2]], 1.0)
        assert (moved[[1, 3]] < 1.0).all()
        types = {op.type for op in tf.get_default_graph().get_operations()}
        assert any(t.startswith("ResourceSparseApply") for t in types)


def test_grad_loss_scales_the_gradient() -> None:
    w = tf.Variable([1.0, 1.0])
    step = tf.train.GradientDescentOptimizer(1.0).minimize(w * 2.0, grad_loss=tf.constant([0.25, 0.0]))
    with started() as session:
        session.run(step)
        np.testing.assert_array_equal(session.run(w), [0.5, 1.0])


@pytest.mark.parametrize(
    "gate", [tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH]
)
def test_gates_change_nothing_but_the_order(gate: int) -> None:
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(a * b, gate_gradients=gate)
    with started() as session:
        session.run(step)
        assert session.run([a, b]) == [-1.0, 1.0]


class SignDescent(tf.train.Optimizer):
    """A custom rule with a slot, made of ordinary ops."""

    def __init__(self, learning_rate: float, name: str = "SignDescent") -> None:
        super().__init__(False, name)
        self._rate = learning_rate

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:
            self._zeros_slot(var, "steps", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        count = self.get_slot(var, "steps").assign_add(tf.ones_like(grad), read_value=False)
        move = var.assign_sub(self._rate * tf.sign(grad), read_value=False)
        return tf.group(count, move)


def test_a_custom_optimizer_is_a_subclass() -> None:
    w = tf.Variable([1.0, -1.0], name="w")
    optimizer = SignDescent(0.5)
    step = optimizer.minimize(tf.reduce_sum(w * w))
    with started() as session:
        session.run(step)
        session.run(step)
        np.testing.assert_array_equal(session.run(w), [0.0, 0.0])
        np.testing.assert_array_equal(session.run(optimizer.get_slot(w, "steps")), [2.0, 2.0])
    assert optimizer.get_slot(w, "steps").name == "w/SignDescent:0"


class Lazy(tf.train.Optimizer):
    """As TensorFlow 1's tutorials write them: positional base arguments, _prepare, casts, tf.assign, tf.group."""

    def __init__(self, learning_rate: float = 0.5, use_locking: bool = False, name: str = "Lazy") -> None:
        super(Lazy, self).__init__(use_locking, name)  # noqa: UP008
        self._lr = learning_rate

    def _prepare(self) -> None:
        self._lr_t = tf.convert_to_tensor(self._lr, name="learning_rate")

    def _create_slots(self, var_list: Any) -> None:
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        rate = tf.cast(self._lr_t, var.dtype.base_dtype)
        m = self.get_slot(var, "m")
        m_t = m.assign(tf.maximum(0.9 * m, tf.abs(grad)))
        return tf.group(tf.assign_sub(var, rate * grad / m_t), m_t)


def test_an_optimizer_of_the_tutorials_works_unchanged() -> None:
    w = tf.Variable([4.0, -4.0], name="w")
    step = Lazy().minimize(tf.reduce_sum(w * w))
    with started() as session:
        session.run(step)
        np.testing.assert_allclose(session.run(w), [3.5, -3.5])


def test_a_rule_without_apply_dense_says_so() -> None:
    w = tf.Variable(1.0)
    with pytest.raises(tf.errors.UnimplementedError, match="_apply_dense"):
        tf.train.Optimizer(name="Bare").minimize(w * w)


def test_mistakes_are_named() -> None:
    w = tf.Variable([1.0, 2.0], name="w")
    other = tf.Variable(1.0, name="other")
    count = tf.Variable(1, name="count")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="depends on none of the variables"):
        optimizer.minimize(tf.reduce_sum(other), var_list=[w])
    with pytest.raises(tf.errors.DTypeError, match="loss must be floating"):
        optimizer.minimize(count)
    with pytest.raises(tf.errors.InvalidArgumentError, match="depends on none of the variables"):
        optimizer.minimize(other, var_list=[count])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not paired with a Variable|holds something else"):
        optimizer.minimize(other, var_list=[tf.constant(1.0)])
    with pytest.raises(tf.errors.ShapeError, match="gradient of w:0") as caught:
        optimizer.apply_gradients([(tf.ones([3]), w)])
    assert "test_optimizer.py" in str(caught.value)
    with pytest.raises(tf.errors.DTypeError):
        optimizer.apply_gradients([(tf.ones([2], tf.float64), w)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="no gradient for any variable"):
        optimizer.apply_gradients([(None, w)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="positive"):
        tf.train.AdagradOptimizer(0.1, 0.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="l1_regularization_strength must not be negative"):
        tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="learning_rate_power must not be positive"):
        tf.train.FtrlOptimizer(0.1, 0.5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs a name"):
        tf.train.Optimizer(name="")


def test_without_variables_there_is_nothing_to_minimize() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="no variable to change"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_variables_of_other_dtypes_train(dtype: str) -> None:
    for optimizer in (
        tf.train.AdagradOptimizer(0.5),
        tf.train.AdamOptimizer(0.5),
        tf.train.MomentumOptimizer(0.1, 0.5),
    ):
        with tf.Graph().as_default():
            w = tf.Variable(tf.cast(tf.constant([4.0, -4.0]), dtype))
            step = optimizer.minimize(tf.reduce_sum(w * w))
            with started() as session:
                for _ in range(40):
                    session.run(step)
                assert np.abs(session.run(w).astype(float)).max() < 1.0


def test_two_sessions_train_apart() -> None:
    w = tf.Variable(1.0)
    step = tf.train.AdagradOptimizer(0.5).minimize(w * w)
    with started() as first, started() as second:
        first.run(step)
        assert second.run(w) == 1.0 and first.run(w) < 1.0


RATES = {
    tf.train.GradientDescentOptimizer: ["learning_rate"],
    tf.train.MomentumOptimizer: ["learning_rate", "momentum"],
    tf.train.AdagradOptimizer: ["learning_rate", "initial_accumulator_value"],
    tf.train.AdamOptimizer: ["learning_rate", "beta1", "beta2", "epsilon"],
    tf.train.AdamWOptimizer: ["learning_rate", "weight_decay", "beta1", "beta2", "epsilon"],
    tf.train.RMSPropOptimizer: ["learning_rate", "decay", "momentum", "epsilon"],
    tf.train.FtrlOptimizer: [
        "learning_rate",
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
    ],
}
#: Arguments without a default, by optimizer.
NEEDED = {tf.train.MomentumOptimizer: {"momentum": 0.9}, tf.train.AdamWOptimizer: {"weight_decay": 0.1}}


@pytest.mark.parametrize(("kind", "argument"), [(kind, name) for kind, names in RATES.items() for name in names])
@pytest.mark.parametrize("wrong", ["0.1", None, [0.1]])
def test_a_rate_of_the_wrong_type_is_named(kind: Any, argument: str, wrong: Any) -> None:
    given = {"learning_rate": 0.1, **NEEDED.get(kind, {}), argument: wrong}
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{argument} is of the wrong type"):
        kind(**given)


def test_a_rate_is_a_scalar_and_so_is_what_a_function_returns() -> None:
    for wrong in (np.ones(2), tf.constant([0.1]), tf.Variable([0.1])):
        with pytest.raises(tf.errors.ShapeError, match="Adam: learning_rate must be a scalar"):
            tf.train.AdamOptimizer(wrong)
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="GradientDescent: learning_rate is of the wrong type"):
        tf.train.GradientDescentOptimizer(lambda: "0.1").minimize(tf.reduce_sum(v))
    for right in (1, 0.1, np.float32(0.1), np.array(0.1), tf.constant(0.1), lambda: 0.1, tf.placeholder(tf.float32)):
        tf.train.AdamOptimizer(right).minimize(tf.reduce_sum(v * v))


def test_a_misspelt_method_is_told_the_nearest() -> None:
    with pytest.raises(
        AttributeError, match="'AdamOptimizer' object has no attribute 'minimise'; did you mean 'minimize'"
    ):
        tf.train.AdamOptimizer(0.1).minimise  # noqa: B018
    assert not hasattr(tf.train.AdamOptimizer(0.1), "_nothing")


@pytest.mark.parametrize("kind", [tf.train.GradientDescentOptimizer, tf.train.AdamOptimizer, tf.train.AdagradOptimizer])
def test_a_constraint_holds_after_every_step(kind: Any) -> None:
    """As if it were applied by hand after each step of the same optimizer without it."""
    start, slope = np.array([0.5, -0.5, 2.0], np.float32), np.array([1.0, 1.0, -1.0], np.float32)
    held = tf.Variable(start, constraint=lambda v: tf.clip_by_value(v, -0.6, 2.2))
    free = tf.Variable(start)
    steps = [kind(0.15).apply_gradients([(tf.constant(slope), v)]) for v in (held, free)]
    by_hand = free.assign(tf.clip_by_value(free, -0.6, 2.2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(steps[0])
            session.run(steps[1])
            np.testing.assert_array_equal(session.run(held), session.run(by_hand))
        np.testing.assert_array_equal(session.run(held) >= np.float32(-0.6), True)
        assert session.run(held)[2] == np.float32(2.2)


def test_a_constraint_sees_what_the_step_made() -> None:
    v = tf.Variable([3.0, 4.0], constraint=lambda x: x / tf.norm(x))
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(v * [1.0, 0.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(v), np.array([2.0, 4.0]) / np.sqrt(20.0), rtol=1e-6)


def test_a_constraint_refuses_a_sparse_gradient() -> None:
    table = tf.Variable(np.ones((4, 2)), constraint=tf.abs, name="table")
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(RuntimeError, match="table:0 has a constraint, and its gradient is sparse"):
        optimizer.minimize(tf.reduce_sum(tf.gather(table, [1, 1])))
