"""Steps that are fed and fetched piece by piece."""

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_an_update_happens_once_whatever_waits_for_it(session):
    x, w = tf.placeholder(tf.float32, []), tf.Variable(1.0)
    update = w.assign_add(x)
    with tf.control_dependencies([update]):
        after = [tf.identity(x * float(k)) for k in range(3)]
    session.run(w.initializer)
    run = session.partial_run_setup([update, *after], [x])
    assert session.partial_run(run, after[0], {x: 5.0}) == 0
    assert session.partial_run(run, [after[1], update]) == [5, 6]
    assert session.partial_run(run, after[2]) == 10 and session.run(w) == 6


def test_a_draw_is_one_for_all_pieces(session):
    drawn, x = tf.random_uniform([3], seed=1), tf.placeholder(tf.float32, [])
    doubled, shifted = drawn * 2.0, drawn + x
    run = session.partial_run_setup([doubled, shifted], [x])
    first = session.partial_run(run, doubled)
    np.testing.assert_allclose(session.partial_run(run, shifted, {x: 1.0}), first / 2 + 1, rtol=1e-6)
    other = session.partial_run_setup([doubled, shifted], [x])
    assert session.partial_run(other, doubled).tolist() != first.tolist()


def test_nothing_runs_before_a_piece_needs_it(session):
    seen = []
    x = tf.placeholder(tf.float32, [])
    told = [tf.py_func(lambda v, k=k: seen.append(k) or v, [x], tf.float32) for k in range(2)]
    run = session.partial_run_setup([*told, x], [x])
    assert session.partial_run(run, x, {x: 1.0}) == 1 and not seen
    session.partial_run(run, told[1])
    assert seen == [1]


def test_a_piece_does_not_wait_for_what_a_later_one_may_read(session):
    """The read was made before the update, and a whole step would read first."""
    x, w = tf.placeholder(tf.float32, []), tf.Variable(1.0)
    before = w.read_value() * x
    update = w.assign_add(1.0)
    session.run(w.initializer)
    whole = session.partial_run_setup([before, update], [x])
    assert session.partial_run(whole, [update, before], {x: 3.0}) == [2, 3]
    pieces = session.partial_run_setup([before, update], [x])
    assert session.partial_run(pieces, update) == 3
    assert session.partial_run(pieces, before, {x: 3.0}) == 9


def test_shapes_are_seen_when_they_come(session):
    x, y = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [2, None])
    square, product = x * x, tf.matmul(x, y)
    for rows in (3, 5):
        run = session.partial_run_setup([square, product], [x, y])
        assert session.partial_run(run, square, {x: np.ones((rows, 2))}).shape == (rows, 2)
        assert session.partial_run(run, product, {y: np.ones((2, 4))}).tolist() == [[2] * 4] * rows
    added = tf.placeholder(tf.float32, [None]) + tf.placeholder(tf.float32, [None])
    a, b = added.op.inputs
    run = session.partial_run_setup([added], [a, b])
    with pytest.raises(errors.ShapeError):
        session.partial_run(run, added, {a: [1.0, 2.0], b: [1.0, 2.0, 3.0]})


def test_loops_and_branches(session):
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [])
    power = tf.while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * x), [0, 1.0])[1]
    chosen = tf.cond(power > 10.0, lambda: power - 10.0, lambda: power + x)
    (slope,) = tf.gradients(chosen, x)
    run = session.partial_run_setup([power, chosen, slope], [n, x])
    assert session.partial_run(run, power, {x: 2.0, n: 4}) == 16
    assert session.partial_run(run, [slope, chosen]) == [32, 6]


def test_a_piece_that_lacks_a_feed_has_done_nothing(session):
    x, w = tf.placeholder(tf.float32, [], name="late"), tf.Variable(1.0)
    update = w.assign_add(1.0)
    with tf.control_dependencies([update]):
        sum_ = x + 1.0
    session.run(w.initializer)
    run = session.partial_run_setup([sum_], [x])
    with pytest.raises(errors.InvalidArgumentError, match="placeholder 'late' is needed and was not fed"):
        session.partial_run(run, sum_)
    assert session.run(w) == 1
    assert session.partial_run(run, sum_, {x: 1.0}) == 2 and session.run(w) == 2


def test_a_piece_that_fails_ends_the_step(session):
    x = tf.placeholder(tf.int32, [])
    bad, good = tf.gather([1, 2], x), x + 1
    run = session.partial_run_setup([bad, good], [x])
    with pytest.raises(errors.InvalidArgumentError, match="7"):
        session.partial_run(run, bad, {x: 7})
    with pytest.raises(errors.FailedPreconditionError, match="earlier piece"):
        session.partial_run(run, good)


def test_other_steps_go_on_between_pieces(session):
    x, w = tf.placeholder(tf.float32, []), tf.Variable(1.0)
    update, end = w.assign_add(x), x * 1.0
    session.run(w.initializer)
    run = session.partial_run_setup([update, end], [x])
    session.partial_run(run, update, {x: 2.0})
    done = threading.Thread(target=session.run, args=(w.assign(7.0),), daemon=True)
    done.start()
    done.join(20)
    assert not done.is_alive() and session.run(w) == 7


def test_a_piece_waits_as_a_step_does(session):
    queue, x = tf.FIFOQueue(1, tf.float32, shapes=[[]]), tf.placeholder(tf.float32, [])
    put, taken = queue.enqueue([x]), queue.dequeue()
    run = session.partial_run_setup([put, taken], [x])
    assert session.partial_run(run, [taken, put], {x: 3.0}) == [3, None]
    begun, ended = threading.Event(), []
    with tf.control_dependencies([tf.py_func(lambda: begun.set() or 1, [], tf.int64)]):
        late = queue.dequeue()
    waits = session.partial_run_setup([late], [])

    def wait():
        try:
            session.partial_run(waits, late)
        except errors.GraphdockError as error:
            ended.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    assert begun.wait(20)
    session.close()
    thread.join(20)
    assert [type(e) for e in ended] == [errors.CancelledError]


def test_a_piece_that_waits_ends_at_the_time_limit_and_time_between_pieces_does_not_count():
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(operation_timeout=0.2)) as session:
        queue, x = tf.FIFOQueue(1, tf.float32, shapes=[[]]), tf.placeholder(tf.float32, [])
        doubled, taken = x * 2.0, queue.dequeue()
        run = session.partial_run_setup([doubled, taken], [x])
        assert session.partial_run(run, doubled, {x: 3.0}) == 6
        with pytest.raises(errors.DeadlineExceededError, match="limit of 0.2 s"):
            session.partial_run(run, taken)
        assert session.run(doubled, {x: 4.0}) == 8


def test_executors_say_whether_they_run_pieces():
    with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(executor="straight_line")) as session:
        x = tf.placeholder(tf.float32, [])
        run = session.partial_run_setup([x + 1.0], [x])
        with pytest.raises(errors.UnimplementedError, match="piece by piece"):
            session.partial_run(run, [], {x: 1.0})
    from graphdock.contracts import Program

    with pytest.raises(errors.UnimplementedError, match="in pieces"):
        Program.begin(object(), None)


def test_plans_of_pieces_are_kept(session):
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    for _ in range(3):
        assert session.partial_run(session.partial_run_setup([y], [x]), y, {x: 1.0}) == 2
    assert len(session._pieces) == 1
