"""Names below tf that plugins publish: whose a name is, what is imported for it, and what is said of tables that are wrong."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from graphdock.errors import PluginError
from graphdock.plugin.endpoints import read_table
from graphdock.plugin.host import Host

ROOT = Path(__file__).parents[2]
MANIFEST = """\
schema = 1

[plugin]
name = "{name}"
summary = "Names"
api = ">=0.3,<0.4"
endpoints = "graphdock_{name}.table"
"""
#: Says in ``sys.modules`` alone that it was imported.
QUIET = '"""Nothing."""\n'


def publish(site, name, rows, distribution=None, **files):
    """Install a plugin whose table has ``rows``; each leads to the function ``f`` of its module ``made``."""
    distribution = distribution or f"graphdock-{name}"
    table = {row: f"graphdock_{name}.made:f" for row in rows}
    made = f"def f():\n    return {name!r}\n"
    return site.plugin(
        name,
        QUIET,
        manifest=MANIFEST.format(name=name),
        distribution=distribution,
        package=f"graphdock_{name}",
        files={"table.py": f"ENDPOINTS = {table!r}\n", "made.py": made} | {f"{k}.py": v for k, v in files.items()},
    )


def imported():
    """The modules of the test's plugins."""
    return {m for m in sys.modules if m.startswith(("graphdock_one.", "graphdock_two."))}


def python(site, code, **environ):
    """Run a program with the site on its path."""
    path = [str(site.folder), *sys.path]
    import os

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in path if p), **environ}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- whose a name is


def test_a_plugins_name_is_found(site):
    publish(site, "one", ["one.f", "f_of_one"])
    names = Host().endpoints
    assert names.target("one.f") == names.target("f_of_one") == "graphdock_one.made:f"
    assert names.target("one") == "" and names.target("two") is None
    assert {"one", "one.f", "f_of_one", "matmul", "nn", "nn.relu"} <= names.names()


def test_several_modules_have_a_plugins_names_and_functions_are_among_them(site):
    spelled = {"graphdock_one.made": {"tf.one tf.two": "f g=f"}}
    site.plugin(
        "one",
        QUIET,
        manifest=MANIFEST.format(name="one").replace(
            '"graphdock_one.table"', '["graphdock_one.table", "graphdock_one.names"]'
        ),
        package="graphdock_one",
        files={
            "table.py": "ENDPOINTS = {'one.h': 'graphdock_one.made:f'}\n",
            "names.py": f"FUNCTIONS = {spelled!r}\nENDPOINTS = {{}}\n",
        },
    )
    names = Host().endpoints
    found = {name for name in names.names() if name.startswith(("one.", "two."))}
    assert found == {"one.f", "one.g", "one.h", "two.f", "two.g"}
    assert {names.target(name) for name in found} == {"graphdock_one.made:f"}


def test_no_two_plugins_of_graphdocks_have_a_name_in_common():
    host = Host()
    tables = [read_table(state) for state in host.plugins(every=True) if state.found.is_own]
    assert sum(map(len, tables)) == len({name for table in tables for name in table}) > 1000


