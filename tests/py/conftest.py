"""Servers that several test files share, started when first asked for."""
import pytest

from server import BINARY, Server


def need_binary():
    if not BINARY.exists():
        pytest.skip("build/sumi is not built (SUMI_BUILD names another build folder)")


@pytest.fixture(scope="session")
def server():
    """Replay model with parsers."""
    need_binary()
    with Server("--reasoning-parser", "glm47", "--tool-call-parser", "glm47",
                "--enable-auto-tool-choice", "--enable-prompt-tokens-details",
                "--enable-server-load-tracking") as s:
        yield s


@pytest.fixture(scope="session")
def plain():
    """Replay model without parsers."""
    need_binary()
    with Server("--max-logprobs", "-1") as s:
        yield s


@pytest.fixture(scope="session")
def start():
    """Starts a server with the given arguments; to be used in a with statement."""
    need_binary()
    return Server


@pytest.fixture(scope="session")
def client(server):
    import openai
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
