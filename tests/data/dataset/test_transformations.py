"""What draws at random comes as often as was asked for; a seed, also one of a tensor, gives the same again."""

from __future__ import annotations

import _thread
import collections
import contextlib
import itertools
import sqlite3

import graphdock as tf
import pytest
from graphdock_data.dataset.stages.stage import fill

Dataset, experimental = tf.data.Dataset, tf.data.experimental


def taken(dataset, count, feeds=None):
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    with tf.Session() as session:
        session.run(iterator.initializer, feeds)
        return [session.run(element) for _ in range(count)]


@pytest.mark.parametrize("batch", [False, True], ids=["elements", "batches"])
@pytest.mark.parametrize(
    "shape, sizes", [([3], [3, 1, 3, 3]), ([1], [1, 3, 1, 1]), ([], [0, 1, 0, 0]), ([3], [1] * 12)]
)
def test_elements_of_another_shape_than_a_functions_set_shape_says_are_refused(batch, shape, sizes):
    def function(x):
        x.set_shape(shape)
        return x * 2.0

    def generate():
        yield from ([1.0] * size if size else 1.0 for size in sizes)

    dataset = Dataset.from_generator(generate, tf.float32, None).map(function)
    element = (dataset.batch(1) if batch else dataset).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        for size in sizes:
            if (not size and not shape) or [size] == shape:
                made = [2.0] * size if size else 2.0
                assert session.run(element).tolist() == ([made] if batch else made)
            else:
                with pytest.raises(
                    tf.errors.InvalidArgumentError, match=r"MapDataset \(made at .*wrong shape"
                ) as caught:
                    session.run(element)
                assert "set_shape" in caught.value.hint


def test_an_interrupt_ends_a_batch_of_many_elements():
    def rows():
        interrupt = itertools.islice(
            iter(_thread.interrupt_main, 0), 1
        )  # C all the way: no bytecode until it is asked for
        return itertools.chain(itertools.repeat((1,), 10), interrupt, itertools.repeat((1,)))

    taken_so_far: list[tuple[int]] = []
    with pytest.raises(KeyboardInterrupt):
        fill(taken_so_far, rows(), 10**6)
    assert len(taken_so_far) < 10**5


def test_samples_come_as_often_as_their_weights_say():
    sources = [Dataset.from_tensors(i).repeat() for i in range(3)]
    counts = collections.Counter(taken(experimental.sample_from_datasets(sources, [0.5, 0.0, 1.5], seed=4), 2000))
    # of 2000 draws of probability 0.25, 5 standard deviations
    assert abs(counts[0] - 500) < 97 and counts[1] == 0 and counts[0] + counts[2] == 2000
    with pytest.raises(ValueError, match="weights"):
        experimental.sample_from_datasets(sources, [1.0, 2.0])


@pytest.mark.parametrize("initial", [None, [0.75, 0.25]])
def test_classes_are_resampled(initial):
    source = Dataset.range(10**9).map(lambda x: tf.cast(tf.equal(x % 4, 0), tf.int32))
    resample = experimental.rejection_resample(lambda which: which, [0.5, 0.5], initial, seed=2)
    found = taken(source.apply(resample), 1000)
    assert all(which == row for which, row in found)
    assert abs(sum(which for which, _ in found) - 500) < 80  # 5 standard deviations