def test_a_table_that_is_asked_last_is_not_imported_for_a_name_of_others():
    code = (
        "import sys, graphdock as tf; tf.train.AdagradOptimizer, tf.nn.relu; "
        "print([m for m in sys.modules if m in ('graphdock_data.endpoints', 'graphdock_tensorflow.endpoints')])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_a_name_of_graphdocks_own_plugins_comes_first(site):
    publish(site, "one", ["matmul", "nn", "nn.relu", "nn.mine"])
    names = Host().endpoints
    assert names.target("matmul").startswith("graphdock_std.")
    assert names.target("nn") == ""
    assert names.target("nn.relu").startswith("graphdock_std.") and names.target("nn.mine") == "graphdock_one.made:f"


def test_of_graphdocks_own_the_first_in_the_order_of_discovery_comes_first(site):
    tables = {"aye": ["theirs"], "bee": ["theirs"]}
    for name, rows in tables.items():
        publish(site, name, rows, distribution=f"temporary-{name}")
        for info in site.folder.glob(f"temporary_{name}-*.dist-info"):
            for file in info.iterdir():
                file.unlink()
            info.rmdir()
    from importlib import metadata

    real = metadata.distribution("graphdock").read_text("entry_points.txt")
    rows = dict(r.split(" = ") for r in real.partition("[graphdock]")[2].partition("[")[0].split("\n") if " = " in r)
    site.record("graphdock", "9.0", {"bee": "graphdock_bee.plugin", "aye": "graphdock_aye.plugin", **rows})
    names = Host().endpoints
    assert names.target("theirs") == "graphdock_aye.made:f"


@pytest.mark.parametrize("rows", [(["f"], ["f"]), (["f"], ["f.g"]), (["f.g", "f.h"], ["f"])])
def test_a_name_that_two_publish_is_neithers(site, rows):
    publish(site, "one", [*rows[0], "mine"])
    publish(site, "two", rows[1])
    names = Host().endpoints
    with pytest.raises(PluginError) as caught:
        names.target("f")
    assert caught.value.message == (
        "tf.f is published by several plugins: 'one' (graphdock-one 1.0), 'two' (graphdock-two 1.0)"
    )
    assert caught.value.hint == '`block = ["two"]` under [plugins] leaves the others'
    assert "f" not in names.names()
    assert names.target("mine") == "graphdock_one.made:f"
    assert Host(block=["two"]).endpoints.target("mine")


def test_namespaces_of_two_merge(site):
    publish(site, "one", ["waves.a"])
    publish(site, "two", ["waves.b"])
    names = Host().endpoints
    assert names.target("waves") == ""
    assert (names.target("waves.a"), names.target("waves.b")) == ("graphdock_one.made:f", "graphdock_two.made:f")


# -- who publishes nothing


def test_a_blocked_plugin_publishes_nothing_and_is_told_of(site):
    publish(site, "one", ["f"])
    names = Host(block=["one"]).endpoints
    assert names.target("f") is None
    assert names.notes() == ("plugin 'one' publishes no name: blocked: block names 'one'", None)
    assert not imported()


def test_without_autoload_only_the_named_publish(site):
    publish(site, "one", ["f"])
    publish(site, "two", ["g"])
    names = Host(allow=["two"], autoload=False).endpoints
    assert names.target("f") is None and names.target("g") is not None
    assert "plugin 'one' publishes no name: blocked" in names.notes()[0]
    names = Host(autoload=False).endpoints
    assert names.target("g") is None and "plugins load only when they are named" in names.notes()[0]
    assert names.target("matmul") is not None  # graphdock's own load by themselves


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("raise RuntimeError('no licence')", "ENDPOINTS can't be read: RuntimeError: no licence"),
        ("X = 1", "ENDPOINTS can't be read: AttributeError"),
        ("ENDPOINTS = ['f']", "ENDPOINTS is no table"),
        ("ENDPOINTS = {'f': 'graphdock_one.made'}", "has a wrong row"),
        ("ENDPOINTS = {'f g': 'graphdock_one.made:f'}", "has a wrong row"),
        ("ENDPOINTS = {'f': len}", "has a wrong row"),
    ],
)
def test_a_table_that_cant_be_read_takes_no_name_from_others_and_is_told_of(site, table, words):
    publish(site, "one", [], table=table)
    publish(site, "two", ["g"])
    names = Host().endpoints
    assert names.target("g") == "graphdock_two.made:f" and names.target("f") is None
    told, cause = names.notes()
    assert words in told and "plugin 'one' (graphdock-one 1.0)" in told
    assert isinstance(cause, PluginError)


def test_names_may_stand_in_the_manifest(site):
    rows = '[plugin.endpoints]\n"one.f" = "graphdock_one.made:f"\n'
    text = MANIFEST.format(name="one").partition("endpoints")[0] + rows
    site.plugin("one", "raise SystemExit", manifest=text, files={"made.py": "def f():\n    return 1\n"})
    names = Host().endpoints
    assert names.target("one.f") == "graphdock_one.made:f" and names.target("one") == "" and not imported()
    site.plugin("two", QUIET, manifest=text.replace("one", "two").replace(":f", ""))
    names = Host().endpoints
    assert names.target("two.f") is None and "endpoints of its manifest has a wrong row" in names.notes()[0]


