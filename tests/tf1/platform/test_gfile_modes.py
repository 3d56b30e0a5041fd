"""What the modes of ``tf.gfile.GFile`` allow and where reading goes on: random programs, answered as TensorFlow answered them."""

from __future__ import annotations

import json
from pathlib import Path

import graphdock as tf
import pytest

from tests.tf1.platform.gfile_programs import answers, program

#: A line per program: mode, what the file held, calls, TensorFlow 2.15's answers.
RECORDED = [
    json.loads(line) for line in Path(__file__).with_name("gfile_answers.jsonl").read_text("utf-8").splitlines()
]


def test_programs_answer_as_recorded() -> None:
    assert [program(seed) for seed in range(len(RECORDED))] == [(m, h, c) for m, h, c, _ in RECORDED]
    wrong = [(m, h, c, a) for m, h, c, a in RECORDED if answers(tf.gfile.GFile, m, h, c) != a]
    assert not wrong, wrong[:3]


def test_reading_sees_what_was_flushed_behind_the_end_that_it_saw(tmp_path) -> None:
    file = tf.gfile.GFile(str(tmp_path / "f"), "a+")
    file.write("ab")
    assert file.size() == 2 and file.read() == "ab" and file.read() == ""
    file.write("cd")
    file.flush()
    assert file.read() == "cd"  # TensorFlow's reader keeps the end that it saw
    file.close()


@pytest.mark.parametrize("call", [lambda f: f.seek(), lambda f: f.seek(offset=0, position=0)])
def test_seek_takes_one_place(tmp_path, call) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    file = tf.gfile.GFile(str(tmp_path / "f"))
    with pytest.raises(TypeError):
        call(file)
    file.seek(position=2)
    assert file.read() == "c" and file.seekable()


def test_a_folder_is_no_file(tmp_path) -> None:
    for mode, call in [("r", lambda f: f.read()), ("w", lambda f: f.write("x"))]:
        with pytest.raises(tf.errors.FailedPreconditionError):
            call(tf.gfile.GFile(str(tmp_path), mode))


@pytest.mark.parametrize("mode", ["", "b", "x", "+", "rw", "rt", "U", "r++"])
def test_another_mode_is_refused_when_the_file_is_named(tmp_path, mode) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="no mode"):
        tf.gfile.GFile(str(tmp_path / "f"), mode)
