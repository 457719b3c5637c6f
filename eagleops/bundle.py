"""The remote package as one program that a bare python3 runs from stdin: nothing is installed."""

from __future__ import annotations

import functools
import zlib
from importlib import resources

# Runs over there: serves the sent sources as modules, then hands over to the runtime.
_LOADER = """
import importlib.abc, importlib.util, linecache, sys
class _Sources(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES:
            return importlib.util.spec_from_loader(name, self, is_package=name in PACKAGES)
    def is_package(self, name):
        return name in PACKAGES
    def get_source(self, name):
        return SOURCES[name]
    def exec_module(self, module):
        name = module.__spec__.name
        file = "<" + name + ">"
        linecache.cache[file] = (len(SOURCES[name]), None, SOURCES[name].splitlines(True), file)
        exec(compile(SOURCES[name], file, "exec"), module.__dict__)
sys.meta_path.insert(0, _Sources())
from eagleops.remote.runtime import main
main()
"""


@functools.cache
def bundle() -> bytes:
    """The remote package, compressed: what :func:`bootstrap` reads from stdin."""
    folder = resources.files("eagleops.remote")
    sources = {
        f"eagleops.remote.{entry.name.removesuffix('.py')}": entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py") and entry.name != "__init__.py"
    }
    packages = ["eagleops", "eagleops.remote"]
    sources.update(dict.fromkeys(packages, ""))
    program = f"SOURCES = {sources!r}\nPACKAGES = {packages!r}\n{_LOADER}"
    return zlib.compress(program.encode("utf-8"), 9)


def bootstrap(marker: str) -> str:
    """The one-line program that stands in the argv over there: it holds nothing secret.

    Any Python understands it, so that one that is too old can say so. It reads a line with
    the size of the bundle, and the bundle.

    Args:
        marker: Printed first, on a line of its own: there the login shell's chatter ends.
    """
    return (
        "import sys,zlib;v=sys.version_info;"
        "v<(3,8)and sys.exit('Python %d.%d is too old: 3.8 or newer is needed'%v[:2]);"
        f"i=sys.stdin.buffer;print(chr(10)+'{marker}',flush=True);"
        "exec(zlib.decompress(i.read(int(i.readline()))))"
    )