def test_a_session_imports_no_room_that_it_does_not_use(site):
    code = """
import sys, graphdock as tf
x = tf.placeholder(tf.float32, [2])
w = tf.Variable([1.0, 2.0])
train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.nn.relu(x * w)))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train, {x: [1.0, 2.0]})
rooms = [f"graphdock_{room}" for room in ("customop", "native", "opgen", "profiler", "testing")]
print([m for m in rooms if m in sys.modules])
"""
    assert python(site, code) == "[]"


def test_a_manifest_says_a_module_or_rows(site):
    site.plugin("one", QUIET, manifest=MANIFEST.format(name="one").replace("graphdock_one.table", "graphdock_one:x"))
    (entry,) = [e for e in Host().ledger if e.plugin == "one"]
    assert entry.stage == "bad manifest" and "'graphdock_one:x' is no endpoints" in entry.cause


# -- what is imported when


def test_tables_of_others_are_read_at_the_first_name_that_graphdocks_own_lack(site):
    publish(site, "one", ["one.f"])
    names = Host().endpoints
    assert names.target("matmul") and not imported()
    assert names.target("one.f") and imported() == {"graphdock_one.table"}


def test_import_and_the_hosts_names_read_no_manifest(site):
    publish(site, "one", ["one.f"])
    code = """
import sys, graphdock as tf
print(sorted(m for m in sys.modules if m.startswith(("graphdock.plugin", "graphdock_"))))
tf.dtypes, tf.float32, tf.GraphKeys
print([m for m in sys.modules if m.startswith("graphdock.plugin.manifest") or m.startswith("graphdock_")])
"""
    assert python(site, code).splitlines()[0] == "[]"


def test_a_name_is_found_without_numpy_and_without_the_entry_points_module(site):
    publish(site, "one", ["one.f"])
    code = """
import sys, graphdock as tf
assert tf.one.f() == "one"
assert "matmul" in dir(tf) and "relu" in dir(tf.nn) and dir(tf.one) == ["f"]
print([m for m in ("numpy", "graphdock_one.plugin", "graphdock.graph.graph", "graphdock_std.plugin") if m in sys.modules])
"""
    assert python(site, code) == "[]"


# -- the façade


def test_a_namespace_of_a_plugin_is_a_module_too(site):
    publish(site, "one", ["one.deep.f", "nn.mine"])
    code = """
import graphdock.one.deep as deep
from graphdock.one.deep import f
from graphdock.nn import mine, relu
import graphdock as tf
assert deep.f is f is tf.one.deep.f and mine is tf.nn.mine and "mine" in dir(tf.nn) and "relu" in dir(tf.nn)
import pydoc
assert "relu" in pydoc.render_doc(tf.nn)
try:
    tf.one.deeq
except AttributeError as error:
    print(error)
"""
    assert python(site, code) == "module 'graphdock.one' has no attribute 'deeq'; did you mean 'deep'?"


def test_a_clash_is_an_error_of_the_facade_and_not_of_its_list(site):
    publish(site, "one", ["f"])
    publish(site, "two", ["f"])
    code = """
import graphdock as tf
assert "f" not in dir(tf)
try:
    tf.f
except tf.errors.PluginError as error:
    print(error.message)
"""
    assert python(site, code).startswith("tf.f is published by several plugins: 'one'")


def test_where_std_is_blocked_a_name_of_its_says_so(site):
    code = """
import graphdock as tf
for space, name in ((tf, "matmul"), (tf.nn, "relu")):  # tf1 has names in tf.nn too
    try:
        getattr(space, name)
    except AttributeError as error:
        print(error)
tf.constant, tf.identity, tf.Session
"""
    said = python(site, code, GRAPHDOCK_BLOCK="std").splitlines()
    assert said == [
        f"module {space!r} has no attribute {name!r}; plugin 'std' publishes no name: blocked: GRAPHDOCK_BLOCK"
        for space, name in (("graphdock", "matmul"), ("graphdock.nn", "relu"))
    ]


