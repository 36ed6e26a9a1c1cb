"""kubernetes-asyncio without its generated models: what this program uses of it, and nothing more.

`import kubernetes_asyncio`, in whatever form, imports 767 model and 68 API modules: 33 MiB and 0.2 s that are never
used. Here its packages are first put into `sys.modules` as empty shells whose names are looked up on first use; the
modules behind them are the library's own. Where its layout is not as expected, the plain import takes over.

Its client and its OpenID Connect, which bring aiohttp, and urllib3 and http.client, which its configuration names, are
imported only where they are used: that is another 13 MiB.
"""

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

_ROOT = "kubernetes_asyncio"
_SHELLS = (_ROOT, f"{_ROOT}.client", f"{_ROOT}.client.models", f"{_ROOT}.client.api")
_SELDOM_USED = ("http.client", "urllib3", f"{_ROOT}.client.api_client", f"{_ROOT}.config.openid")
_EXPORT = re.compile(rf"^from ({_ROOT}\.[\w.]+) import (\w+)", re.MULTILINE)


def _install() -> None:
    """Put the shells in place, unless somebody imported the whole library before us."""
    spec = importlib.util.find_spec(_ROOT)
    if _ROOT in sys.modules or spec is None or spec.origin is None:
        return
    top = Path(spec.origin).parent
    for name in _SHELLS:
        sys.modules[name] = shell = _shell(name, top.joinpath(*name.split(".")[1:]))
        parent, _, leaf = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], leaf, shell)


def _shell(name: str, folder: Path) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    module.__spec__ = importlib.util.spec_from_loader(name, None, is_package=True)
    exports: dict[str, str] = {}

    def look_up(attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        if not exports:
            exports.update((name, home) for home, name in _EXPORT.findall((folder / "__init__.py").read_text("utf-8")))
        home = exports.get(attribute)
        try:
            imported = importlib.import_module(home or f"{name}.{attribute}")
        except ModuleNotFoundError as error:
            raise AttributeError(f"{name}.{attribute}") from error
        value = getattr(imported, attribute) if home else imported
        setattr(module, attribute, value)
        return value

    module.__getattr__ = look_up  # type: ignore[method-assign]
    return module


class _Later:
    """Something of a module that is imported when it is first used."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._real(*args, **kwargs)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._real, attribute)

    @property
    def _real(self) -> Any:
        return getattr(importlib.import_module(self._module), self._name)


@contextmanager
def _placeholders() -> Iterator[None]:
    """Let an import of the seldom used modules bind names that work, but cost nothing until they are used."""
    absent = [name for name in _SELDOM_USED if name not in sys.modules]
    for name in absent:
        sys.modules[name] = module = ModuleType(name)
        module.__getattr__ = partial(_later, name)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def _later(module: str, attribute: str) -> Any:
    if attribute.startswith("__"):
        raise AttributeError(attribute)
    return _Later(module, attribute)


def _uninstall() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == _ROOT]:
        del sys.modules[name]


_install()
try:
    with _placeholders():
        from kubernetes_asyncio.client.configuration import Configuration
        from kubernetes_asyncio.config import ConfigException, kube_config, load_incluster_config
except (ImportError, AttributeError, OSError):  # another layout than the one above was made for
    _uninstall()
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.config import ConfigException, kube_config, load_incluster_config

__all__ = ["ConfigException", "Configuration", "kube_config", "load_incluster_config"]
