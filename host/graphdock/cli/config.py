"""``graphdock config``: every setting as a session started here would have it, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from graphdock.config.session_config import SessionConfig, effective_config
from graphdock.config.values import plain
from graphdock.contracts.command_line.options import file_options
from graphdock.contracts.command_line.output import json_option, print_json, table
from graphdock.errors import ConfigError, PluginError, UnknownBackendError
from graphdock.plugin import settings
from graphdock.plugin.host import configured_host


def _show(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={_show(v)}" for k, v in value.items()) or "{}"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value)) or "()"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def problems(config: SessionConfig) -> list[str]:
    """Return what a session with this configuration would stumble over: backends that can't be used, wrong options.

    Options of a plugin that is no backend of the configuration are checked where it is installed: a file may be shared by machines.
    """
    host, found = configured_host(), []
    for name in dict.fromkeys([*config.backends, *config.options]):
        wanted = name in config.backends
        try:
            host.plugin_options(name, config.options.get(name, {}), f"{config.source('options')}: options.{name}")
        except UnknownBackendError as error:
            found += [f"{config.source('backends')}: {error}"] if wanted else []
        except PluginError as error:
            found += [str(error)] if wanted else []
        except ConfigError as error:
            found.append(str(error))
    return found


@click.command(
    help="Print every setting and where it comes from: command line, environment, file or default. "
    "Exits 1 when a backend it names can't be used."
)
@click.option("--backends", help="Comma-separated, the most wanted first.")
@click.option("--fallback", help="forbid, warn or allow.")
@click.option("--executor", help="auto, or the name of an executor.")
@file_options
@json_option
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **given: str | None) -> None:
    typed = {name: value for name, value in given.items() if value is not None}
    variables = settings.environment()
    file = settings.find_file(variables)
    told = settings.plugin_settings(variables, file)
    config = effective_config(None, typed)
    resolved, found = config.resolved(), problems(config)
    plugins: dict[str, tuple[Any, str]] = {
        "allow": (told.allow, told.origins.get("allow", "default")),
        "block": (told.block, next((told.origins[n] for n in told.block), "default")),
        "autoload": (told.autoload, "GRAPHDOCK_AUTOLOAD" if "GRAPHDOCK_AUTOLOAD" in variables else _where(file)),
    }
    if as_json:
        print_json(
            {
                "file": None if file is None else file.label,
                "profile": variables.get("GRAPHDOCK_PROFILE"),
                "session": {n: {"value": plain(v), "source": s} for n, (v, s) in resolved.items()},
                "plugins": {n: {"value": v, "source": s} for n, (v, s) in plugins.items()},
                "cache_dir": str(settings.cache_dir(variables)),
                "findings": found,
            }
        )
        ctx.exit(1 if found else 0)
    click.echo(f"file     {'none' if file is None else file.label}")
    click.echo(f"profile  {variables.get('GRAPHDOCK_PROFILE', 'none')}\n")
    rows = [(name, _show(value), source) for name, (value, source) in resolved.items()]
    rows += [(f"plugins.{name}", "all" if v is None else _show(v), source) for name, (v, source) in plugins.items()]
    click.echo(table(("SETTING", "VALUE", "FROM"), rows))
    for text in found:
        click.echo(f"\n{text}", err=True)
    ctx.exit(1 if found else 0)


def _where(file: settings.ConfigFile | None) -> str:
    said = file is not None and "autoload" in file.table(("plugins",))
    return file.where("plugins", "autoload") if file is not None and said else "default"
