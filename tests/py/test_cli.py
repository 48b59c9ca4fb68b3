"""The command line: grammar, every flag of vllm serve, and the verbs on the small model that ships with sumi.

The server's HTTP side has its own tests. SUMI_BIN names the program (default: build/sumi).
"""
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SUMI = os.environ.get("SUMI_BIN", os.path.join(ROOT, "build", "sumi"))
MODEL = os.path.join(ROOT, "models", "flint-tiny", "flint-tiny.gguf")
# Variables that would change what is tested.
CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("VLLM_", "HF_", "SUMI_", "HUGGING"))}


def sumi(*args, stdin="", env=None, timeout=120):
    return subprocess.run([SUMI, *map(str, args)], input=stdin, capture_output=True, text=True, timeout=timeout,
                          env={**CLEAN, **(env or {})})


def config(*args, verb="serve", **kw):
    """The resolved options as {name: text}; a set secret is "set"."""
    r = sumi(verb, *args, "--print-config", **kw)
    assert r.returncode == 0, r.stderr
    out = {}
    for line in r.stdout.splitlines():
        m = re.match(r"(# )?([a-z0-9-]+):(?: (.*?))?(?: # [a-z ]+)?$", line)
        out[m[2]] = None if m[1] and not m[3] else m[3]
    return out


def refused(*args, **kw):
    r = sumi(*args, **kw)
    assert r.returncode == 2, (args, r.returncode, r.stdout, r.stderr)
    return r.stderr


# ---------------------------------------------------------------- words and flags

def test_alone_it_lists_its_commands():
    r = sumi()
    assert r.returncode == 0
    for verb in ("serve", "run", "chat", "plan", "info", "tokenize", "trace", "completion", "version"):
        assert re.search(rf"^  {verb} ", r.stdout, re.M)


def test_version_is_the_header_s():
    header = open(os.path.join(ROOT, "include", "sumi.h")).read()
    version = re.search(r'SUMI_VERSION "(.*)"', header)[1]
    for args in (["version"], ["--version"]):
        assert sumi(*args).stdout == f"sumi {version}\n"


def test_an_unknown_command_gets_a_suggestion():
    assert 'did you mean "sumi serve"' in refused("sevre")
    assert "did you mean" not in refused("xyzzy")


def test_an_unknown_flag_gets_usage_and_a_suggestion():
    text = refused("serve", "--max-modle-len", "5")
    assert text.startswith("usage: sumi serve")
    assert "--max-modle-len" in text and "did you mean --max-model-len?" in text
    assert "did you mean -tp?" in refused("serve", "--tp", "2")


@pytest.mark.parametrize("swap", ["--swap-space 4", "--swap_space=4"])
def test_an_ignored_flag_of_older_releases_passes(swap):
    config("m", *swap.split())


def flags():
    with open(os.path.join(os.path.dirname(__file__), "serve_flags.txt")) as f:
        return [line.split() for line in f if not line.startswith("#")]


SAMPLE = {"int": "1", "size": "1", "number": "0.5", "text": "x", "list": "x", "json": "{}", "bool": None}


def test_the_table_has_every_flag():
    assert len(flags()) == 320


@pytest.mark.parametrize("name,kind,fate,short,default", flags(), ids=[f[0] for f in flags()])
def test_flag(name, kind, fate, short, default):
    """Each flag's fate: accepted, or refused by its own name with status 2."""
    if name in ("model", "config"):
        return
    given = [f"--{name}"] if kind == "bool" else [f"--{name}", SAMPLE[kind]]
    asked = [f"--{name}" if default == "true" else f"--no-{name}"] if kind == "bool" else [f"--{name}", default]
    if default != "-" and fate in "IAD":
        config("m", *asked)
    if fate == "R":
        assert f"--{name} is not supported: " in refused("serve", "m", *given)
    elif fate == "A":
        config("m", *given)
        if short != "-":
            config("m", short, *given[1:])
    elif fate == "D":
        other = f"--{name}" if default == "false" else f"--no-{name}"
        worse = [other] if kind == "bool" else [f"--{name}", "7" if kind in ("int", "number", "size") else
                                                '{"x": 1}' if kind == "json" else "x"]
        assert f"--{name}" in refused("serve", "m", *worse)
    else:
        r = sumi("serve", "m", *given, "--print-config")
        assert "unknown option" not in r.stderr
        assert r.returncode == 0 or f"--{name}" in r.stderr


