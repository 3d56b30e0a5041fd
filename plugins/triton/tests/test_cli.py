"""``graphdock triton build``: what it compiles, prints and leaves, and that a machine without a compiler runs on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.contracts import KernelRefused
from graphdock_cuda.driver.nvrtc import find_libraries
from graphdock_triton import compiling
from graphdock_triton.compiling import Job, cubin_for, cubin_of
from graphdock_triton.cubin import Cubin, Options

PROGRAM = """
import graphdock as tf

x = tf.placeholder(tf.float32, [None, 64], name="x")
y = 0.5 * x * (1 + tf.tanh(0.8 * (x + 0.04 * x * x * x)))
fed = (y, {x: [[1.0] * 64] * 30})
start = tf.Variable(tf.random_uniform([32, 32], seed=1, name="drawn") * 2.0 - 1.0)
train = start.read_value()
image = tf.placeholder(tf.float32, [2, 8, 8, 4])
conv = tf.nn.conv2d(image, tf.ones([3, 3, 4, 16]), [1, 1, 1, 1], "SAME")
logits = tf.reshape(tf.nn.fused_batch_norm(conv, tf.ones([16]), tf.zeros([16]))[0], [128, 16])
loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.placeholder(tf.int32, [128]), logits=logits)
wide = tf.placeholder(tf.bfloat16, [4096, 1024])
dense = tf.nn.relu(tf.nn.bias_add(tf.matmul(wide, tf.ones([1024, 4096], tf.bfloat16)), tf.ones([4096], tf.bfloat16)))
"""


class Fake:
    """A compiler. Attributes: ``names``: what it compiled; ``fails``: whether it can't."""

    keeps, version = True, "fake"

    def __init__(self):
        self.names, self.fails = [], False

    def compile(self, job, architecture):
        if self.fails:
            raise KernelRefused(f"{job.name} is not in the cache\nand more")
        self.names.append((job.name, architecture))
        return Cubin(b"image", "kernel", 128, 2048, registers=32 + len(job.divisible), spills=8)


@pytest.fixture
def fake(monkeypatch, tmp_path, process_host):
    from graphdock.plugin.host import Host

    monkeypatch.setenv("GRAPHDOCK_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setattr(
        "graphdock_cuda.driver.nvrtc.Nvrtc", type("Nvrtc", (), {"version": "no", "compile": lambda *_: b""})
    )
    process_host(Host())
    made = Fake()
    before = compiling.use(made)
    yield made
    compiling.use(before)


@pytest.fixture
def build(fake, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(name, *arguments):
        compiling.use(fake)  # forgets what this process has
        return CliRunner().invoke(cli, ["triton", "build", f"{tmp_path / 'program.py'}:{name}", *arguments])

    return run


def test_a_programs_kernels_are_compiled_for_each_architecture_and_shown(build, fake, tmp_path):
    done = build("fed", "--arch", "sm_90", "--arch", "sm_80", "--to", str(tmp_path / "there"))
    assert done.exit_code == 0, done.output
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("region")]
    assert {(name.rstrip("*"), arch) for name, arch, *_ in rows} == set(fake.names) and len(rows) == len(fake.names)
    assert {row[1] for row in rows} == {"sm_90a", "sm_80"} and {tuple(row[3:]) for row in rows} == {
        ("8", "2048", "compiled")
    }
    assert "* takes any addresses" in done.stdout.splitlines()[-1]
    kept = list((tmp_path / "there" / "triton").rglob("*.cubin"))
    assert len(kept) == len(rows) and not (tmp_path / "own" / "triton").exists()


def test_each_is_made_for_any_addresses_too(build, tmp_path):
    rows = json.loads(build("fed", "--arch", "sm_90", "--json").stdout)
    names = [row["kernel"] for row in rows]
    assert len(names) == len({*names}) and {n for n in names if n.endswith("*")} == {
        f"{n}*" for n in names if n[-1] != "*"
    }
    fewer = {row["kernel"]: row["registers"] for row in rows}
    assert all(fewer[f"{n}*"] < fewer[n] for n in names if n[-1] != "*")


def test_the_second_time_everything_comes_from_the_folder(build, fake):
    build("fed", "--arch", "sm_90")
    fake.fails = True
    rows = json.loads(build("fed", "--arch", "sm_90", "--json").stdout)
    assert rows and {row["from"] for row in rows} == {"cache"}


def test_the_initial_values_of_variables_are_planned_too(build, fake):
    assert build("train", "--arch", "sm_90").exit_code == 0
    assert len(fake.names) == 2


