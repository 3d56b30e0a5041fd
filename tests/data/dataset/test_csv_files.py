"""CSV files: dtypes that are guessed, quotes over lines, and what is refused. Python's csv module is the reference."""

from __future__ import annotations

import csv

import graphdock as tf
import pytest

experimental = tf.data.experimental


def drained(dataset):
    with tf.Session() as session:
        element, found = dataset.make_one_shot_iterator().get_next(), []
        while True:
            try:
                found.append(session.run(element))
            except tf.errors.OutOfRangeError:
                return found


def test_fields_with_quotes_commas_and_newlines(tmp_path):
    rows = [["a", 'say "x"', "1,2"], ["line\none", "", "\n\n"], ['"', ",", "z"], ["", "b\r", "c"]][:3]
    path = tmp_path / "rows.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    found = drained(experimental.CsvDataset(str(path), [[""]] * 3))
    assert [[field.decode() for field in row] for row in found] == rows


@pytest.mark.parametrize(
    ("fields", "dtype"),
    [
        (["1", "-2", ""], tf.int32),
        (["1", "3000000000"], tf.int64),
        (["1", "2.5"], tf.float32),
        (["1", "1e300"], tf.float64),
        (["1", "x"], tf.string),
        (["", ""], tf.int32),
        (["inf", "2"], tf.float32),
    ],
)
def test_dtypes_are_guessed(tmp_path, fields, dtype):
    path = tmp_path / "one.csv"
    path.write_text("n,m\n" + "".join(f"{field},0\n" for field in fields))
    dataset = experimental.make_csv_dataset(str(path), 1, shuffle=False, num_epochs=1)
    assert dataset.output_types["n"] is dtype
    assert len(drained(dataset)) == len(fields)


def test_what_does_not_fit_is_refused(tmp_path):
    path = str(tmp_path / "one.csv")
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    (tmp_path / "two.csv").write_text("a,c\n1,2\n")
    make = experimental.make_csv_dataset
    for named, words in (
        ({"column_names": ["a", "a"]}, "duplicate"),
        ({"label_name": "c"}, "label_name"),
        ({"select_columns": ["c"]}, "names or numbers"),
        ({"select_columns": [0, 0]}, "twice"),
        ({"column_defaults": [tf.int32]}, "as many column_defaults"),
        ({"header": False}, "without a header"),
    ):
        with pytest.raises(ValueError, match=words):
            make(path, 1, **named)
    with pytest.raises(ValueError, match="different header"):
        make(str(tmp_path / "*.csv"), 1)
    with pytest.raises(tf.errors.NotFoundError, match="no file matches"):
        make(str(tmp_path / "none*"), 1)


def test_a_record_that_is_damaged_is_passed_over_on_request(tmp_path):
    (tmp_path / "one.csv").write_text("a,b\n1,2\n3\n4,5\n")
    named = {"column_defaults": [tf.int32, tf.int32], "shuffle": False, "num_epochs": 1}
    with pytest.raises(tf.errors.InvalidArgumentError):
        drained(experimental.make_csv_dataset(str(tmp_path / "one.csv"), 4, **named))
    (found,) = drained(experimental.make_csv_dataset(str(tmp_path / "one.csv"), 4, ignore_errors=True, **named))
    assert found["a"].tolist() == [1, 4] and found["b"].tolist() == [2, 5]
