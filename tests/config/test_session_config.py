"""SessionConfig: its values and their checks, and which source wins, field by field."""

import copy
import pickle
from pathlib import Path

import pytest
from graphdock.config.session_config import SessionConfig, effective_config
from graphdock.config.values import CHECKS
from graphdock.errors import ConfigError
from graphdock.plugin.settings import ENVIRONMENT, KEYS

DEFAULTS = {
    "backends": ("cpu",),
    "fallback": "warn",
    "kernels": {},
    "executor": "auto",
    "placer": "rules",
    "lock": None,
    "device_count": {},
    "plan_for": {},
    "memory_limit": {},
    "memory_budget": {},
    "passes": {},
    "fusion": True,
    "plan_cache_size": 2048,
    "shape_policy": "auto",
    "intra_op_threads": 0,
    "inter_op_threads": 0,
    "deterministic": False,
    "check_numerics": False,
    "operation_timeout": None,
    "steps_in_flight": 1,
    "cluster": {},
    "device_filters": (),
    "isolate_session_state": False,
    "bfloat16_sendrecv": False,
    "log_device_placement": False,
    "options": {},
    "debug": False,
}


@pytest.fixture
def work(site, tmp_path):
    """The working directory: no file, no variable."""
    return tmp_path / "work"


def test_the_defaults(work):
    resolved = effective_config().resolved()
    assert {name: value for name, (value, _) in resolved.items()} == DEFAULTS
    assert {source for _, source in resolved.values()} == {"default"}


# -- precedence

FILE = '[session]\nbackends = ["file", "cpu"]\n'
LAYERS = ["code", "command line", "environment", "file", "default"]
EXPECTED = {
    "code": (("code",), "code"),
    "command line": (("line", "cpu"), "--backends"),
    "environment": (("env", "cpu"), "GRAPHDOCK_BACKENDS"),
    "file": (("file", "cpu"), "graphdock.toml:2"),
    "default": (("cpu",), "default"),
}


@pytest.mark.parametrize("strongest", range(len(LAYERS)), ids=LAYERS)
def test_each_source_beats_all_below_it(work, monkeypatch, strongest):
    present = LAYERS[strongest:]
    code = SessionConfig(backends=["code"]) if "code" in present else None
    line = {"backends": "line,cpu"} if "command line" in present else None
    if "environment" in present:
        monkeypatch.setenv("GRAPHDOCK_BACKENDS", "env, cpu")
    if "file" in present:
        (work / "graphdock.toml").write_text(FILE)
    config = effective_config(code, line)
    assert (config.backends, config.source("backends")) == EXPECTED[LAYERS[strongest]]


def test_precedence_is_per_field(work, monkeypatch):
    (work / "graphdock.toml").write_text('[session]\nbackends = ["file"]\nfallback = "allow"\nfusion = false\n')
    monkeypatch.setenv("GRAPHDOCK_FALLBACK", "forbid")
    resolved = effective_config(SessionConfig(fusion=True)).resolved()
    assert resolved["backends"] == (("file",), "graphdock.toml:2")
    assert resolved["fallback"] == ("forbid", "GRAPHDOCK_FALLBACK")
    assert resolved["fusion"] == (True, "code")


def test_a_field_set_in_code_to_its_default_is_set(work):
    (work / "graphdock.toml").write_text('[session]\nfallback = "allow"\n')
    assert effective_config(SessionConfig(fallback="warn")).fallback == "warn"
    assert effective_config(SessionConfig()).fallback == "allow"


def test_a_profile_goes_over_the_session_table(work, monkeypatch):
    (work / "graphdock.toml").write_text(
        '[session]\nbackends = ["cuda", "cpu"]\nfallback = "allow"\n\n[profile.laptop.session]\nbackends = ["cpu"]\n'
    )
    monkeypatch.setenv("GRAPHDOCK_PROFILE", "laptop")
    resolved = effective_config().resolved()
    assert resolved["backends"] == (("cpu",), "graphdock.toml:6")
    assert resolved["fallback"] == ("allow", "graphdock.toml:3")


def test_what_changed_outside_is_seen(work, monkeypatch):
    assert effective_config().backends == ("cpu",)
    monkeypatch.setenv("GRAPHDOCK_BACKENDS", "toy")
    assert effective_config().backends == ("toy",)
    monkeypatch.delenv("GRAPHDOCK_BACKENDS")
    (work / "graphdock.toml").write_text(FILE)
    assert effective_config().backends == ("file", "cpu")
    (work / "graphdock.toml").write_text('[session]\nbackends = ["another"]\n')
    assert effective_config().backends == ("another",)


