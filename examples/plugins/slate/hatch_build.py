"""Compiles native/*.c into the package, so that the wheel is of this platform."""

from pathlib import Path

from graphdock.errors import GraphdockError
from graphdock.native import compile_library, platform_tag
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        target = root / "src" / "graphdock_slate" / "_native" / "slate"
        try:
            made = compile_library(sorted(root.glob("native/*.c")), target, ["-O2", "-pthread"])
        except GraphdockError as error:
            self.app.abort(str(error))
        build_data["pure_python"] = False
        build_data["tag"] = platform_tag()
        build_data["artifacts"].append(made.relative_to(root).as_posix())
