"""Starts `sumi serve` for a test and talks to it, below the level of client libraries too."""
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/golden/replay-model"
BINARY = pathlib.Path(os.environ.get("SUMI_BUILD", ROOT / "build")) / "sumi"
NAME = "tiny"


class Server:
    """A running server; use as a context manager."""

    def __init__(self, *args, model=MODEL, replay=True, env=None):
        command = [str(BINARY), "serve", str(model), "--port", "0", "--host", "127.0.0.1",
                   "--served-model-name", NAME]
        if replay:
            command += ["--load-format", "replay"]
        self.process = subprocess.Popen(command + list(args), stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        self.log = []
        self.port = None
        self.ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        if not self.ready.wait(60) or self.port is None:
            self.process.kill()
            raise RuntimeError("the server did not start:\n" + "".join(self.log))
        self.url = f"http://127.0.0.1:{self.port}"

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r"listening on \S+:(\d+)", line)
            if found:
                self.port = int(found.group(1))
                self.ready.set()
        self.ready.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(60)

    # ---- requests ----

    def request(self, method, path, body=None, headers=None):
        """(status, headers, bytes)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, dict((k.lower(), v) for k, v in r.getheaders()), r.read()
        finally:
            c.close()

    def get(self, path, **headers):
        status, _, body = self.request("GET", path, headers=headers)
        return status, body

    def post(self, path, body, headers=None):
        """(status, value): body is a value to be sent as JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, _, answer = self.request(
            "POST", path, data, {"Content-Type": "application/json", **(headers or {})})
        return status, json.loads(answer)

    def chat(self, content="hello", **fields):
        return self.post("/v1/chat/completions", chat_body(content, **fields))

    def events(self, path, body):
        """The data of a stream's events, [DONE] checked and left out."""
        status, headers, answer = self.request(
            "POST", path, json.dumps({**body, "stream": True}),
            {"Content-Type": "application/json"})
        assert status == 200, answer
        assert headers["content-type"] == "text/event-stream; charset=utf-8"
        return parse_events(answer)

    def socket(self, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(60)
        s.connect(("127.0.0.1", self.port))
        return s

    def metrics(self):
        """{'name{labels}': value}"""
        out = {}
        for line in self.get("/metrics")[1].decode().splitlines():
            if line and line[0] != "#":
                name, value = line.rsplit(" ", 1)
                out[name] = float(value)
        return out

    def metric(self, name):
        """Sum over the series of a name."""
        return sum(v for k, v in self.metrics().items() if k.split("{")[0] == name)

    def idle(self):
        m = self.metrics()
        return all(v == 0 for k, v in m.items()
                   if k.startswith(("vllm:num_requests_running{", "vllm:num_requests_waiting{")))

    def wait_idle(self):
        """Waits until the engine has nothing left; fails after a minute."""
        for _ in range(1200):
            if self.idle():
                return
            time.sleep(0.05)
        raise AssertionError("requests are still running")


def chat_body(content="hello", **fields):
    return {"model": NAME, "messages": [{"role": "user", "content": content}], **fields}


def say(text, **fields):
    """A chat body whose answer is this text, special tokens recognised."""
    return chat_body(vllm_xargs={"replay": text}, **fields)


def parse_events(answer):
    text = answer.decode("utf-8")  # strict: each event is valid UTF-8
    blocks = text.split("\n\n")
    assert blocks[-1] == ""
    data = [b for b in blocks[:-1] if not b.startswith(":")]
    assert all(b.startswith("data: ") and "\n" not in b for b in data)
    assert data[-1] == "data: [DONE]"
    return [json.loads(b[6:]) for b in data[:-1]]


def raw_request(path, body, **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json",
             f"Content-Length: {len(data)}"]
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def read_response(stream):
    """(status, headers, body) from a socket's makefile('rb')."""
    status = int(stream.readline().split()[1])
    headers = {}
    while True:
        line = stream.readline().strip()
        if not line:
            break
        key, value = line.decode().split(":", 1)
        headers[key.lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            size = int(stream.readline(), 16)
            body += stream.read(size)
            assert stream.readline() == b"\r\n"
            if size == 0:
                return status, headers, body
    return status, headers, stream.read(int(headers.get("content-length", 0)))


def merge_chat(events):
    """What a client makes of a stream: choices by index, as in the whole answer."""
    out = {}
    for event in events:
        for choice in event["choices"]:
            m = out.setdefault(choice["index"], {"content": "", "reasoning": "", "calls": [],
                                                 "finish_reason": None, "tokens": []})
            delta = choice["delta"]
            m["content"] += delta.get("content") or ""
            m["reasoning"] += delta.get("reasoning") or ""
            for part in delta.get("tool_calls", []):
                if part["index"] == len(m["calls"]):
                    m["calls"].append({"id": part["id"], "name": part["function"]["name"],
                                       "arguments": ""})
                m["calls"][part["index"]]["arguments"] += part["function"].get("arguments", "")
            assert m["finish_reason"] is None, "nothing follows the finish reason"
            m["finish_reason"] = choice["finish_reason"]
            m["stop_reason"] = choice.get("stop_reason")
            m["tokens"] += (choice["logprobs"] or {"content": []})["content"]
    return out


def whole_chat(answer):
    return {c["index"]: {"content": c["message"]["content"] or "",
                         "reasoning": c["message"]["reasoning"] or "",
                         "calls": [{"id": t["id"], "name": t["function"]["name"],
                                    "arguments": t["function"]["arguments"]}
                                   for t in c["message"].get("tool_calls", [])],
                         "finish_reason": c["finish_reason"], "stop_reason": c["stop_reason"],
                         "tokens": (c["logprobs"] or {"content": []})["content"]}
            for c in answer["choices"]}
