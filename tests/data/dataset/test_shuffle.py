"""Orders of shuffled datasets: seeded as TensorFlow seeds, different in each repetition, and all of them equally likely."""

from __future__ import annotations

import collections

import graphdock as tf
import numpy as np
import pytest

Dataset = tf.data.Dataset


def numbers(make, graph_seed=None, runs=1):
    """What ``make()`` gives in a graph of its own, for each time that its iterator begins."""
    with tf.Graph().as_default():
        if graph_seed is not None:
            tf.set_random_seed(graph_seed)
        it = make().batch(1 << 20).make_initializable_iterator()
        element = it.get_next()
        found = []
        with tf.Session() as session:
            for _ in range(runs):
                session.run(it.initializer)
                found.append(session.run(element).tolist())
        return found


@pytest.mark.parametrize(
    ("graph_seed", "seed", "same"), [(1, None, True), (None, 1, True), (1, 1, True), (None, None, False)]
)
def test_seeds_make_an_order_that_comes_again(graph_seed, seed, same):
    def make():
        return Dataset.range(50).shuffle(50, seed=seed)

    one, again = numbers(make, graph_seed, 2)
    (elsewhere,) = numbers(make, graph_seed)
    assert sorted(one) == list(range(50)) != one
    assert (one == again) is same and (one == elsewhere) is same


def test_each_seed_is_another_order():
    orders = {tuple(numbers(lambda s=s: Dataset.range(20).shuffle(20, seed=s))[0]) for s in range(20)}
    assert len(orders) == 20


@pytest.mark.parametrize(("again", "same"), [(None, False), (True, False), (False, True)])
def test_repetitions_have_orders_of_their_own(again, same):
    (found,) = numbers(lambda: Dataset.range(30).shuffle(30, 7, again).repeat(2))
    assert sorted(found[:30]) == sorted(found[30:]) == list(range(30))
    assert (found[:30] == found[30:]) is same


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("captured", [True, False])
def test_a_dataset_that_a_function_captures_goes_on_and_one_that_it_makes_begins_anew(captured, again):
    """As TensorFlow 2.21 does."""

    def make():
        def shuffled():
            return Dataset.range(30).shuffle(30, 7, again)

        outside = shuffled()
        return Dataset.range(2).flat_map(lambda _: outside if captured else shuffled())

    one, other = numbers(make, runs=2)
    assert one == other and sorted(one[:30]) == sorted(one[30:]) == list(range(30))
    assert (one[:30] != one[30:]) is (captured and again)


def test_what_a_function_within_a_function_captures_goes_on_from_where_it_was_made():
    def make():
        first = Dataset.range(9).shuffle(9, 7)

        def rows(_):
            second = Dataset.range(9, 18).shuffle(9, 7)
            return Dataset.range(2).flat_map(lambda _: first.concatenate(second))

        return Dataset.range(2).flat_map(rows)

    (found,) = numbers(make)
    orders = [tuple(found[i : i + 9]) for i in range(0, 72, 9)]
    assert len(set(orders[::2])) == 4  # of the outermost dataset: each time another one
    assert orders[1::4] == [orders[1]] * 2 and orders[3::4] == [orders[3]] * 2 and orders[1] != orders[3]


@pytest.mark.parametrize("size", [1, 3, 10, 100])
def test_an_element_comes_no_earlier_than_its_buffer_allows(size):
    (found,) = numbers(lambda: Dataset.range(40).shuffle(size, seed=5))
    assert sorted(found) == list(range(40))
    assert all(value <= place + size - 1 for place, value in enumerate(found))
    assert (found == list(range(40))) is (size == 1)


def test_all_orders_are_equally_likely():
    (found,) = numbers(lambda: Dataset.range(3).shuffle(3, seed=11).repeat(3000))
    counts = collections.Counter(map(tuple, np.reshape(found, (3000, 3)).tolist()))
    assert len(counts) == 6
    assert sum((n - 500) ** 2 / 500 for n in counts.values()) < 25  # chi square, 5 degrees of freedom: 1 in 7000


def test_a_buffer_of_nothing_is_refused_when_the_iterator_begins():
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size must be greater than zero"):
        numbers(lambda: Dataset.range(3).shuffle(0))