def test_an_ignored_flag_is_told_once():
    r = sumi("serve", "/nowhere", "--swap-space", "4", "--swap-space", "5")
    assert r.stderr.count("--swap-space is accepted and ignored") == 1


@pytest.mark.parametrize("args,name,value", [
    (["--max-model-len", "32k"], "max-model-len", "32k"),
    (["--max_model_len=25.6k"], "max-model-len", "25.6k"),
    (["--max-model-len", "-1"], "max-model-len", "-1"),
    (["--max-model-len=auto"], "max-model-len", "-1"),
    (["--max-num-b", "100"], "max-num-batched-tokens", "100"),
    (["--port", "1", "--port", "2"], "port", "2"),
    (["--no-enable-log-requests"], "enable-log-requests", "false"),
    (["--disable-log-requests"], "enable-log-requests", "false"),
    (["--enable-log-stats"], "disable-log-stats", "false"),
    (["--dtype", "float"], "dtype", "float32"),
    (["--hf-overrides.a.b", "3", "--hf-overrides.c+", "1,2"], "hf-overrides", '{"a": {"b": 3}, "c": [1, 2]}'),
    (["--allowed-origins", '["*"]'], "allowed-origins", '["*"]'),
    (["--api-key", "a", "b"], "api-key", "set, not shown"),
    (["--served-model-name", "a", "b"], "served-model-name", "[a, b]"),
])
def test_values(args, name, value):
    assert config("m", *args)[name] == value


@pytest.mark.parametrize("args,part", [
    (["--port", "70000"], "0..65535"),
    (["--max-model-len", "25.6K"], "whole number"),
    (["--gpu-memory-utilization", "0"], "above 0..1"),
    (["--logprobs-mode", "raw"], "raw_logprobs"),
    (["--tensor-parallel-size", "2"], "not supported yet"),
    (["--kv-cache-dtype", "fp8"], "not supported yet"),
    (["--speculative-config.method", "mtp"], "not supported yet"),
    (["--quantization"], "needs a value"),
    (["--max", "3"], "several options"),
    (["--hf-overrides", "{"], "JSON"),
    (["--reasoning-parser", "nope"], "glm47"),
    (["--tool-call-parser", "nope"], "glm47"),
    (["--enable-auto-tool-choice"], "--tool-call-parser"),
    (["--chat-template", "no-such-file"], "no such file"),
    (["--max-model-len", "1m"], "4096 positions"),
    (["--load-format", "safetensors"], "no such model"),
    (["--quantization", "awq"], "awq"),
])
def test_refusals(args, part):
    assert part in refused("serve", MODEL, *args, "--port", "0")


def test_a_name_without_a_model_is_an_error():
    assert "MODEL first" in refused("serve", "--served-model-name", "a", MODEL)


def test_a_config_file_gives_way_to_the_command_line(tmp_path):
    f = tmp_path / "c.yaml"
    f.write_text("model: m\nport: 1234\nserved-model-name:\n  - a\n  - b\nenable_log_requests: true\n"
                 "hf-overrides: {\"x\": [1, 2]}\n")
    c = config("--config", f, "--port", "4321")
    assert c["model"] == "m" and c["port"] == "4321" and c["enable-log-requests"] == "true"
    assert c["served-model-name"] == "[a, b]" and c["hf-overrides"] == '{"x": [1, 2]}'
    f.write_text("prot: 1\n")
    assert "line 1: prot: unknown option; did you mean port?" in refused("serve", "--config", f)


def test_a_printed_config_can_be_read(tmp_path):
    f = tmp_path / "c.yaml"
    first = sumi("serve", "m: odd #name", "--port", "9", "--hf-overrides.a", "x#y", "--allowed-origins", "*",
                 "--print-config")
    f.write_text(first.stdout)
    again = sumi("serve", "--config", f, "--print-config")
    strip = re.compile(r" # (default|command line|config file)$", re.M)
    assert strip.sub("", again.stdout) == strip.sub("", first.stdout)


