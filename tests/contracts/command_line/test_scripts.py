"""Scripts as targets; running one is tested with the command ``run``."""

import click
import pytest
from click.testing import CliRunner
from graphdock import errors
from graphdock.contracts.command_line.scripts import at_step, is_script


def test_a_fetch_and_arguments_belong_to_a_script():
    assert is_script("a/b.py", "loss", ("--x", "1")) and not is_script("a/b.py:loss", None, ())
    with pytest.raises(errors.InvalidArgumentError, match=r"'a/b\.py:loss' is not a script"):
        is_script("a/b.py:loss", "loss", ())


def test_without_the_command_that_runs_scripts_an_error_says_so():
    @click.group()
    def alone(): ...

    @alone.command()
    def explain():
        at_step("a.py", (), None, lambda *step: None)

    done = CliRunner().invoke(alone, ["explain"])
    assert isinstance(done.exception, errors.NotFoundError) and "no plugin brings the command `run`" in str(
        done.exception
    )
