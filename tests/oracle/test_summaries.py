"""Summary operations give the bytes of TensorFlow's, and TensorBoard's own readers read the event files.

TensorFlow, and the TensorBoard that it brings, is the one of this interpreter, or of the interpreter that ``TENSORFLOW_PYTHON``
names.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)

#: Name -> the text of a summary; ``a`` holds the arrays of :data:`ARRAYS`.
SUMMARIES = {
    **{f"scalar {kind}": f"tf.summary.scalar('s', a['{kind}'][0])" for kind in ("f16", "f32", "f64", "i32", "u8")},
    **{
        f"histogram {kind}": f"tf.summary.histogram('h', a['{kind}'])"
        for kind in ("f16", "f32", "f64", "i32", "u8", "wide")
    },
    "histogram of none": "tf.summary.histogram('h', a['none'])",
    "nan": "tf.summary.scalar('big and /more$', a['nan'])",
    "family": "tf.summary.scalar('x', a['f32'][0], family='fam ily')",
    "text": "tf.summary.text('t', tf.constant(['a', 'größe']))",
    "tensor": "tf.summary.tensor_summary('t', a['i32'], summary_description='d', display_name='n', family='f')",
    "audio": "tf.summary.audio('a', a['sound'], 44100.7)",
    "mono": "tf.summary.audio('a', a['sound'][:, :, 0], 8000, max_outputs=1)",
    "merged": "tf.summary.merge([tf.summary.scalar('s', 1.0), tf.summary.histogram('h', a['f32'])])",
}
#: Images: the bytes of two PNG files may differ while their pixels are the same.
IMAGES = {
    name: f"tf.summary.image('i', a['{name}'])"
    for name in ("positive", "signed", "half", "double", "bad", "dark", "bytes")
}
IMAGES["one"] = "tf.summary.image('i', a['bytes'], max_outputs=1, family='f')"


def arrays():
    rng = np.random.default_rng(4)
    bad = rng.standard_normal((2, 3, 4, 3)).astype(np.float32)
    bad[0, 0, 0, 0], bad[0, 1, 1, 2], bad[1] = np.nan, np.inf, -np.inf
    return {
        "f16": rng.standard_normal(99).astype(np.float16),
        "f32": rng.standard_normal(10_007).astype(np.float32),
        "f64": rng.standard_normal(501) * 10.0 ** rng.integers(-16, 24, 501),
        "i32": rng.integers(-1000, 1000, 64).astype(np.int32),
        "u8": np.arange(1, 256, dtype=np.uint8),
        "wide": np.array([1e-12, -1e-12, 0, -0.0, 1e20, 1e300, -1e300, 1.1e-12, 5e-324, 1.7e308]),
        "none": np.zeros((0, 3), np.float32),
        "nan": np.float32(np.nan),
        "sound": (rng.standard_normal((4, 50, 2)) * 0.7).astype(np.float32),
        "positive": rng.random((4, 5, 4, 3)).astype(np.float32) * 7,
        "signed": rng.standard_normal((1, 5, 4, 1)).astype(np.float32),
        "half": rng.standard_normal((1, 6, 6, 4)).astype(np.float16),
        "double": rng.standard_normal((1, 6, 6, 3)) * 1e30,
        "bad": bad,
        "dark": np.full((1, 2, 2, 1), 1e-7, np.float32),
        "bytes": rng.integers(0, 256, (2, 4, 5, 4)).astype(np.uint8),
    }


WRITER = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_eager_execution(); tf.disable_v2_behavior()
a, out = np.load(sys.argv[1] + "/arrays.npz"), {}
for name, text in SUMMARIES.items():
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        made = eval(text)
        names = [op.name for op in graph.get_operations() if op.type.endswith(("Summary", "SummaryV2"))]
        out[name] = np.frombuffer(sess.run(made), np.uint8)
        out[name + "|names"] = np.array(names)
np.savez(sys.argv[1] + "/summaries.npz", **out)
"""


