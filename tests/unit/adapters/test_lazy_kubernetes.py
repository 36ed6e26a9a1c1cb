"""What is imported, told by a fresh interpreter."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # each of them imports all that the daemon does


def python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_help_imports_no_kubernetes_client_at_all():
    code = """
import sys
from agent import cli
sys.argv = ["fake-kubelet", "--help"]
try:
    cli.main()
except SystemExit as done:
    assert done.code == 0, done.code
heavy = {"kubernetes_asyncio", "aiohttp", "rich", "agent.minicluster"} & set(sys.modules)
print("heavy:", sorted(heavy))
"""
    assert python(code).splitlines()[-1] == "heavy: []"


def test_the_daemon_imports_none_of_the_generated_models_and_apis():
    code = """
import sys, agent.app
prefixes = ("kubernetes_asyncio.client.models.", "kubernetes_asyncio.client.api.")
print(sum(name.startswith(prefixes) for name in sys.modules))
"""
    assert python(code) == "0"


def test_modules_that_are_seldom_used_are_imported_only_then():
    code = """
import sys, agent.app
seldom = ("urllib3", "aiohttp", "http.client", "dateutil.parser", "kubernetes_asyncio.client.api_client")
print([name for name in seldom if name in sys.modules])
from agent.adapters.lazy_kubernetes import Configuration
configuration = Configuration()
configuration.username, configuration.password = "a", "b"
print(configuration.get_basic_auth_token())
from kubernetes_asyncio.config.kube_config import OpenIDRequestor
print(type(OpenIDRequestor("id", "secret", "https://issuer")).__module__)
import urllib3
print(urllib3.util.make_headers(basic_auth="a:b")["authorization"])
"""
    assert python(code).splitlines() == ["[]", "Basic YTpi", "kubernetes_asyncio.config.openid", "Basic YTpi"]


@pytest.mark.parametrize("whole_first", [True, False], ids=["plain import", "shells"])
def test_both_ways_give_the_librarys_own_classes(whole_first):
    code = f"""
if {whole_first}:
    import kubernetes_asyncio
from agent.adapters.lazy_kubernetes import Configuration
from kubernetes_asyncio.client import V1Node, Configuration as Named
print(Named is Configuration, V1Node.__module__)
"""
    assert python(code) == "True kubernetes_asyncio.client.models.v1_node"


def test_a_layout_that_is_not_understood_falls_back_to_the_plain_import():
    code = """
import re, sys
compiled = re.compile
blind = lambda pattern: "nothing matches this" if "kubernetes_asyncio" in str(pattern) else pattern
re.compile = lambda pattern, *flags: compiled(blind(pattern), *flags)
from agent.adapters.lazy_kubernetes import Configuration
print(Configuration.__name__, "kubernetes_asyncio.client.models.v1_node" in sys.modules)
"""
    assert python(code) == "Configuration True"
