"""A real control plane's programs, and its clients', built from Go modules: ``toolchain.binary("helm")``."""

from tests.cluster.toolchain.build import ToolchainError, binary, cache_dir, missing, module_dir
from tests.cluster.toolchain.parts import PARTS, Part

__all__ = ["PARTS", "Part", "ToolchainError", "binary", "cache_dir", "missing", "module_dir"]