def test_the_environment_is_weakest():
    env = {"VLLM_API_KEY": "k", "VLLM_LOGGING_LEVEL": "DEBUG"}
    c = config("m", env=env)
    assert c["api-key"] == "set, not shown" and c["log-level"] == "debug"
    assert config("m", "--log-level", "error", env=env)["log-level"] == "error"
    assert "VLLM_MAX_N_SEQUENCES" in refused("serve", "m", env={"VLLM_MAX_N_SEQUENCES": "few"})


def test_an_unknown_variable_can_stop_the_start():
    env = {"VLLM_NO_SUCH_THING": "1"}
    assert "VLLM_NO_SUCH_THING" in refused("serve", "m", "--fail-on-environ-validation", env=env)
    assert "VLLM_NO_SUCH_THING is not used" in sumi("serve", "/nowhere", env=env).stderr


def test_help_has_three_sizes():
    short, all_ = sumi("serve", "--help").stdout, sumi("serve", "--help=all").stdout
    assert "--max-model-len" in short and "--swap-space" not in short
    for name, *_ in flags():
        assert f"--{name}" in all_
    one = sumi("serve", "--help=max-model-len").stdout
    assert "--max-model-len" in one and "--port" not in one
    group = sumi("serve", "--help=SchedulerConfig").stdout
    assert "--max-num-seqs" in group and "--port" not in group
    assert "no option or group" in refused("serve", "--help=xyzzy")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script(shell):
    r = sumi("completion", shell)
    assert r.returncode == 0 and "max-model-len" in r.stdout
    if shell == "bash":
        script = r.stdout + "\nCOMP_WORDS=(sumi serve --max-model); COMP_CWORD=2; _sumi; echo \"${COMPREPLY[@]}\"\n"
        got = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert got.stdout.strip() == "--max-model-len", got.stderr
        script = r.stdout + "\nCOMP_WORDS=(sumi serve --dtype ''); COMP_CWORD=3; _sumi; echo \"${COMPREPLY[@]}\"\n"
        got = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        assert "bfloat16" in got.stdout


def test_the_manual_lists_every_flag():
    text = sumi("help", "man").stdout.replace("\\-", "-")
    assert text.startswith(".TH sumi 1")
    for name, *_ in flags():
        assert f"--{name}" in text


# ---------------------------------------------------------------- models

def test_a_missing_model_is_named():
    r = sumi("run", "/no/such/model", "--prompt", "x")
    assert r.returncode == 1 and "/no/such/model" in r.stderr
    r = sumi("run", "org/not-there", "--prompt", "x", env={"HF_HUB_CACHE": "/nowhere/cache"})
    assert r.returncode == 1 and "org/not-there" in r.stderr and "/nowhere/cache" in r.stderr


def tensors(path):
    gguf = pytest.importorskip("gguf")
    return gguf.GGUFReader(path)


def test_info_counts_parameters_and_types():
    reader = tensors(MODEL)
    n = sum(int(t.n_elements) for t in reader.tensors if not t.name.endswith(".scale"))
    types = {}
    for t in reader.tensors:
        types[t.tensor_type.name] = types.get(t.tensor_type.name, 0) + 1
    text = sumi("info", MODEL).stdout
    assert re.search(rf"^parameters +{n}$", text, re.M)
    for name, count in types.items():
        assert re.search(rf"^  {name} +{count} ", text, re.M), text
    for field in reader.fields.values():
        if not field.name.startswith("GGUF."):
            assert field.name in text
    assert re.search(r"<tool_call> +one token", text)
    assert re.search(r'"<\|user\|>" +from tokenizer.ggml', text)


def test_plan_adds_up():
    """Keys and values of 64 positions of one layer: 64 x 2 x 2 heads x 64 x 2 bytes = 32 KiB. A sequence of 4096
    tokens fills 64 pages of 5 full layers, and of 7 layers with a window of 129 and chunks of 512 rows at most
    129 + 511 = 640 positions, 10 pages and one more where they begin inside a page."""
    text = sumi("plan", MODEL, "--max-num-seqs", "1", "--max-num-batched-tokens", "512").stdout
    slabs = 5 * 64 + 7 * 11
    assert f"({slabs} slabs of 32768 bytes;" in text
    assert re.search(rf"one such sequence +{slabs * 32768 / 2**20:.2f} MiB", text)
    r = sumi("plan", MODEL, "--max-model-len", "4096", "--kv-cache-memory-bytes", "1M")
    assert r.returncode == 1 and "longest that fits" in r.stderr


