"""The kernels of benchmarks/gpu_kernels.py, tiny: each is computed by the kernel that it is there to measure, and right."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_triton import compiling
from graphdock_triton.testing.compiler import InterpretingCompiler

from benchmarks.gpu_kernels import CASES, graphdock_kernel

#: Case -> the kernels of its step.
KERNELS = {
    "gelu": {"triton.region"},
    "gelu with gradient": {"triton.region"},
    "softmax": {"triton.softmax"},
    "layer norm": {"triton.norm"},
    "layer norm with gradient": {"triton.norm", "triton.norm_grad"},
    "rms norm": {"triton.norm"},
    "dropout": {"triton.region"},
    "cross-entropy with gradient": {"triton.sparse_loss_with_gradient"},
    "rotary": {"triton.rotary", "cuda.reshape"},
    "rows of a table": {"triton.gather_rows"},
    "batch norm": {"triton.batch_norm"},
    "dense layer": {"triton.matmul"},
    "dense layer with gradient": {
        "triton.matmul", "cuda.gelu_tanh_grad", "cuda.mat_mul_with_sums", "cuda.matmul_lt",
    },
    "convolution": {"triton.fused_conv2d"},
    "attention": {"triton.attention"},
    "attention with gradient": {"triton.attention", "triton.attention_grad"},
    "linear cross-entropy": {
        "triton.sparse_loss_with_gradient", "cuda.broadcast_to", "cuda.matmul_lt", "cuda.mean", "cuda.real_div",
    },
}  # fmt: skip
pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler for the emulated CUDA")


@pytest.fixture
def host(process_host):
    made = process_host(Host())
    tools = toolkit()
    install(made, tools)
    before = compiling.use(InterpretingCompiler())
    yield made
    compiling.use(before)
    tools.driver.verify()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(2)
def test_a_kernel_is_what_it_is_measured_as(host, name):
    found = []
    for backends in (["cpu"], ["triton", "cuda", "cpu"]):
        with (
            tf.Graph().as_default() as graph,
            tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session,
        ):
            call, kept = graphdock_kernel(tf, session, CASES[name], True, tf.float32)
            call()
            found.append([session.run(v) for v in kept])
            kernels = session.explain(graph.get_operation_by_name("group_deps")).kernels()
    assert kernels.keys() == KERNELS[name]
    for want, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
