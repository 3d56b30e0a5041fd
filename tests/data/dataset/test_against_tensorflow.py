"""What datasets give, against TensorFlow's answers: types, shapes, elements, and the error at the end."""

from __future__ import annotations

import graphdock as tf


def test_a_dataset_gives_what_tensorflow_gave(program, programs, answers):
    assert programs.answer(tf, programs.PROGRAMS[program]) == answers[program]


def test_every_answer_is_asked_for(programs, answers):
    assert list(answers) == list(programs.PROGRAMS)


def test_a_cardinality_is_the_number_of_elements(programs, answers):
    known = 0
    for program, answer in answers.items():
        if (
            "refused" in answer or program == "map_that_stops"
        ):  # a function that ends the elements is not foreseen there either
            continue
        with tf.Graph().as_default(), tf.Session() as session:
            found = session.run(tf.data.experimental.cardinality(programs.PROGRAMS[program](tf)))
        if (
            found >= 0
            and answer["end"] == "OutOfRangeError"
            and not any(isinstance(e, str) for e in answer["elements"])
        ):
            assert found == len(answer["elements"]), program
            known += 1
    assert known > 20
    endless = tf.data.Dataset.range(3).repeat()
    counts = [tf.data.experimental.cardinality(d) for d in (endless, endless.filter(lambda x: x > 0), endless.take(2))]
    with tf.Session() as session:
        assert session.run(counts) == [-1, -2, 2]
