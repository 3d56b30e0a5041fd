"""The networks of examples/ and the same networks in PyTorch: losses and gradients of the same weights agree to 1e-4.

PyTorch's are the texts of benchmarks/network_texts.py, run by benchmarks/network_torch.py in the interpreter that ``TORCH_PYTHON``
names, or in this one. The programs themselves run in TensorFlow too, in the interpreter of ``TENSORFLOW_PYTHON``, where they make
variables of the same names and shapes and find the same losses::

    TORCH_PYTHON=.bench/torch/bin/python TENSORFLOW_PYTHON=.bench/tensorflow/bin/python \\
        python -m pytest tests/oracle/test_networks.py
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest

from benchmarks.network_sessions import build, initial_value

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TORCH_PYTHON", sys.executable)
TENSORFLOW = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
ROOT = Path(__file__).parents[2]

_SHARDED = {"batch": 40, "users": 23, "things": 11, "width": 3, "shards": 4}
_LSTM = {"batch": 3, "steps": 4, "vocabulary": 13, "units": 8, "layers": 2}
_ATTENTION = {"batch": 2, "length": 10, "vocabulary": 17, "width": 16, "heads": 4, "layers": 2}

#: Network -> its sizes. All have the depth and the images of the program, and narrower layers.
SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {"batch": 2, "narrow": 16, "classes": 10}) for name in ("alexnet", "overfeat", "vgg")},
    # not narrow 8: there one activation lies within rounding of zero, and the two rectifiers disagree
    "googlenet": ("googlenet", {"batch": 2, "narrow": 16, "classes": 10}),
    # so many layers that are normalised make much of rounding: activations near zero fall to either side in float32
    "inception_v3": ("inception_v3", {"batch": 2, "narrow": 16, "classes": 10, "dtype": "float64"}),
    "digits_cnn": ("digits_cnn", {"batch": 8, "width": 8}),
    "mlp": ("mlp", {"batch": 8, "inputs": 20, "hidden": 16}),
    "dcgan": ("dcgan", {"batch": 6, "width": 8}),
    "transformer": ("transformer", _ATTENTION),
    "gpt": ("gpt", _ATTENTION),
    "sharded_embedding div": ("sharded_embedding", {**_SHARDED, "strategy": "div"}),
    "sharded_embedding mod": ("sharded_embedding", {**_SHARDED, "strategy": "mod"}),
    "lstm_lm": ("lstm_lm", _LSTM),
    "lstm_lm unrolled": ("lstm_lm", {**_LSTM, "unrolled": True}),
    "lstm_lm sampled": ("lstm_lm", {**_LSTM, "sampled": 6}),
    "word2vec": ("word2vec", {"batch": 9, "vocabulary": 20, "width": 5, "sampled": 7}),
    "seq2seq": ("seq2seq", {"batch": 3, "length": 5, "vocabulary": 7, "units": 4}),
    "tree_lstm": ("tree_lstm", {"vocabulary": 6, "width": 3, "units": 4}),
}

#: Networks of tf.contrib, which the TensorFlow that is a peer here no longer has.
OF_CONTRIB = {"seq2seq"}

Values = dict[str, np.ndarray]


def _ours(network: str, sizes: dict[str, Any], folder: Path) -> Values:
    """Losses and gradients by graphdock; the folder gets the weights and what was fed."""
    with tf.Graph().as_default(), tf.Session() as sess:
        graph = build(tf, network, sizes)
        variables = {v.op.name: v for v in tf.trainable_variables()}
        weights = {n: initial_value(n, v.shape.as_list()).astype(v.dtype.as_numpy_dtype) for n, v in variables.items()}
        for name, variable in variables.items():
            variable.load(weights[name], sess)
        wanted = {f"loss/{number}": loss for number, loss in enumerate(graph.losses)}
        for number, loss in enumerate(graph.losses):
            for (name, variable), gradient in zip(
                variables.items(), tf.gradients(loss, list(variables.values())), strict=True
            ):
                wanted[f"gradient/{number}/{name}"] = _dense(gradient, variable)
        found = sess.run(wanted, graph.feed)
    fed = {f"fed/{number}": array for number, array in enumerate(graph.feed.values())}
    folder.mkdir()
    (folder / "request.json").write_text(json.dumps({"network": network, "sizes": sizes}), encoding="utf-8")
    np.savez(folder / "values.npz", **{f"parameter/{name}": value for name, value in weights.items()}, **fed)
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Values, Values]]:
    """Case -> graphdock's values and PyTorch's; one process of PyTorch computes them all."""
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, timeout=120).returncode:
        pytest.skip(f"{PYTHON} has no torch; TORCH_PYTHON may name an interpreter that has")
    folders = {case: tmp_path_factory.mktemp("networks") / "case" for case in SIZES}
    ours = {case: _ours(*SIZES[case], folder) for case, folder in folders.items()}
    subprocess.run(
        [PYTHON, "-m", "benchmarks.network_torch", *map(str, folders.values())],
        check=True,
        timeout=300,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return {case: (ours[case], dict(np.load(folder / "results.npz"))) for case, folder in folders.items()}


@pytest.mark.parametrize("case", SIZES)
def test_losses_and_gradients_are_pytorchs(case: str, both: dict[str, tuple[Values, Values]]) -> None:
    ours, theirs = both[case]
    assert ours.keys() == theirs.keys()
    for name, value in ours.items():
        assert value.shape == theirs[name].shape, name
        error = np.linalg.norm(value - theirs[name]) / max(np.linalg.norm(theirs[name]), 1e-6)
        assert error < 1e-4, f"{name}: off by {error:.1e} of its length"


IN_TENSORFLOW = """
import json, sys
import tensorflow.compat.v1 as tf
from benchmarks.network_sessions import build, initial_value
tf.disable_v2_behavior()
found = {}
for case, (network, sizes) in json.load(sys.stdin).items():
    with tf.Graph().as_default(), tf.Session() as sess:
        graph, variables = build(tf, network, sizes), tf.trainable_variables()
        for variable in variables:
            variable.load(initial_value(variable.op.name, variable.shape.as_list()), sess)
        shapes = [[v.op.name, v.shape.as_list()] for v in variables]
        found[case] = [shapes, [float(loss) for loss in sess.run(graph.losses, graph.feed)]]
