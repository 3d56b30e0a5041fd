"""Summary operations: names, tags and collections as TensorFlow 1.15 has them, and what their bytes say."""

from __future__ import annotations

import io
import wave

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(summary, feed=None):
    with tf.Session() as sess:
        return tf.Summary.FromString(sess.run(summary, feed))


def value(summary, feed=None):
    (found,) = run(summary, feed).value
    return found


def test_scalar():
    """Bytes of TensorFlow's."""
    made = tf.summary.scalar("a b/loss$", 1.5)
    with tf.Session() as sess:
        assert sess.run(made) == b"\n\x10\n\ta_b/loss_\x15\x00\x00\xc0?"
    assert (made.op.name, made.dtype, made.shape.as_list()) == ("a_b/loss_", tf.string, [])
    assert [t.op.name for t in made.op.inputs] == ["a_b/loss_/tags", "a_b/loss_/values"]
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == [made]
    assert np.isnan(value(tf.summary.scalar("nan", float("nan"))).simple_value)
    assert value(tf.summary.scalar("int", tf.constant(7, tf.int64))).simple_value == 7.0


def test_tags_follow_scopes_and_families():
    with tf.name_scope("outer"):
        a, b = tf.summary.scalar("l", 1.0), tf.summary.scalar("l", 1.0)
        c = tf.summary.scalar("/l", 1.0, family="fam", collections=["x", "y"])
    assert [value(s).tag for s in (a, b, c)] == ["outer/l", "outer/l_1", "fam/outer/fam/l"]
    assert c.op.name == "outer/fam/l"
    assert tf.get_collection("x") == tf.get_collection("y") == [c] and tf.get_collection(tf.GraphKeys.SUMMARIES) == [
        a,
        b,
    ]
    with pytest.raises(InvalidArgumentError, match="name"):
        tf.summary.scalar(None, 1.0)


def test_merge_and_merge_all():
    assert tf.summary.merge_all() is None and tf.summary.merge_all(key="other") is None
    a = tf.summary.scalar("a", 1.0)
    with tf.name_scope("s"):
        b = tf.summary.scalar("b", 2.0)
    every, some = tf.summary.merge_all(), tf.summary.merge_all(scope="s", name="some")
    assert (every.op.name, some.op.name) == ("Merge/MergeSummary", "some/some")
    assert [v.tag for v in run(every).value] == ["a", "s/b"] and [v.tag for v in run(some).value] == ["s/b"]
    merged = tf.summary.merge([b, a, every], collections=["c"])
    assert tf.get_collection("c") == [merged]
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match="Duplicate tag s/b found"):
        sess.run(merged)
    with pytest.raises(InvalidArgumentError, match="at least"):
        tf.summary.merge([])
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match="no Summary"):
        sess.run(tf.summary.merge([tf.constant(b"junk")]))


def test_histogram():
    x = tf.placeholder(tf.float32, [None])
    made = tf.summary.histogram("h", x)
    assert [t.op.name for t in made.op.inputs] == ["h/tag", x.op.name]
    found = value(made, {x: [1.0, 2.0, 2.0]})
    assert found.histo.num == 3 and found.histo.max == 2 and sum(found.histo.bucket) == 3
    with tf.Session() as sess:
        with pytest.raises(InvalidArgumentError, match="Nan in summary histogram for: h"):
            sess.run(made, {x: [1.0, np.nan]})
        with pytest.raises(InvalidArgumentError, match="Infinity in summary histogram for: h"):
            sess.run(made, {x: [np.inf]})
    with pytest.raises(DTypeError):
        tf.summary.histogram("words", tf.constant(["a"]))


def test_image():
    x = tf.placeholder(tf.float32, [None, 2, 3, 3])
    found = run(tf.summary.image("im", x), {x: np.ones((5, 2, 3, 3))})
    assert [v.tag for v in found.value] == ["im/image/0", "im/image/1", "im/image/2"]
    image = found.value[0].image
    assert (image.height, image.width, image.colorspace) == (2, 3, 3) and image.encoded_image_string[1:4] == b"PNG"
    one = run(tf.summary.image("im", x, max_outputs=1, family="f"), {x: np.ones((5, 2, 3, 3))})
    assert [v.tag for v in one.value] == ["f/f/im/image"]
    assert not run(tf.summary.image("none", x), {x: np.ones((0, 2, 3, 3))}).value