def test_tokenize_goes_both_ways():
    text = "Hello <think> wörld\n"
    ids = sumi("tokenize", stdin=text).stdout.strip()
    assert sumi("tokenize", "--decode", "--text", ids).stdout == text + "\n"
    assert sumi("tokenize", "--count", stdin=text).stdout.strip() == str(len(ids.split(",")))
    plain = sumi("tokenize", "--no-special", MODEL, "<|user|>").stdout.strip()
    assert len(plain.split(",")) > 1 and len(sumi("tokenize", MODEL, "<|user|>").stdout.split(",")) == 1
    assert sumi("tokenize", MODEL, "--decode", "--text", plain).stdout == "<|user|>\n"
    assert "token ids" in sumi("tokenize", "--decode", "--text", "1,x").stderr


def test_trace_needs_a_prompt_and_a_folder(tmp_path):
    assert "--out" in refused("trace", MODEL, "--ids", "1")
    assert "--ids" in refused("trace", MODEL, "--out", tmp_path)
    assert "--ids" in refused("trace", MODEL, "--out", tmp_path, "--ids", "1,-2")
    r = sumi("trace", MODEL, "--out", tmp_path / "t", "--ids", "1,2,3", "--generate", "2")
    assert r.returncode == 0, r.stderr
    head = (tmp_path / "t" / "logits.npy").read_bytes()
    assert head[:6] == b"\x93NUMPY" and b"(3,4096,)" in head[:128].replace(b" ", b"")


# ---------------------------------------------------------------- run and chat

def test_run_answers():
    r = sumi("run", "--prompt", "What is the capital of France?", "--temperature", "0")
    assert r.returncode == 0 and "Paris" in r.stdout and r.stderr == ""
    piped = sumi("run", "--temperature", "0", stdin="What is the capital of France?\n")
    assert piped.stdout == r.stdout
    named = sumi("run", MODEL, "What is the capital of France?", "--temperature", "0")
    assert named.stdout == r.stdout


def test_run_repeats_with_a_seed():
    ask = ["run", "--prompt", "Tell me a story.", "--temperature", "1", "--max-tokens", "20", "--json"]
    a, b, c = (json.loads(sumi(*ask, "--seed", s).stdout) for s in (7, 7, 8))
    assert a == b and a["usage"]["completion_tokens"] <= 20
    assert a["content"] != c["content"] or a["reasoning"] != c["reasoning"]


def test_run_counts_and_stops():
    out = json.loads(sumi("run", "--raw", "--prompt", "one two", "--max-tokens", "5", "--ignore-eos", "--json").stdout)
    assert out["finish_reason"] == "length" and out["usage"]["completion_tokens"] == 5
    n = len(sumi("tokenize", MODEL, "one two").stdout.split(","))
    assert out["usage"]["prompt_tokens"] == n
    whole = sumi("run", "--prompt", "What is the capital of France?", "--temperature", "0").stdout
    cut = sumi("run", "--prompt", "What is the capital of France?", "--temperature", "0", "--stop", "Paris").stdout
    assert cut.strip() == whole.split("Paris")[0].strip()


def test_run_says_what_is_wrong():
    assert "empty" in refused("run", MODEL, stdin="")
    long = "word " * 20000
    r = sumi("run", stdin=long)
    assert r.returncode == 1 and "4096" in r.stderr
    assert "--temperature" in refused("run", MODEL, "x", "--temperature", "3")


def test_an_interrupt_ends_an_answer():
    p = subprocess.Popen([SUMI, "run", "--raw", "--ignore-eos", "--prompt", "one", "--temperature", "1"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=CLEAN)
    assert p.stdout.read(1)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    assert p.returncode == 130


def test_chat_without_a_terminal():
    r = sumi("chat", "--temperature", "0", stdin="What is the capital of France?\n/reset\n/nope\n/help\n/quit\nHello\n")
    assert r.returncode == 0 and "Paris" in r.stdout and r.stdout.count("\n") == 1
    assert "unknown command /nope" in r.stderr and "/quit" in r.stderr


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(SUMI, [SUMI, *args], {**CLEAN, "TERM": "xterm"})
        self.text = ""

    def wait_for(self, pattern, timeout=30):
        """Prompts are matched as ">": the blank behind may be sent as a movement of the cursor."""
        end = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, self.text
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    break
        found = re.search(pattern, self.text)
        assert found, self.text
        self.text = self.text[found.end():]
        return found

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, timeout=30):
        end = time.monotonic() + timeout
        while True:
            try:
                if select.select([self.fd], [], [], 0.1)[0] and not os.read(self.fd, 65536):
                    break
            except OSError:
                break
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_chat_on_a_terminal():
    t = Terminal("chat", "--temperature", "0")
    t.wait_for("/help lists the commands")
    t.wait_for(">")
    t.type("What is the capital of France?\n")
    t.wait_for("Paris")
    t.wait_for(">")
    t.type("/help\n")
    t.wait_for("Ctrl-C")
    t.wait_for(">")
    t.type("/quit\n")
    assert t.end() == 0


