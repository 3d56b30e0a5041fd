"""The configuration file and the environment: where they are looked for, and that every mistake names its line."""

import os

import pytest
from graphdock.config.session_config import SessionConfig, effective_config
from graphdock.errors import ConfigError
from graphdock.plugin import settings
from graphdock.plugin.admission import Admission
from graphdock.plugin.settings import environment, find_file, plugin_settings

SESSION = '[session]\nbackends = ["{}"]\n'


@pytest.fixture
def work(site, tmp_path):
    return tmp_path / "work"


def backends():
    return effective_config().backends[0]


# -- where


def test_the_nearest_file_up_to_the_repository_root(work, monkeypatch):
    deep = work / "repo" / "a" / "b"
    deep.mkdir(parents=True)
    (work / "repo" / ".git").mkdir()
    monkeypatch.chdir(deep)
    (work / "graphdock.toml").write_text(SESSION.format("beyond_the_root"))
    assert backends() == "cpu"
    (work / "repo" / "graphdock.toml").write_text(SESSION.format("root"))
    assert backends() == "root"
    assert effective_config().source("backends") == "../../graphdock.toml:2"
    (work / "repo" / "a" / "graphdock.toml").write_text(SESSION.format("nearer"))
    assert backends() == "nearer"


def test_outside_of_a_repository_only_the_working_directory(work, monkeypatch):
    (work / "inner").mkdir()
    (work / "graphdock.toml").write_text(SESSION.format("parent"))
    monkeypatch.chdir(work / "inner")
    assert backends() == "cpu"


def test_pyproject_comes_after_every_graphdock_toml(work):
    (work / "pyproject.toml").write_text("[project]\nname = 'x'\n\n[tool.graphdock.session]\nbackends = ['project']\n")
    assert backends() == "project"
    assert effective_config().source("backends") == "pyproject.toml:5"
    (work / "graphdock.toml").write_text(SESSION.format("own"))
    assert backends() == "own"