def test_a_wrong_image_is_refused_when_the_graph_is_made():
    with pytest.raises(ShapeError, match="rank") as caught:
        tf.summary.image("im", tf.zeros([2, 3, 3]))
    assert "tensor" in str(caught.value)
    with pytest.raises(ShapeError, match="1, 3 or 4 channels, not 2"):
        tf.summary.image("im", tf.zeros([1, 3, 3, 2]))
    with pytest.raises(DTypeError, match="int32"):
        tf.summary.image("im", tf.zeros([1, 3, 3, 1], tf.int32))
    with pytest.raises(InvalidArgumentError, match="max_images"):
        tf.summary.image("im", tf.zeros([1, 3, 3, 1]), max_outputs=0)
    unknown = tf.placeholder(tf.float32)
    made = tf.summary.image("later", unknown)
    with tf.Session() as sess, pytest.raises(ShapeError, match="rank"):
        sess.run(made, {unknown: np.zeros((2, 2))})
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match="no picture"):
        sess.run(made, {unknown: np.zeros((1, 0, 2, 1))})


def test_audio():
    found = run(tf.summary.audio("a", tf.constant([[0.0, 0.5], [1.0, -1.0]]), 8000, max_outputs=2))
    assert [v.tag for v in found.value] == ["a/audio/0", "a/audio/1"]
    audio = found.value[0].audio
    assert (audio.sample_rate, audio.num_channels, audio.length_frames, audio.content_type) == (
        8000.0,
        1,
        2,
        "audio/wav",
    )
    with wave.open(io.BytesIO(audio.encoded_audio_string)) as file:
        assert file.getnframes() == 2
    with tf.Session() as sess, pytest.raises(InvalidArgumentError, match="sample_rate"):
        sess.run(tf.summary.audio("a", tf.zeros([1, 2]), -1.0))
    with pytest.raises(ShapeError, match="rank 2 or 3"):
        tf.summary.audio("a", tf.zeros([4]), 8000)


@pytest.mark.parametrize("shape", [(2, 0), (2, 0, 2)])
def test_a_sound_of_no_frames_is_a_file_without_them(shape):
    found = run(tf.summary.audio("a", tf.zeros(shape), 8000))
    assert [v.audio.length_frames for v in found.value] == [0, 0]
    with wave.open(io.BytesIO(found.value[0].audio.encoded_audio_string)) as file:
        assert (file.getnframes(), file.getnchannels()) == (0, 1 if len(shape) == 2 else 2)


def test_text_and_tensors():
    found = value(tf.summary.text("t", tf.constant(["a", "b"])))
    assert found.metadata.plugin_data.plugin_name == "text" and found.tensor.string_val == [b"a", b"b"]
    with pytest.raises(DTypeError, match="strings"):
        tf.summary.text("t", tf.constant(3))
    metadata = tf.SummaryMetadata(display_name="old")
    made = tf.summary.tensor_summary(
        "x", tf.constant([[1, 2]]), summary_description="d", summary_metadata=metadata, display_name="n", family="f"
    )
    found = value(made)
    assert (found.tag, found.metadata.display_name, found.metadata.summary_description) == ("f/f/x", "n", "d")
    assert metadata.display_name == "old", "what was given stays"
    assert np.frombuffer(found.tensor.tensor_content, np.int32).tolist() == [1, 2]


def test_summaries_of_a_device_are_made_on_the_host():
    """The operations stand under any device: what they read is moved."""
    from graphdock.plugin.host import Host
    from graphdock_testing import fake

    host = Host()
    fake.install(host)
    with tf.Graph(host).as_default() as graph, tf.device("/fake:0"):
        x = tf.placeholder(tf.float32, [2])
        made = tf.summary.merge([tf.summary.scalar("s", tf.reduce_sum(x)), tf.summary.histogram("h", x * 2.0)])
        config = tf.SessionConfig(backends=("fake", "cpu"))
        with tf.Session(graph=graph, config=config, host=host) as sess:
            found = tf.Summary.FromString(sess.run(made, {x: [1.0, 2.0]}))
    assert found.value[0].simple_value == 3.0 and found.value[1].histo.sum == 6.0
    host.close()


def test_messages_stand_under_their_names():
    assert tf.summary.Summary is tf.Summary and tf.summary.Event is tf.Event and tf.summary.SessionLog is tf.SessionLog
    histogram = tf.HistogramProto(min=1.0)
    assert tf.Summary(value=[tf.Summary.Value(tag="a", histo=histogram)]).value[0].histo == histogram
    with pytest.raises(TypeError):
        tf.Summary(value=[tf.Summary.Value(tag=1)])
