"""Data is data: whatever a GraphDef, a spec, a manifest, a configuration, a variable or a command line says, the only exceptions
are those of graphdock.errors, none of them an InternalError; nothing is imported, and what failed leaves nothing behind.

Each test takes a seed and runs so many cases of it; together they are more than five thousand. To see one case again: its seed and
number are in the failure.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from pathlib import Path

import fuzz
import graphdock as tf
import numpy as np
import pytest
from click.testing import CliRunner
from graphdock.cli import cli
from graphdock.config.session_config import SessionConfig, effective_config
from graphdock.errors import ConfigError, GraphdockError, InternalError, ShapeError
from graphdock.opdef.shape_rule import ShapeRule
from graphdock.plugin import settings
from graphdock.plugin.host import Host
from graphdock.plugin.manifest import MARKER, loads
from graphdock_opgen.library import load_file
from graphdock_opgen.render import render_library
from graphdock_tensorflow.plain_data.format import to_json

pytestmark = pytest.mark.slow  # what is read does not depend on debug mode

#: Kind of data -> seeds of the suite, and cases of each.
SUITE = {
    "graph": (10, 300),
    "spec": (8, 100),
    "manifest": (5, 400),
    "toml": (5, 300),
    "environment": (2, 300),
    "command": (2, 100),
}
#: Seeds that only the exhaustive run takes, besides those of the suite.
MORE = 40
ROOT = Path(__file__).parents[2]


def seeds(kind):
    quick = SUITE[kind][0]
    rest = [pytest.param(s, marks=pytest.mark.exhaustive) for s in range(quick, quick + MORE)]
    return pytest.mark.parametrize("seed", [*range(quick), *rest])


def test_the_suite_has_thousands_of_cases():
    assert sum(n * count for n, count in SUITE.values()) >= 5000


def survives(kind, seed, attempt):
    """Run every case of a seed; how many were refused."""
    refused = 0
    for number, rng in enumerate(fuzz.cases(seed, SUITE[kind][1])):
        try:
            attempt(rng)
        except InternalError:
            print(f"seed {seed}, case {number}")
            raise
        except GraphdockError as error:
            refused += 1
            assert str(error) and len(str(error)) < 20_000, f"seed {seed}, case {number}"
        except BaseException:
            print(f"seed {seed}, case {number}")
            raise
        assert "fuzz_canary_was_imported" not in sys.modules, f"seed {seed}, case {number}"
    return refused


@pytest.fixture(autouse=True)
def canary(tmp_path_factory, monkeypatch):
    """A module that the data names, and that says so when somebody imports it."""
    folder = tmp_path_factory.mktemp("canary")
    (folder / "fuzz_canary.py").write_text("import sys\nsys.modules['fuzz_canary_was_imported'] = sys\n")
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("fuzz_canary_was_imported", None)


# -- GraphDefs


def _straight():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    w = tf.Variable(np.ones((3, 2), np.float32), name="w")
    with tf.device("cpu:0"):
        y = tf.matmul(x, w, name="y")
    with tf.control_dependencies([w.initializer]), tf.colocate_with(y):
        tf.concat([y, y * 2.0], axis=0, name="joined")


def _constants():
    tf.constant([np.nan, np.inf, -0.0, 1e300], tf.float64, name="floats")
    tf.constant([b"text", b"\xff\x00"], name="strings")
    tf.constant(np.arange(300, dtype=np.int64), name="large")
    tf.reshape(tf.range(tf.constant(6), name="r"), [2, -1], name="shaped")
    tf.placeholder(tf.float32, None, name="loose").set_shape([None, 7])
    tf.split(tf.zeros([4, 2]), 2, name="parts")


def _branches():
    x, p = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.bool, [], name="p")
    tf.cond(p, lambda: tf.cond(p, lambda: x * 2.0, lambda: x), lambda: x + 1.0, name="c")


def _loops():
    x = tf.placeholder(tf.float32, [], name="x")
    _, y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x), [0, x], name="loop")
    tf.gradients(y, [x])


def graph_defs():
    made = []
    for build in (_straight, _constants, _branches, _loops):
        with tf.Graph().as_default() as graph:
            build()
        made.append(json.loads(to_json(graph)))
    return made


@pytest.fixture(scope="module")
def files():
    return graph_defs()


OP_TYPES = (
    "NoOp",
    "Cond",
    "While",
    "Const",
    "Placeholder",
    "Split",
    "Reshape",
    "VarHandleOp",
    "PyFunc",
    "Range",
    "Fill",
    "Nope",
)


@seeds("graph")
@pytest.mark.sampled(4)
def test_graph_defs(seed, files):
    donors = [*fuzz.WILD, *OP_TYPES, *(v for f in files for n in f["nodes"] for v in (n, *n.get("attrs", {}).values()))]

    def attempt(rng):
        data = rng.choice(files)
        if rng.random() < 0.3:
            data = fuzz.edited(rng, json.dumps(data))
        else:
            data = fuzz.changed(rng, data, donors)
        with tf.Graph().as_default() as graph:
            try:
                tf.import_graph_def(data, name=rng.choice(("", "import")))
            except GraphdockError:
                assert graph.get_operations() == [] and graph.unique_name("import") == "import"
                raise
            with tf.Graph().as_default():  # what was read can be written, and read again
                tf.import_graph_def(to_json(graph), name="")

    assert survives("graph", seed, attempt) > SUITE["graph"][1] // 2


# -- specs

SPECS = [
    """\
