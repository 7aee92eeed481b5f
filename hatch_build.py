"""Hooks of the build: a wheel that carries the library of kernels is for one platform, and needs no compiler.

``ONLINEAUTO_WHEEL_KERNELS`` names the folder of the library. Without it a wheel is for every platform, has
the bitcode of kernels, and requires what the extra ``compiler`` has.
"""

from __future__ import annotations

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_KERNELS = "ONLINEAUTO_WHEEL_KERNELS"


class Requirements(MetadataHookInterface):
    """Says what is required."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the dependencies; those of the compiler too, if there is no library."""
        compiler = [] if os.environ.get(_KERNELS) else metadata["optional-dependencies"]["compiler"]
        metadata["dependencies"] = [*self.config["dependencies"], *compiler]


class Kernels(BuildHookInterface[Any]):
    """Puts the library into a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library, if there is one, and the tag of the platform that it is for."""
        folder = os.environ.get(_KERNELS)
        if not folder or version == "editable":
            return
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][folder] = "onlineauto/_kernels"
        self.build_config.target_config["exclude"] = ["onlineauto/_bitcode"]