def test_a_table_that_cant_be_read_is_the_cause(site):
    publish(site, "one", [], table="import no_such_driver")
    code = """
import graphdock as tf
tf.matmul
try:
    tf.nothing_of_that_name
except AttributeError as error:
    print(error)
    print(type(error.__cause__.__cause__).__name__)
"""
    message, cause = python(site, code).splitlines()
    assert "ENDPOINTS can't be read: ModuleNotFoundError: No module named 'no_such_driver'" in message
    assert cause == "ModuleNotFoundError"


def test_a_table_that_asks_for_names_while_it_is_imported_is_read(site, process_host):
    asks = (
        "import graphdock as tf\ngetattr(tf, 'nothing_of_that_name', None)\nENDPOINTS = {'f': 'graphdock_one.made:f'}\n"
    )
    publish(site, "one", [], table=asks)
    names = process_host(Host()).endpoints
    assert names.target("f") == "graphdock_one.made:f" and names.notes() == ("", None)


def test_a_plugin_explains_names_that_nobody_publishes(site):
    text = MANIFEST.format(name="one").replace("endpoints =", "name_hint =").replace(".table", ".words:hint")
    words = "def hint(name):\n    return f'use tf.matmul, not {name}' if name == 'nn.dot' else None\n"
    site.plugin("one", QUIET, manifest=text, files={"words.py": words})
    names = Host().endpoints
    assert names.hint("nn.dot") == "use tf.matmul, not nn.dot" and names.hint("matmull") is None


# -- what doctor finds


def test_doctor_finds_names_that_nobody_can_use(site):
    table = {
        "one.f": "graphdock_one.made:f",
        "one.g": "graphdock_one.made:g",
        "one.h": "graphdock_one.absent:h",
        "Session": "graphdock_one.made:f",
        "matmul": "graphdock_one.made:f",
    }
    publish(site, "one", [], table=f"ENDPOINTS = {table!r}\n")
    code = """
from graphdock_commands.checks import _unpublished
from graphdock.plugin.host import Host
host = Host()
(state,) = [s for s in host.plugins() if s.name == "one"]
print("\\n".join(_unpublished(host, state)))
"""
    assert python(site, code).splitlines() == [
        "tf.one.g: there is no graphdock_one.made:g",
        "tf.one.h: graphdock_one.absent can't be imported: ModuleNotFoundError: No module named 'graphdock_one.absent'",
        "tf.Session is the host's own",
        "tf.matmul is published by a plugin of graphdock's, which comes first",
    ]


# -- the package of a third party, and the host's own text


def test_the_package_of_the_page_works(site, builder):
    source = ROOT / "tests" / "packages" / "graphdock-waves"
    site.project(source)
    code = f"""
import sys
sys.path.insert(0, {str(source / "src")!r})
import numpy as np, graphdock as tf
from graphdock.waves import triangle
x = tf.constant([0.25, 0.5, 0.75, 1.2])
with tf.Session() as session:
    print(*np.round(session.run([tf.waves.square(x)[0], tf.waves.square(x)[2], triangle(x)[3]]), 3))
assert tf.signal.square_wave is tf.waves.square and "square_wave" in dir(tf.signal) and tf.signal.hann_window
"""
    assert python(site, code) == "1.0 -1.0 0.2"


def test_no_string_of_the_host_names_a_plugins_package():
    packages = {path.name for path in ROOT.glob("*/*/graphdock_*")} | {path.name for path in ROOT.glob("*/graphdock_*")}
    host = ROOT / "host" / "graphdock"
    found = {}
    for path in sorted(host.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named = {p for p in packages if p in node.value}
                if named:
                    found[f"{path.relative_to(host)}:{node.lineno}"] = named
    assert len(packages) > 10
    assert found == {}