graphdock_opdef: 1
namespace: fuzzed
ops:
- name: Mix
  summary: A mix.
  doc: Two words.
  types: {T: {allow: [float32, float64], default: float32}}
  attrs:
  - {name: N, type: int, min: 1}
  - {name: keep, type: bool, default: false}
  - {name: mode, type: string, default: up, one_of: [up, down]}
  - {name: out, type: type, default: float32}
  - {name: sizes, type: list(int), default: [1, 2], max: 3}
  - {name: kept, type: shape, default: [1, null]}
  inputs:
  - {name: xs, dtype: T, shape: "[*S, A]", arity: {many: {count: N}}}
  - {name: w, dtype: T, shape: "[A]"}
  - {name: b, dtype: T, shape: "[A]", arity: optional}
  dims:
    let: {K: "A if keep else 1"}
    where: [{check: "A > 0", error: "A is {A}"}]
  outputs: [{name: y, dtype: T, shape: "[*S, K]"}]
  cost: {flops: "2 * size(xs) / A", bytes: "?"}
  gradient:
    let: {gw: "g.y * w"}
    inputs: {xs: {fn: mix_xs}, w: "gw if keep else g.y", b: none}
  tests:
    samples:
    - {xs: [{shape: [2, 3], dtype: float32}], w: {shape: [3]}, b: null, attrs: {keep: true, out: int32}, types: {T: float32}}
    - {xs: [{value: [[1.0]]}], w: {value: [2], low: 0, high: 9, dtype: float64}, note: small}
    error_samples: [{xs: [{shape: [2, 3]}], w: {shape: [4]}, match: "A is"}]
    tolerances: {float32: {rtol: 1.0e-5}}
    gradcheck: {inputs: [w]}
  api: {endpoints: [{name: mix}], operator: __matmul__, rename: {xs: inputs}, order: [xs, w]}
""",
    """\
graphdock_opdef: 1
namespace: fuzzed
ops:
- name: Twice
  version: 2
  summary: Both.
  math: y = x + x
  types: {T: {allow: floats}}
  inputs: [{name: x, dtype: T, shape: "[*S]"}]
  outputs: [{name: y, dtype: T, shape: "[*S]"}]
  traits: {pure: true, elementwise: true, deterministic: bitwise}
  aliases: {y: x}
  scalar: "x + x"
  identity: x
  gradient: {inputs: {x: {op: TwiceGrad}}}
  decompose: ["two = 2.0", "y = x * two"]
  reference: "graphdock_std.grad_support:sum_to"
  tests: {samples: [{x: {shape: [2], low: 0.5, high: 2}, types: {T: float32}, note: plain}]}
  api: {endpoints: [{name: twice}, {name: fuzzed.twice}]}
