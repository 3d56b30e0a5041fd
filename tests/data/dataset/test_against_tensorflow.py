"""What datasets give, against TensorFlow's answers: types, shapes, elements, and the error at the end."""

from __future__ import annotations

import graphdock as tf


def test_a_dataset_gives_what_tensorflow_gave(program, programs, answers):
    assert programs.answer(tf, programs.PROGRAMS[program]) == answers[program]


def test_every_answer_is_asked_for(programs, answers):
    assert list(answers) == list(programs.PROGRAMS)