def test_the_same_question_gets_the_same_object(work):
    config = SessionConfig(backends=["x"])
    assert effective_config(config) is effective_config(config)
    assert effective_config(config) is effective_config(SessionConfig(backends=("x",)))
    assert effective_config(effective_config(config)) is effective_config(config)


# -- sources by name


def test_from_toml_sets_what_the_file_says_and_no_more(work, monkeypatch):
    (work / "other.toml").write_text(FILE)
    monkeypatch.setenv("GRAPHDOCK_BACKENDS", "env")
    monkeypatch.setenv("GRAPHDOCK_FALLBACK", "forbid")
    config = SessionConfig.from_toml("other.toml")
    assert repr(config) == "SessionConfig(backends=('file', 'cpu'))"
    resolved = config.resolved()
    assert resolved["backends"] == (("file", "cpu"), "other.toml:2")
    assert resolved["fallback"] == ("forbid", "GRAPHDOCK_FALLBACK")


def test_from_toml_with_a_profile(work):
    (work / "g.toml").write_text(
        FILE + "[profile.fast.session]\ndeterministic = false\n[profile.safe.session]\ndebug = true\n"
    )
    assert SessionConfig.from_toml("g.toml", profile="safe").debug is True
    with pytest.raises(ConfigError) as caught:
        SessionConfig.from_toml("g.toml", profile="sfe")
    assert caught.value.message == "profile: g.toml has no profile 'sfe'"
    assert caught.value.expected == "one of fast, safe"
    assert caught.value.hint == "did you mean 'safe'?"


def test_from_env(work):
    config = SessionConfig.from_env({"GRAPHDOCK_DEBUG": "1", "GRAPHDOCK_EXECUTOR": "dataflow", "HOME": "/x"})
    assert repr(config) == "SessionConfig(executor='dataflow', debug=True)"
    assert config.resolved()["debug"] == (True, "GRAPHDOCK_DEBUG")


def test_replace_keeps_what_was_set_and_where(work):
    (work / "g.toml").write_text(FILE)
    config = SessionConfig.from_toml("g.toml").replace(debug=True)
    assert config.resolved()["backends"].source == "g.toml:2"
    assert config.resolved()["debug"] == (True, "code")
    assert config.resolved()["fallback"].source == "default"
    assert effective_config(config).replace(backends=["z"]).resolved()["backends"] == (("z",), "code")


# -- values


@pytest.mark.parametrize(
    ("field", "given", "value"),
    [
        ("backends", ["triton", "cuda"], ("triton", "cuda")),
        ("memory_limit", {"cuda": "20GiB", "cpu": 1000}, {"cuda": 20 * 2**30, "cpu": 1000}),
        ("memory_limit", {"cuda": "1.5 GB"}, {"cuda": 1_500_000_000}),
        ("operation_timeout", 3, 3.0),
        ("fallback", {"default": "forbid", "Where": "allow"}, {"default": "forbid", "Where": "allow"}),
        ("kernels", {"MatMul@cuda": "cuda.matmul_lt"}, {"MatMul@cuda": "cuda.matmul_lt"}),
        ("options", {"cuda": {"tile": 3}}, {"cuda": {"tile": 3}}),
    ],
)
def test_values_are_made_uniform(field, given, value):
    assert getattr(SessionConfig(**{field: given}), field) == value


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("backends", "cpu", "backends has the wrong type"),
        ("backends", [], "backends is wrong"),
        ("backends", ["cpu", "cpu"], "backends is wrong"),
        ("backends", [1], "backends has the wrong type"),
        ("fallback", "alow", "fallback is wrong"),
        ("fallback", {"Where": "maybe"}, "fallback is wrong"),
        ("kernels", {"MatMul": "cuda.x"}, "kernels is wrong"),
        ("kernels", {"MatMul@cuda": "matmul"}, "kernels['MatMul@cuda'] is wrong"),
        ("executor", "", "executor is wrong"),
        ("placer", "", "placer is wrong"),
        ("device_count", {"cpu": -1}, "device_count['cpu'] is wrong"),
        ("plan_for", {"cuda": 90}, "plan_for['cuda'] is wrong"),
        ("memory_limit", {"cuda": "many"}, "memory_limit['cuda'] is wrong"),
        ("passes", {"cse": 1}, "passes['cse'] has the wrong type"),
        ("fusion", "yes", "fusion has the wrong type"),
        ("plan_cache_size", 0, "plan_cache_size is wrong"),
        ("plan_cache_size", True, "plan_cache_size is wrong"),
        ("shape_policy", "free", "shape_policy is wrong"),
        ("intra_op_threads", -1, "intra_op_threads is wrong"),
        ("operation_timeout", 0, "operation_timeout is wrong"),
        ("options", {"cuda": 3}, "options['cuda'] is wrong"),
        ("debug", 1, "debug has the wrong type"),
    ],
)
def test_a_wrong_value_names_the_field(field, given, message):
    with pytest.raises(ConfigError) as caught:
        SessionConfig(**{field: given})
    assert caught.value.message == f"SessionConfig({field}=...): {message}"
    assert caught.value.expected