- name: TwiceGrad
  summary: Its gradient.
  types: {T: {allow: floats}}
  inputs: [{name: grad_y, dtype: T, shape: "[*S]"}]
  outputs: [{name: dx, dtype: T, shape: "[*S]"}]
  gradient: {inputs: {grad_y: {todo: second order}}}
- name: Table
  summary: A handle.
  executes: handle
  resource: fuzzed.Table
  attrs: [{name: container, type: string, default: ""}, {name: shared_name, type: string, default: ""}]
  outputs: [{name: handle, dtype: resource}]
  traits: {stateful: true}
""",
]


def infers(rng, opdef):
    """Shapes that fit nothing are refused, and whatever passed the check of the generator can be evaluated."""
    if opdef.shape_fn is not None:
        return
    rule = ShapeRule(opdef)
    some = {
        "int": 2,
        "float": 0.5,
        "bool": True,
        "string": "up",
        "type": tf.float32,
        "shape": (2, None),
        "tensor": np.ones(2),
    }
    for _ in range(5):
        attrs = {t.name: (tf.float32,) * 2 if t.is_list else tf.float32 for t in opdef.types}
        for attr in opdef.attrs:
            base = attr.type.removeprefix("list(").removesuffix(")")
            attrs[attr.name] = (some.get(base),) * 2 if attr.type.startswith("list(") else some.get(base)
        dims = lambda: rng.choice((None, (), (0,), (2,), (3, None), (2, 3), (1, 2, 3, 0)))  # noqa: E731
        shapes = [
            [dims() for _ in range({"one": 1, "optional": rng.randrange(2)}.get(a.arity, 2))] for a in opdef.inputs
        ]
        try:
            for made in rule.infer(attrs, shapes, lambda i: None):
                assert made is None or all(d is None or (type(d) is int and d >= 0) for d in made)
        except ShapeError:
            pass


@seeds("spec")
@pytest.mark.sampled(8)
def test_specs(seed, tmp_path):
    import yaml

    data = [yaml.safe_load(text) for text in SPECS]
    texts = [
        "A (is",
        "class",
        "_x",
        "x y",
        "*" * 20,
        "[" * 300,
        "a" * 200,
        "none",
        "T",
        "float32",
        "mix",
        "TwiceGrad",
        "1e999",
        "}",
    ]

    def attempt(rng):
        number = rng.randrange(len(SPECS))
        kind = rng.random()
        if kind < 0.25:
            text = fuzz.edited(rng, SPECS[number], 2)
        elif kind < 0.6:
            text = json.dumps(fuzz.retexted(rng, data[number], texts))
        else:
            text = json.dumps(fuzz.changed(rng, data[number], times=2), ensure_ascii=rng.random() < 0.5)
        path = tmp_path / "fuzzed.yaml"
        path.write_text(text, encoding="utf-8", errors="replace", newline="")
        errors = []
        library = load_file(path, "fuzzed_library", errors.append)
        rendered = render_library(library, errors.append)
        for name, source in rendered.items():
            source.encode()
            if name.endswith((".py", ".pyi")):
                ast.parse(source)
        for error in errors:
            assert error.file == str(path), error
        if errors:
            raise errors[0]
        opdefs = {}
        exec(rendered["_gen/opdefs.py"], opdefs)
        for build in opdefs["OPS"].values():
            infers(rng, build())

    assert survives("spec", seed, attempt) > SUITE["spec"][1] // 2


# -- manifests and configurations

MANIFEST = f"""\
schema = 1

[plugin]
name    = "lab"
summary = "A laboratory"
api     = ">=0.3,<0.4"
imports = ["numpy"]
install = "pip install graphdock-lab"

[[devices]]
type = "lab"
aliases = ["bench"]

[options]
memory = {{type = "int", default = 1024, min = 16, max = 4096, doc = "Bytes."}}
speed = {{type = "float", default = 0.5}}
name = {{type = "string", default = "x"}}

[[conformance.xfail]]
op = "MatMul"
dtype = "float64"
reason = "The chip has no float64 unit."