def test_a_pyproject_without_the_table_is_passed_over(work):
    (work / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_file({}) is None


def test_the_variable_names_the_file(work, monkeypatch):
    (work / "graphdock.toml").write_text(SESSION.format("near"))
    (work / "other.toml").write_text(SESSION.format("named"))
    monkeypatch.setenv("GRAPHDOCK_CONFIG", "other.toml")
    assert backends() == "named"
    monkeypatch.setenv("GRAPHDOCK_CONFIG", "gone.toml")
    with pytest.raises(ConfigError, match="GRAPHDOCK_CONFIG: there is no file 'gone.toml'"):
        backends()


# -- mistakes


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[sesion]\n", "graphdock.toml:1: unknown key 'sesion'", "session"),
        ("[session]\n\nbackend = ['cpu']\n", "graphdock.toml:3: unknown key 'backend' in [session]", "backends"),
        ("[session]\nbackends = 'cpu'\n", "graphdock.toml:2: backends has the wrong type", None),
        ("[session]\nfallback = 'alow'\n", "graphdock.toml:2: fallback is wrong", "allow"),
        ("session = 3\n", "graphdock.toml:1: session must be a table", None),
        ("[session]\nfusion = 'yes'\n", "graphdock.toml:2: fusion has the wrong type", None),
        ("[session]\ndebug = 1\n", "graphdock.toml:2: debug has the wrong type", None),
        ("[session]\nexecutor = 1\n", "graphdock.toml:2: executor is wrong", None),
        ("[session.device_count]\ncpu = -1\n", "graphdock.toml:1: device_count['cpu'] is wrong", None),
        ("[profile.x.sesion]\n", "graphdock.toml:1: unknown key 'sesion' in [profile.x]", "session"),
        ("[session]\nbackends = [\n", "graphdock.toml", None),
    ],
)
def test_a_mistake_in_the_file_is_named_with_its_line(work, text, message, hint):
    (work / "graphdock.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        effective_config()
    assert caught.value.message.startswith(message)
    if hint:
        assert caught.value.hint == f"did you mean {hint!r}?"


def test_a_key_in_pyproject_is_named_with_its_table(work):
    (work / "pyproject.toml").write_text("[tool.graphdock.session]\nbackend = []\n")
    with pytest.raises(ConfigError, match=r"pyproject.toml:2: unknown key 'backend' in \[tool.graphdock.session\]"):
        effective_config()


@pytest.mark.parametrize(
    "text", ["[plugins]\nallow = 'cpu'\n", "[plugins]\nblock = 3\n", "[plugins]\nautoload = 'no way'\n"]
)
def test_a_mistake_in_the_plugins_table(work, text):
    (work / "graphdock.toml").write_text(text)
    with pytest.raises(ConfigError, match="graphdock.toml:2: plugins"):
        plugin_settings()


def test_an_unknown_key_in_the_plugins_table(work):
    (work / "graphdock.toml").write_text("[plugins]\nallowed = []\n")
    with pytest.raises(ConfigError, match="graphdock.toml:2: unknown key 'allowed'") as caught:
        plugin_settings()
    assert caught.value.hint == "did you mean 'allow'?"


def test_an_unknown_variable_is_an_error(monkeypatch, work):
    monkeypatch.setenv("GRAPHDOCK_BACKEND", "cuda")
    with pytest.raises(ConfigError) as caught:
        effective_config()
    assert caught.value.message == "unknown environment variable GRAPHDOCK_BACKEND"
    assert caught.value.hint == "did you mean 'GRAPHDOCK_BACKENDS'?"


@pytest.mark.parametrize(
    ("name", "value"),
    [("GRAPHDOCK_FALLBACK", "maybe"), ("GRAPHDOCK_BACKENDS", "cpu,cpu"), ("GRAPHDOCK_DEBUG", "2")],
)
def test_a_wrong_value_names_the_variable(monkeypatch, work, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught:
        effective_config()
    assert caught.value.message.startswith(f"{name}: ")


def test_a_profile_that_is_nowhere(monkeypatch, work):
    monkeypatch.setenv("GRAPHDOCK_PROFILE", "laptop")
    with pytest.raises(ConfigError, match="there is no configuration file to take the profile 'laptop' from"):
        effective_config()
    (work / "graphdock.toml").write_text("[profile.desktop.session]\n")
    with pytest.raises(ConfigError, match="GRAPHDOCK_PROFILE: graphdock.toml has no profile 'laptop'"):
        effective_config()


def test_an_unknown_option_on_the_command_line(work):
    with pytest.raises(ConfigError, match="unknown option --backend") as caught:
        effective_config(None, {"backend": "x"})
    assert caught.value.hint == "did you mean 'backends'?"


def test_a_file_that_can_not_be_read(work):
    with pytest.raises(ConfigError, match="'nowhere.toml' can't be read"):
        SessionConfig.from_toml("nowhere.toml")


# -- [plugins]


def test_plugins_from_the_file(work):
    (work / "graphdock.toml").write_text('[plugins]\nallow = ["toy"]\nblock = ["old"]\nautoload = false\n')
    assert plugin_settings() == Admission(
        ("toy",),
        ("old",),
        False,
        {"allow": "graphdock.toml:2", "toy": "graphdock.toml:2", "old": "graphdock.toml:3"},
    )


def test_plugins_from_the_environment_beat_the_file_per_key(work, monkeypatch):
    (work / "graphdock.toml").write_text('[plugins]\nallow = ["toy"]\nblock = ["old"]\n')
    monkeypatch.setenv("GRAPHDOCK_BLOCK", "a, b")
    monkeypatch.setenv("GRAPHDOCK_AUTOLOAD", "0")
    told = plugin_settings()
    assert (told.allow, told.block, told.autoload) == (("toy",), ("a", "b"), False)
    assert told.origins["a"] == "GRAPHDOCK_BLOCK"


def test_plugins_by_default(work):
    assert plugin_settings() == Admission()


# -- the rest of the environment


def test_empty_variables_count_as_not_set():
    assert environment({"GRAPHDOCK_BACKENDS": "", "GRAPHDOCK_DEBUG": "1", "PATH": "/bin"}) == {"GRAPHDOCK_DEBUG": "1"}


def test_the_cache_folder(monkeypatch, tmp_path):
    assert settings.cache_dir({"GRAPHDOCK_CACHE_DIR": "/x/y"}).as_posix() == "/x/y"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert settings.cache_dir({}) == tmp_path / "graphdock"


def test_every_variable_is_documented():
    assert all(settings.ENVIRONMENT.values())
    assert len(settings.ENVIRONMENT) == 13


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool = 1\n", "pyproject.toml:1: tool.graphdock must be a table"),
        ("[tool]\ngraphdock = 5\n", "pyproject.toml:2: tool.graphdock must be a table"),
        ("[tool.graphdock]\nsession = 5\n", "pyproject.toml:2: session must be a table"),
        ("[tool.graphdock]\nsesion = 5\n", "pyproject.toml:2: unknown key 'sesion'"),
    ],
)
def test_a_pyproject_with_something_else_in_the_tables_place(work, text, message):
    (work / "pyproject.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        effective_config()
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize("value", ["x" * 3000, "x/" * 3000, "a\nb", "."])
def test_a_variable_that_names_no_file(work, monkeypatch, value):
    monkeypatch.setenv("GRAPHDOCK_CONFIG", value)
    with pytest.raises(ConfigError, match="^GRAPHDOCK_CONFIG: |is not a file") as caught:
        effective_config()
    assert len(str(caught.value)) < 3500


def test_what_is_no_regular_file_is_not_opened(work, monkeypatch):
    """Reading a pipe or a device might never end."""
    os.mkfifo(work / "pipe")
    for name in (str(work / "pipe"), "/dev/zero"):
        monkeypatch.setenv("GRAPHDOCK_CONFIG", name)
        with pytest.raises(ConfigError, match="is not a file"):
            effective_config()


@pytest.mark.parametrize(
    ("text", "key", "home"),
    [
        ("backends = ['cpu']\n", "backends", "it belongs in [session]"),
        ("allow = []\n", "allow", "it belongs in [plugins]"),
        ("[session]\nallow = []\n", "allow", "it belongs in [plugins]"),
        ("[plugins]\nbackends = []\n", "backends", "it belongs in [session]"),
        ("[profile.x]\ndebug = true\n", "debug", "it belongs in [profile.x.session]"),
        ("[session.profile]\n", "profile", "write [profile], a table of its own"),
        ("[session.toy]\nmemory = 4096\n", "toy", "options of a plugin belong in [session.options.toy]"),
    ],
)
def test_a_key_in_the_wrong_table_says_where_it_belongs(work, text, key, home):
    (work / "graphdock.toml").write_text(text)
    with pytest.raises(ConfigError, match=f"unknown key '{key}'") as caught:
        plugin_settings()
        effective_config()
    assert caught.value.hint == home


def test_a_key_in_the_wrong_table_of_a_pyproject(work):
    (work / "pyproject.toml").write_text("[tool.graphdock]\ndebug = true\n")
    with pytest.raises(ConfigError) as caught:
        effective_config()
    assert caught.value.hint == "it belongs in [tool.graphdock.session]"


def test_a_setting_among_the_options_of_a_plugin(toy, work):
    (work / "graphdock.toml").write_text("[session.options.toy]\ndebug = true\n")
    from graphdock.plugin.host import Host

    with pytest.raises(ConfigError, match="plugin 'toy' has no option 'debug'") as caught:
        Host().plugin_options("toy", effective_config().options["toy"], "graphdock.toml")
    assert caught.value.hint == "it belongs in [session]"
