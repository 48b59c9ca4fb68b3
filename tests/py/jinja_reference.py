"""What a chat template should give: jinja2 set up as transformers sets it up, and the tool that runs ours."""
import datetime
import glob
import json
import os
import subprocess
import tempfile

import jinja2
import pytest
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOW = 1790000000  # 2026-09-21 14:13:20 UTC


class Generation(Extension):
    """{% generation %}: its body is a call block, which makes it a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Dict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["dict"] = Dict()
    env.globals["strftime_now"] = lambda f: datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(
        tzinfo=None).strftime(f)
    return env


ENV = environment()


def expected(source, variables):
    """The text, or the exception."""
    try:
        return ENV.from_string(source).render(**variables)
    except Exception as e:  # jinja2 lets Python's own errors through
        return e


def tool():
    found = glob.glob(os.path.join(os.environ.get("SUMI_BUILD", os.path.join(ROOT, "build*")), "template_tool"))
    if not found:
        pytest.skip("template_tool is not built (cmake --preset release && cmake --build build)")
    return max(found, key=os.path.getmtime)


def render(source, variables):
    """Our text, its mask and "", or None, None and the message."""
    with tempfile.TemporaryDirectory() as d:
        paths = [os.path.join(d, name) for name in ("template", "variables", "mask")]
        with open(paths[0], "w", encoding="utf-8", newline="") as f:
            f.write(source)
        with open(paths[1], "w", encoding="utf-8") as f:
            json.dump(variables, f, ensure_ascii=False)
        done = subprocess.run([tool(), *paths, str(NOW)], capture_output=True, env={**os.environ, "TZ": "UTC"})
        if done.returncode == 1:
            return None, None, done.stderr.decode()
        assert done.returncode == 0, done.stderr.decode()
        with open(paths[2], "rb") as f:
            return done.stdout.decode(), f.read(), ""