def test_ctrl_c_stops_an_answer_and_not_the_chat():
    t = Terminal("chat", "--temperature", "1", "--chat-template", "{{ messages[-1].content }}", "--reasoning-parser", "none",
                 "--override-generation-config", '{"repetition_penalty": 1.5}')
    t.wait_for(">")
    t.type("Once upon a time there was a long, long story that\n")
    t.wait_for(r"story that\s*\n")
    t.wait_for(r"\S")
    t.type("\x03")
    t.type("\n/quit\n")
    assert t.end() == 0


def test_ctrl_c_at_the_prompt_does_not_end_the_chat():
    t = Terminal("chat", "--temperature", "0")
    t.wait_for(">")
    t.type("What is the capital")
    t.wait_for("capital")
    t.type("\x03")
    t.type("\n/quit\n")
    assert t.end() == 0


# ---------------------------------------------------------------- serve

class Server:
    def __init__(self, *args, env=None):
        self.p = subprocess.Popen([SUMI, "serve", *args, "--host", "127.0.0.1", "--port", "0"], stderr=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env={**CLEAN, **(env or {})})
        self.log = ""
        for line in self.p.stderr:
            self.log += line
            m = re.search(r"listening on (http://127.0.0.1:(\d+))", line)
            if m:
                self.url, self.port = m[1], int(m[2])
                return
        raise AssertionError(self.log)

    def end(self, with_signal=signal.SIGTERM):
        self.p.send_signal(with_signal)
        _, rest = self.p.communicate(timeout=60)
        self.log += rest
        return self.p.returncode


def http(port, method, path, body=None):
    with socket.create_connection(("127.0.0.1", port)) as s:
        data = json.dumps(body).encode() if body is not None else b""
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
                  f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer = b""
        while piece := s.recv(65536):
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), rest


def test_serve_tells_what_it_serves():
    s = Server()
    status, body = http(s.port, "GET", "/v1/models")
    assert s.end() == 0
    assert status == 200 and b"flint-tiny" in body
    for part in ("flint", "answers end at", "<|endoftext|>", "tokenizer.ggml.eos_token_id", "weights", "keys and values",
                 "4096 tokens"):
        assert part in s.log, s.log


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGTERM])
def test_serve_ends_on_a_signal(with_signal):
    assert Server("--load-format", "replay").end(with_signal) == 0


def test_the_shipped_model_calls_tools_out_of_the_box():
    tool = {"type": "function", "function": {"name": "get_weather", "description": "Get the weather in a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
    s = Server()
    status, body = http(s.port, "POST", "/v1/chat/completions",
                        {"messages": [{"role": "user", "content": "What is the weather in Oslo?"}], "tools": [tool],
                         "temperature": 0})
    s.end()
    call = json.loads(body)["choices"][0]["message"]["tool_calls"][0]["function"]
    assert status == 200 and call["name"] == "get_weather" and json.loads(call["arguments"]) == {"city": "Oslo"}


def test_a_port_in_use_is_an_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        r = sumi("serve", "--load-format", "replay", "--host", "127.0.0.1", "--port", port)
    assert r.returncode == 1 and str(port) in r.stderr.splitlines()[-1]


def test_dummy_weights_replace_the_file_s():
    # The shipped file gives metadata and tokenizer; its weights are replaced.
    r = sumi("run", MODEL, "--load-format", "dummy", "--raw", "--prompt", "one", "--max-tokens", "3", "--ignore-eos",
             "--json")
    assert r.returncode == 0, r.stderr
    assert json.loads(r.stdout)["usage"]["completion_tokens"] == 3