def test_a_seed_may_be_a_tensor():
    seed = tf.placeholder(tf.int64, [])
    dataset = Dataset.range(50).shuffle(50, seed=seed)
    orders = [taken(dataset, 50, {seed: value}) for value in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    numbers = experimental.RandomDataset(seed=5)
    assert taken(numbers, 4) == taken(numbers, 4) and all(0 <= n < 2**32 for n in taken(numbers, 9))


def test_ignoring_errors_ends_at_files_that_are_not_there(tmp_path):
    (tmp_path / "b").write_text("1\n2\n")
    names = [str(tmp_path / name) for name in ("a", "b", "c")]
    dataset = tf.data.TextLineDataset(names).apply(experimental.ignore_errors())
    assert taken(dataset, 2) == [b"1", b"2"]
    with pytest.raises(tf.errors.OutOfRangeError):
        taken(dataset, 3)


def test_rows_of_a_database(tmp_path):
    path = str(tmp_path / "rows.db")
    with sqlite3.connect(path) as database:
        database.execute("create table people (name text, age integer, height real)")
        database.executemany("insert into people values (?, ?, ?)", [("Ada", 36, 1.6), ("Bob", 7, 1.2)])
    database.close()
    query = "select name, age, height from people order by age"
    dataset = experimental.SqlDataset("sqlite", path, query, (tf.string, tf.int32, tf.float64))
    assert taken(dataset, 2) == [(b"Bob", 7, 1.2), (b"Ada", 36, 1.6)]
    for wrong, words in (
        (("mysql", path, query, (tf.string,)), "mysql"),
        (("sqlite", path, "select", (tf.string,)), "failed"),
        (("sqlite", path, query, (tf.string, tf.int32)), "number of columns"),
        (("sqlite", path, "select name from people", (tf.int32,)), "another dtype"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            taken(experimental.SqlDataset(*wrong), 1)
    with pytest.raises(tf.errors.NotFoundError):
        taken(experimental.SqlDataset("sqlite", path + "2", query, (tf.string,)), 1)


def test_sparse_iterators_of_a_structure_and_a_handle():
    sparse = tf.SparseTensor([[0, 1]], [5.0], [2, 2])
    dataset = Dataset.from_tensors((sparse, 3)).repeat()
    classes = (tf.SparseTensor, tf.Tensor)
    shapes = (tf.TensorShape([2, 2]), tf.TensorShape([]))
    assert dataset.output_classes == classes
    whole = tf.data.Iterator.from_structure((tf.float32, tf.int32), shapes, output_classes=classes)
    begin, handle = whole.make_initializer(dataset), tf.placeholder(tf.string, [])
    other = tf.data.Iterator.from_string_handle(handle, (tf.float32, tf.int32), shapes, classes)
    element, also = whole.get_next(), other.get_next()
    assert also[0].shape.as_list() == [2, 2]
    with tf.Session() as session:
        session.run(begin)
        found = session.run(element)
        assert found[0].indices.tolist() == [[0, 1]] and found[1] == 3
        assert session.run(also, {handle: session.run(whole.string_handle())})[0].values.tolist() == [5.0]
    with pytest.raises(TypeError):
        tf.data.Iterator.from_structure(tf.float32).make_initializer(Dataset.from_tensors(sparse))


def test_what_acts_in_a_function_runs_for_each_element():
    """Stateful ops of a function run, needed or not, as TensorFlow's do."""
    count = tf.get_variable("count", (), tf.int32, initializer=tf.zeros_initializer())
    seen = []

    def noted(x):
        count.assign_add(1)
        tf.cond(x > 1, lambda: tf.group(count.assign_add(10)), tf.no_op)
        tf.py_func(seen.append, [x], [])
        tf.Assert(x < 3, [x])
        return x

    element = (iterator := Dataset.range(5).map(noted).make_initializable_iterator()).get_next()
    with tf.Session() as session:
        session.run([count.initializer, iterator.initializer])
        for i, expected in enumerate([1, 2, 13]):
            assert session.run(element) == i and session.run(count) == expected
        with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
            session.run(element)
    assert seen[:3] == [0, 1, 2]


def test_a_padded_shape_must_fit():
    numbers, rows = Dataset.range(10), Dataset.from_tensors([1, 2, 3])
    for dataset, shape, kind in (
        (numbers, [1], ValueError),
        (numbers, tf.constant([1], tf.int64), ValueError),
        (numbers, tf.placeholder(tf.int64, [2]), ValueError),
        (rows, tf.constant([1], tf.int64), ValueError),
        (rows, [[1, 1], [1, 1]], ValueError),
        (rows, tf.placeholder(tf.int64, []), ValueError),
        (rows, tf.constant([1.5]), TypeError),
    ):
        with pytest.raises(kind, match="padded shape|Padded shape"):
            dataset.padded_batch(5, padded_shapes=shape)


def test_unbatch_and_enumerate_are_methods():
    assert taken(Dataset.from_tensors([7, 8]).unbatch().enumerate(3), 2) == [(3, 7), (4, 8)]


def _ranks(dataset, count=12):
    """Elements as numbers of those that were seen, up to the end, whatever the generator draws."""
    element, found, seen = dataset.make_one_shot_iterator().get_next(), [], {}
    with tf.Session() as session, contextlib.suppress(tf.errors.OutOfRangeError):
        for _ in range(count):
            drawn = session.run(element)
            each = [seen.setdefault(x, len(seen)) for x in (drawn if isinstance(drawn, tuple) else (drawn,))]
            found.append(each if len(each) > 1 else each[0])
    return found


_drawn = {
    "map": lambda: Dataset.range(3).map(lambda x: tf.random_uniform([], seed=5)),
    "shuffle": lambda: Dataset.range(3).shuffle(3, seed=5),
    "shuffled once": lambda: Dataset.range(3).shuffle(3, seed=5, reshuffle_each_iteration=False),
}


@pytest.mark.parametrize("make", _drawn.values(), ids=_drawn)
def test_each_use_of_a_dataset_begins_its_own_draws(make):
    """As TensorFlow 2.21 does: what shares a dataset gets one column twice; a dataset that is repeated goes on."""
    assert _ranks(Dataset.zip(((d := make()), d))) == [[0, 0], [1, 1], [2, 2]]
    assert _ranks(Dataset.zip(((d := make()), d.map(lambda x: x)))) == [[0, 0], [1, 1], [2, 2]]
    assert _ranks((d := make()).concatenate(d)) == [0, 1, 2, 0, 1, 2]
    assert _ranks(Dataset.zip(((d := make()).take(2), d.skip(1)))) == [[0, 1], [1, 2]]
    chosen = experimental.choose_from_datasets([(d := make()), d], Dataset.range(6).map(lambda i: i % 2))
    assert _ranks(chosen) == [0, 0, 1, 1, 2, 2]
    twice = _ranks(Dataset.zip(((d := make()), d)).repeat(2))
    assert len(twice) == 6 and all(a == b for a, b in twice)


def test_a_repeated_map_goes_on_and_a_zip_of_it_with_itself_does():
    def drawn():
        return Dataset.range(3).map(lambda x: tf.random_uniform([], seed=5))

    assert _ranks(drawn().repeat(2)) == [0, 1, 2, 3, 4, 5]
    assert _ranks(Dataset.zip(((d := drawn()), d)).repeat(2)) == [[i, i] for i in range(6)]
    again = _ranks(Dataset.zip(((d := Dataset.range(3).map(lambda x: tf.random_uniform([])).cache()), d)).repeat(2))
    assert again == [[0, 1], [2, 3], [4, 5]] * 2


@pytest.mark.parametrize(("at", "calls"), [(0, 3), (1, 3)])
def test_a_zip_that_ends_takes_an_element_of_every_dataset(at, calls):
    """As TensorFlow does, so that caches of one length are filled; and after its end none."""
    seen = []
    noted = Dataset.range(5).map(lambda x: tf.py_func(lambda x: seen.append(x) or x, [x], tf.int64))
    parts = [noted]
    parts.insert(at, Dataset.range(2))
    element = Dataset.zip(tuple(parts)).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        for ends in (False, False, True, True):
            with pytest.raises(tf.errors.OutOfRangeError) if ends else contextlib.nullcontext():
                session.run(element)
    assert len(seen) == calls