print(json.dumps(found))
"""


def test_the_programs_run_in_tensorflow() -> None:
    if subprocess.run([TENSORFLOW, "-c", "import tensorflow"], capture_output=True, timeout=120).returncode:
        pytest.skip(f"{TENSORFLOW} has no TensorFlow; TENSORFLOW_PYTHON may name an interpreter that has")
    sizes = {case: given for case, given in SIZES.items() if given[0] not in OF_CONTRIB}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [TENSORFLOW, "-c", IN_TENSORFLOW],
        input=json.dumps(sizes),
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
    )
    theirs = json.loads(done.stdout.splitlines()[-1])
    for case, (network, given) in sizes.items():
        with tf.Graph().as_default(), tf.Session() as sess:
            graph, variables = build(tf, network, given), tf.trainable_variables()
            for variable in variables:
                variable.load(initial_value(variable.op.name, variable.shape.as_list()), sess)
            shapes = [[v.op.name, v.shape.as_list()] for v in variables]
            losses = sess.run(graph.losses, graph.feed)
        assert shapes == theirs[case][0], case
        np.testing.assert_allclose(losses, theirs[case][1], rtol=1e-4, err_msg=case)


def _dense(gradient: Any, variable: Any) -> Any:
    """A gradient as one tensor: zeros where a loss doesn't depend on the variable."""
    return tf.zeros_like(variable) if gradient is None else tf.convert_to_tensor(gradient)