{MARKER}
[ops]
names = [
  "lab.Scale",
]

[kernels]
rows = [
  {{op = "lab.Scale", device = "lab", types = {{T = ["float32", "float64"]}}}},
]
"""


@seeds("manifest")
def test_manifests(seed):
    def attempt(rng):
        manifest = loads(fuzz.edited(rng, MANIFEST), Path("graphdock_lab/graphdock-plugin.toml"))
        assert all(isinstance(n, str) for n in (manifest.name, manifest.summary, *manifest.imports))
        given = {
            rng.choice(("memory", "speed", "name", "nope")): rng.choice(fuzz.WILD) for _ in range(rng.randrange(3))
        }
        assert set(manifest.resolve_options(given, "here")) == set(manifest.options)
        assert len([*manifest.kernels, *manifest.op_names]) < 100

    assert survives("manifest", seed, attempt) > SUITE["manifest"][1] // 4


CONFIG = """\
[session]
backends = ["cpu"]
fallback = {default = "forbid", Where = "allow"}
kernels = {"MatMul@cpu" = "cpu.mat_mul"}
executor = "auto"
device_count = {cpu = 2}
memory_limit = {cpu = "2GiB"}
passes = {fold = false}
fusion = true
plan_cache_size = 64
shape_policy = "auto"
operation_timeout = 2.5
debug = false

[session.options.cpu]
x = 1

[plugins]
allow = ["cpu"]
block = []
autoload = true

