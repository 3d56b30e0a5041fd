"""A page per error class, with cause and cure, reached by the code that each message prints."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
import zipfile
from pathlib import Path

import graphdock as tf
import graphdock.plugin.host as host_module
import numpy as np
import pytest
from click.testing import CliRunner
from graphdock import errors
from graphdock.cli import cli
from graphdock.cli.error import classes, page
from graphdock.gradients import registry

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "errors").glob("GD*.md"))
DECLARED = list({c: None for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, errors.GraphdockError)})
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*) -->\n)?```python\n(?P<text>.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("kind", DECLARED, ids=lambda c: c.__name__)
def test_each_class_has_a_code_of_its_own_and_a_page(kind):
    assert re.fullmatch(r"GD\d{3}", vars(kind)["code"]), "a code of its own, not its base's"
    assert [c for c in DECLARED if c.code == kind.code] == [kind]
    text = page(kind.code)
    assert text.splitlines()[0] == f"# {kind.code}: {kind.__name__}"
    assert re.findall(r"^## (.*)$", text, re.M) == ["Cause", "Cure"]
    assert any(block["mark"] == "raises" for block in BLOCK.finditer(text)), "a program that raises it"


def test_each_page_is_of_a_class_and_in_the_index():
    assert {path.stem for path in PAGES} == set(classes())
    index = (ROOT / "docs" / "errors" / "README.md").read_text()
    listed = re.findall(r"^\| \[(GD\d{3})\]\((GD\d{3})\.md\) \| `(\w+)` \|", index, re.M)
    assert listed == [(code, code, c.__name__) for code, c in classes().items()]


def test_codes_follow_the_tree():
    """A subclass has a greater code than its base, with the same first digit below GraphdockError."""
    for kind in DECLARED:
        for base in kind.__bases__:
            if issubclass(base, errors.GraphdockError):
                assert kind.code > base.code
    drawn = re.findall(r"[├└]── (GD\d{3}) (\w+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted((c.code, c.__name__) for c in DECLARED if c is not errors.GraphdockError)


@pytest.fixture
def as_it_was():
    """What a page registers stays with the page."""
    state = registry.snapshot()
    yield
    registry.restore(state)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.stem)
def test_the_program_of_the_page_raises_the_error_and_the_cure_cures(path, tmp_path, monkeypatch, as_it_was):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHDOCK_DEBUG", raising=False)
    monkeypatch.setattr(host_module, "_default", host_module.Host())
    kind = classes()[path.stem]
    for block in BLOCK.finditer(path.read_text()):
        code = compile(block["text"], path.name, "exec")
        with tf.Graph().as_default():
            if block["mark"] != "raises":
                exec(code, {"__name__": "page"})
                continue
            with pytest.raises(kind) as caught:
                exec(code, {"__name__": "page"})
            # one that stands for what the user's own code raised is of that class too
            assert isinstance(caught.value, kind) and caught.value.code == kind.code
            assert str(caught.value).splitlines()[-1] == f"  see: graphdock error {path.stem}"


def test_the_command_prints_the_page():
    run = lambda *words: CliRunner().invoke(cli, ["error", *words])  # noqa: E731
    for word in ("GD101", "gd101", "ShapeError"):
        done = run(word)
        assert (done.exit_code, done.stdout) == (0, page("GD101"))
    listed = run()
    assert all(code in listed.stdout and c.__name__ in listed.stdout for code, c in classes().items())
    (row,) = json.loads(run("GD203", "--json").stdout)
    assert (row["code"], row["class"]) == ("GD203", "KernelNotFoundError")
    wrong = run("ShapeEror")
    assert wrong.exit_code == 2 and "did you mean 'ShapeError'?" in wrong.stderr


def test_what_a_message_ends_with_can_be_typed():
    """The last line of any message names a command that explains it."""
    with pytest.raises(tf.errors.ShapeError) as caught, tf.Graph().as_default():
        tf.zeros([2]) + tf.zeros([3])
    words = str(caught.value).splitlines()[-1].partition("see: graphdock ")[2].split()
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0 and "ShapeError" in done.stdout


def test_an_error_of_somebody_else_has_its_bases_code():
    class Mine(tf.errors.ConfigError):
        pass

    assert str(Mine("no")) == "no\n  see: graphdock error GD103"


def test_an_error_inside_of_another_message_leaves_its_own_line_out():
    error = tf.errors.ShapeError("no", hint="do")
    assert errors.format_error(error) == "ShapeError: no\n  hint: do"
    assert errors.format_error(ValueError("no")) == "ValueError: no"


def test_pages_go_with_the_wheel():
    """An installed graphdock prints them too."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert build["force-include"] == {
        "docs/errors": "graphdock/error_pages",
        "docs/differences-from-tensorflow.md": "graphdock_tensorflow/differences.md",
    }


def test_the_built_wheel_holds_the_pages(tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"graphdock/error_pages/{path.name}" for path in PAGES} <= set(names)
    assert "graphdock_tensorflow/differences.md" in names


def test_what_the_page_of_invalid_arguments_lists_raises_it():
    @tf.custom_op("pages::broken", shapes={"x": "[*S]", "y": "[*S]"}, outputs=["y"])
    def broken(x: np.ndarray) -> np.ndarray:
        raise ValueError("not this")

    with tf.Graph().as_default(), tf.Session() as sess:
        x, i = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [1])
        fed = {x: [-1.0, 1.0], i: [7]}
        for build, words in (
            (lambda: broken(x), "ValueError: not this"),
            (lambda: tf.gather(x, i), "out of bounds for axis 0"),
            (lambda: tf.check_numerics(tf.log(x), "logarithm"), "logarithm: tensor had NaN"),
        ):
            with pytest.raises(errors.InvalidArgumentError, match=words) as raised:
                sess.run(build(), fed)
            assert raised.value.code == "GD100"
    text = page("GD100")
    assert all(word in text for word in ("tf.custom_op", "tf.gather", "tf.check_numerics"))


def test_an_index_out_of_bounds_is_not_promised_to_be_out_of_range():
    listed = CliRunner().invoke(cli, ["error"]).output
    assert "index" not in next(line for line in listed.splitlines() if line.startswith("GD600"))