def test_kernels_of_the_library_that_ops_ask_for_are_compiled_too(build, fake):
    pytest.importorskip("triton")
    assert build("loss", "--arch", "sm_90").exit_code == 0
    found = {name for name, _ in fake.names if not name.startswith("region")}
    parts = {f"batch_norm_channel_{part}" for part in ("parts", "statistics", "apply")}
    assert found == parts | {"conv2d_conv_tiles", "sparse_cross_entropy_sparse_cross_entropy_tiles"}


def test_what_computes_for_addresses_that_descriptors_cannot_have_is_compiled_too(build):
    pytest.importorskip("triton")
    rows = json.loads(build("dense", "--arch", "sm_90", "--json").stdout)
    products = {row["kernel"] for row in rows if row["kernel"].startswith("matmul")}
    assert products == {"matmul_persistent_matmul_walk", "matmul_persistent_matmul_walk*", "matmul_matmul_tiles*"}


def test_what_does_not_compile_is_named_and_the_plan_is_made_without_it(build, fake):
    fake.fails = True
    done = build("fed", "--arch", "sm_90")
    assert done.exit_code == 1 and "these plans have no kernels of Triton" in done.stdout
    assert (
        "some kernels do not compile" in done.stderr and "for sm_90a" in done.stderr and "and more" not in done.stderr
    )


def test_sizes_that_are_not_known_are_asked_for(build):
    done = build("y", "--arch", "sm_90")
    assert "sizes are not known" in done.stdout and "a pair, (fetches, feed_dict)" in done.stdout


def test_an_architecture_that_nobody_knows(build):
    done = build("fed", "--arch", "sm_91")
    assert done.exit_code == 1 and "no GPU of architecture 'sm_91' is known" in done.stderr and "sm_90" in done.stderr


def test_explain_plans_for_a_gpu_that_is_not_here(fake, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    explain = ["explain", f"{tmp_path / 'program.py'}:fed", "--backends", "triton,cuda,cpu", "--plan-for"]
    done = CliRunner().invoke(cli, [*explain, "cuda=sm_90"])
    assert done.exit_code == 0 and "triton.region" in done.stdout, done.output
    assert {arch for _, arch in fake.names} == {"sm_90a"}
    wrong = CliRunner().invoke(cli, [*explain, "sm_90"])
    assert wrong.exit_code == 2 and "--plan-for takes TYPE=ARCH, such as cuda=sm_90, not 'sm_90'" in wrong.stderr


def test_tuned_tiles_are_kept_for_whoever_takes_the_folder_along(build, fake, tmp_path):
    done = build("fed", "--arch", "sm_90", "--tune")
    assert done.exit_code == 0, done.output
    assert len(list((tmp_path / "own" / "triton" / "sm_90a").glob("*.choice"))) == 2
    assert len(fake.names) > len([line for line in done.stdout.splitlines() if line.startswith("region")])


def test_a_launch_takes_the_kernel_for_any_addresses_where_there_is_no_other(fake):
    job = Job("kernel", "key", lambda: None, {"x": "*fp32", "K": "i32"}, {}, Options(), ("x", "K"))
    assert job.plain.divisible == ("K",)
    plain = cubin_of(job.plain, "sm_90a").result()
    fake.fails = True
    assert cubin_for(job, "sm_90a") == plain
    with pytest.raises(KernelRefused, match="not in the cache"):
        cubin_for(job, "sm_80")


@pytest.mark.skipif(not find_libraries(), reason="planning for a GPU needs NVRTC")
@pytest.mark.exhaustive
def test_a_process_that_cannot_import_triton_plans_with_what_was_built(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {**os.environ, "GRAPHDOCK_CACHE_DIR": str(tmp_path / "cache"), "GRAPHDOCK_DEBUG": ""}
    built = [sys.executable, "-m", "graphdock", "triton", "build", f"{tmp_path / 'program.py'}:fed", "--arch", "sm_90"]
    subprocess.run(built, env=env, check=True, capture_output=True, cwd=tmp_path)
    code = (
        "import sys; sys.path.insert(0, 'broken')\nimport graphdock as tf, program\n"
        "config = tf.SessionConfig(backends=['triton', 'cuda', 'cpu'], plan_for={'cuda': 'sm_90'})\n"
        "with tf.Session(config=config) as sess: print(sess.explain(*program.fed))\n"
    )
    (tmp_path / "broken" / "triton").mkdir(parents=True)
    (tmp_path / "broken" / "triton" / "__init__.py").write_text("raise ImportError('no compiler here')")
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "triton.region" in done.stdout and "cuda.tanh" not in done.stdout