def test_an_unknown_field_suggests_the_nearest_or_what_replaced_it():
    with pytest.raises(ConfigError) as caught:
        SessionConfig(backend=["cpu"])
    assert (caught.value.message, caught.value.hint) == (
        "SessionConfig has no field 'backend'",
        "did you mean 'backends'?",
    )
    with pytest.raises(ConfigError) as caught:
        SessionConfig(allow_soft_placement=True)
    assert caught.value.hint == "write fallback='allow'"


def test_it_is_frozen_hashable_and_survives_pickling():
    config = SessionConfig(backends=["x"], options={"x": {"a": 1}}, memory_limit={"x": "1MiB"})
    with pytest.raises(AttributeError):
        config.debug = True
    with pytest.raises(TypeError):
        config.options["x"]["a"] = 2
    for other in (pickle.loads(pickle.dumps(config)), copy.deepcopy(config), config.replace()):
        assert other == config
        assert hash(other) == hash(config)
        assert repr(other) == repr(config)
    whole = effective_config(config)
    assert effective_config(pickle.loads(pickle.dumps(whole))) == whole


def test_fallback_for_an_op():
    assert SessionConfig(fallback="forbid").fallback_for("Add") == "forbid"
    config = SessionConfig(fallback={"default": "forbid", "Where": "allow"})
    assert (config.fallback_for("Where"), config.fallback_for("Add")) == ("allow", "forbid")
    assert SessionConfig(fallback={"Where": "allow"}).fallback_for("Add") == "warn"


def test_from_toml_reads_the_table_of_a_pyproject(work):
    (work / "pyproject.toml").write_text("[tool.graphdock.session]\nbackends = ['project']\n")
    assert SessionConfig.from_toml("pyproject.toml").resolved()["backends"] == (("project",), "pyproject.toml:2")


def test_a_dict_is_no_configuration():
    with pytest.raises(ConfigError, match=r"expected a tf\.SessionConfig or a tf\.ConfigProto, got a dict"):
        effective_config({"backends": ["cpu"]})


@pytest.mark.parametrize(
    ("text", "nbytes"), [("1KB", 1000), ("1KiB", 1024), ("2mb", 2_000_000), ("1.5 GiB", 3 << 29), ("7", 7), ("7 B", 7)]
)
def test_amounts_of_memory_in_words(text, nbytes):
    assert SessionConfig(memory_limit={"cuda": text}).memory_limit["cuda"] == nbytes


@pytest.mark.parametrize(
    "field", [{"memory_limit": {"cuda": 0}}, {"operation_timeout": 0}, {"memory_limit": {"cuda": True}}]
)
def test_nothing_is_no_limit(field):
    with pytest.raises(ConfigError):
        SessionConfig(**field)


def test_the_signature_shows_the_fields():
    import inspect
    from dataclasses import fields

    shown = inspect.signature(SessionConfig).parameters
    assert list(shown) == [f.name for f in fields(SessionConfig)] == list(KEYS["session"]) == list(CHECKS)
    assert shown["fallback"].default == "warn" and shown["debug"].kind is inspect.Parameter.KEYWORD_ONLY


def test_what_is_said_per_process_is_no_field():
    with pytest.raises(ConfigError, match="no field 'block'") as caught:
        SessionConfig(block=["toy"])
    assert "[plugins] of graphdock.toml" in caught.value.hint


def test_the_page_names_every_field_default_and_variable():
    page = (Path(__file__).parents[2] / "docs" / "configure-a-session.md").read_text()
    for name in KEYS["session"]:
        assert f"\n| `{name}` | " in page, name
    for variable in ENVIRONMENT:
        assert f"`{variable}`" in page.partition("## Variables")[2], variable