[profile.laptop.session]
backends = ["cpu"]
"""


#: Values of TOML that a setting may not expect.
VALUES = (
    *(
        "0",
        "-1",
        "3",
        "1e999",
        "inf",
        "nan",
        "true",
        '""',
        '"x"',
        '"1e400GiB"',
        "[]",
        "[1]",
        "{}",
        "{a = 1}",
        "{a = {b = []}}",
    ),
    *(
        "1" * 400,
        "9" * 5000,
        "9223372036854775807",
        "0.0000001",
        "1979-05-27",
        '["a", "a"]',
        '["", 3]',
        "[[[]]]",
        '"""x"""',
        '"\\u0000"',
    ),
)


@pytest.fixture
def outside(tmp_path, monkeypatch):
    """A working directory of its own, and no GRAPHDOCK_* variable."""
    for name in [n for n in os.environ if n.startswith("GRAPHDOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    left = [n for n in os.environ if n.startswith("GRAPHDOCK_")]
    for name in left:
        del os.environ[name]
    assert not left


@seeds("toml")
@pytest.mark.sampled(2)
def test_configuration_files(seed, outside):
    def attempt(rng):
        own = rng.random() < 0.7
        path = outside / ("graphdock.toml" if own else "pyproject.toml")
        text = (
            CONFIG if own else CONFIG.replace("[session", "[tool.graphdock.session").replace("[p", "[tool.graphdock.p")
        )
        if rng.random() < 0.4:
            lines = text.splitlines()
            i = rng.choice([i for i, line in enumerate(lines) if " = " in line])
            lines[i] = f"{lines[i].partition(' = ')[0]} = {rng.choice(VALUES)}"
            text = "\n".join(lines)
        else:
            text = fuzz.edited(rng, text)
        path.write_text(text, encoding="utf-8", newline="")
        try:
            for profile in (None, "laptop"):
                assert isinstance(SessionConfig.from_toml(path, profile), SessionConfig)
            told = settings.plugin_settings({}, settings.find_file({}))
            hash(effective_config())
            Host(told.allow, told.block, told.autoload, origins=told.origins)
        finally:
            path.unlink()

    assert survives("toml", seed, attempt) > SUITE["toml"][1] // 3


@seeds("environment")
@pytest.mark.sampled(2)
def test_environments(seed, outside, monkeypatch):
    (outside / "graphdock.toml").write_text(CONFIG)
    names = [*settings.ENVIRONMENT, "GRAPHDOCK_BACKEND", "GRAPHDOCK_", "GRAPHDOCK_X" * 50, "HOME"]
    values = [
        *(v for v in fuzz.WILD if isinstance(v, str)),
        "cpu",
        "cpu,std",
        "warn",
        "1",
        "0",
        "laptop",
        "graphdock.toml",
        ".",
    ]

    def attempt(rng):
        given = {}
        for _ in range(rng.randint(1, 3)):
            value = rng.choice(values)
            given[rng.choice(names)] = fuzz.edited(rng, value, 2) if rng.random() < 0.5 else value
        given = {
            n: v.replace("\x00", "").encode(errors="surrogateescape" if "\ud800" not in v else "replace")
            for n, v in given.items()
        }
        given = {n: os.fsdecode(v) for n, v in given.items()}
        try:
            SessionConfig.from_env(given)
        except ConfigError:
            pass
        with monkeypatch.context() as patch:
            for name, value in given.items():
                patch.setenv(name, value)
            effective_config()
            told = settings.plugin_settings()
            Host(told.allow, told.block, told.autoload, origins=told.origins)
            settings.cache_dir()

    survives("environment", seed, attempt)


# -- command lines

COMMANDS = [
    ["plugins", "--json"],
    ["ops", "MatMul", "--json"],
    ["kernels", "MatMul", "--backends", "cpu"],
    ["explain", "program.py:main", "--backends", "cpu", "--fallback", "warn", "--all", "--source"],
    ["config", "--backends", "cpu", "--config", "graphdock.toml", "--profile", "laptop", "--json"],
    ["devices", "--json"],
    ["new", "plugin", "lab", "--device", "--ops", "--summary", "A lab", "--dir", "made"],
    ["new", "op", "ClipNorm", "--package", "pkg"],
    ["opgen", "check", "pkg"],
    ["opgen", "generate", "pkg", "--counts"],
    ["opgen", "schema", "--out", "schema.json"],
    ["opgen", "manifest", "pkg", "--module", "nope"],
    ["--version"],
]
PROGRAM = "import graphdock as tf\n\n\ndef main():\n    return tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))\n"


@seeds("command")
@pytest.mark.sampled(4)
def test_command_lines(seed, outside, monkeypatch):
    monkeypatch.setattr("graphdock_opgen.new.opgen", lambda *args: None)
    monkeypatch.setattr("graphdock_commands.devices.facts", lambda *args: [])
    (outside / "graphdock.toml").write_text("[session]\nbackends = ['cpu']\n[profile.laptop.session]\n")
    (outside / "program.py").write_text(PROGRAM)
    (outside / "pkg" / "specs").mkdir(parents=True)
    (outside / "pkg" / "__init__.py").write_text("")
    (outside / "pkg" / "specs" / "fuzzed.yaml").write_text(SPECS[1])
    words = [w for c in COMMANDS for w in c]
    texts = [v for v in fuzz.WILD if isinstance(v, str) and "canary" not in v]  # a target of explain is code

    def attempt(rng):
        line = list(rng.choice(COMMANDS))
        for _ in range(rng.randint(1, 3)):
            i = rng.randrange(len(line) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                line.insert(i, rng.choice((*words, *texts)))
            elif kind == 1 and i < len(line):
                del line[i]
            elif i < len(line) and line[i] not in ("plugins", "ops", "explain", "new", "opgen"):
                line[i] = fuzz.edited(rng, line[i], 2) if kind == 2 else rng.choice(texts)
        line = [w.replace("\x00", "").replace("\ud800", "") for w in line]
        if "demo" in line or "doctor" in line:
            return
        done = CliRunner().invoke(cli, line)
        assert done.exception is None or isinstance(done.exception, SystemExit), (line, done.exc_info)
        assert done.exit_code in (0, 1, 2), line
        assert not [n for n in os.environ if n.startswith("GRAPHDOCK_")], line
        assert "InternalError" not in done.output and "graphdock broke a promise" not in done.output, line

    survives("command", seed, attempt)


def test_the_canary_sings():
    """Were a reader to import what its data names, the tests above would fail."""
    with pytest.raises(AssertionError, match="seed 0, case 0"):
        survives("graph", 0, lambda rng: __import__("fuzz_canary"))
    sys.modules.pop("fuzz_canary", None)