def run(text, *args):
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, check=False).returncode:
        pytest.skip("TensorFlow is not installed")
    done = subprocess.run([PYTHON, "-c", text, *args], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tensorflow")
    np.savez(folder / "arrays.npz", **arrays())
    run(f"SUMMARIES = {SUMMARIES | IMAGES!r}\n{WRITER}", str(folder))
    return np.load(folder / "summaries.npz")


def ours(text):
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        made = eval(text, {"tf": tf, "a": arrays()})
        names = [op.name for op in graph.get_operations() if op.type.endswith(("Summary", "SummaryV2"))]
        return sess.run(made), names


@pytest.mark.parametrize("name", SUMMARIES)
def test_bytes_and_names(expected, name):
    data, names = ours(SUMMARIES[name])
    assert data == expected[name].tobytes() and names == expected[name + "|names"].tolist()


@pytest.mark.parametrize("name", IMAGES)
def test_pixels_and_tags(expected, name):
    image = pytest.importorskip("PIL.Image")

    def facts(data):
        values = tf.Summary.FromString(data).value
        return [
            (
                v.tag,
                (v.image.height, v.image.width, v.image.colorspace),
                np.asarray(image.open(io.BytesIO(v.image.encoded_image_string))).tolist(),
            )
            for v in values
        ]

    data, names = ours(IMAGES[name])
    assert facts(data) == facts(expected[name].tobytes()) and names == expected[name + "|names"].tolist()


READER = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
files = EventAccumulator(sys.argv[1], dict.fromkeys(("histograms", "images", "audio", "tensors", "scalars"), 0)).Reload()
graph = files.Graph()
stats = files.RunMetadata("step 1").step_stats.dev_stats
print(json.dumps({
    "tags": files.Tags(),
    "loss": [(e.step, e.value) for e in files.Scalars("loss")],
    "weights": [(e.step, e.histogram_value.num, e.histogram_value.max) for e in files.Histograms("weights")],
    "image": [(e.step, e.width, e.height) for e in files.Images("picture/image")],
    "audio": [(e.step, e.sample_rate, e.length_frames) for e in files.Audio("sound/audio")],
    "note": [e.tensor_proto.string_val[0].decode() for e in files.Tensors("note")],
    "nodes": {n.name: [n.op, n.device, list(n.input)] for n in graph.node},
    "stats": {n.node_name: [n.all_end_rel_micros, n.memory[0].total_bytes if n.memory else 0] for d in stats for n in d.node_stats},
}))
"""


def test_tensorboards_readers_read_what_a_writer_wrote(tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        with tf.name_scope("layer"), tf.device("/cpu:0"):
            w = tf.get_variable("w", [3, 4], initializer=tf.ones_initializer())
            y = tf.matmul(x, w, name="product")
        tf.summary.scalar("loss", tf.reduce_sum(y))
        tf.summary.histogram("weights", w)
        tf.summary.image("picture", tf.zeros([1, 6, 9, 3]), max_outputs=1)
        tf.summary.audio("sound", tf.zeros([1, 20]), 8000, max_outputs=1)
        tf.summary.text("note", tf.constant("# words"))
        every = tf.summary.merge_all()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(tf.global_variables_initializer())
        with tf.summary.FileWriter(str(tmp_path), graph) as writer:
            for step in range(3):
                metadata = tf.RunMetadata()
                feed = {x: np.full((2, 3), step)}
                writer.add_summary(sess.run(every, feed, options, metadata), step)
                writer.add_run_metadata(metadata, f"step {step}", step)
        operations = {op.name: op for op in graph.get_operations()}
    found = json.loads(run(READER, str(tmp_path)))
    assert found["loss"] == [[0, 0.0], [1, 24.0], [2, 48.0]]
    assert found["weights"] == [[step, 12.0, 1.0] for step in range(3)]
    assert found["image"] == [[step, 9, 6] for step in range(3)]
    assert found["audio"] == [[step, 8000.0, 20] for step in range(3)]
    assert found["note"] == ["# words"] * 3
    assert found["tags"]["graph"] and found["tags"]["run_metadata"] == ["step 0", "step 1", "step 2"]
    assert found["nodes"].keys() == operations.keys()
    assert found["nodes"]["layer/product"] == ["MatMul", "/device:CPU:0", ["x", "w/Read/ReadVariableOp"]]
    micros, size = found["stats"]["layer/product"]
    assert micros >= 1 and size == 2 * 4 * 4
