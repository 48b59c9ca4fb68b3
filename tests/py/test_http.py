"""HTTP itself, over raw sockets: keep-alive, pipelining, chunked bodies, limits, cross-origin rules, drains."""
import json
import socket
import time

import pytest

from server import chat_body, parse_events, raw_request, read_response

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def text_of(body):
    return json.loads(body)["choices"][0]["message"]["content"]


def test_one_connection_serves_many_requests(server):
    with server.socket() as c:
        stream = c.makefile("rb")
        for i in range(50):
            c.sendall(raw_request(CHAT, chat_body(str(i))))
            status, headers, body = read_response(stream)
            assert status == 200 and "connection" not in headers and text_of(body) == str(i)


@pytest.mark.parametrize("step", [1, 7, 100, 10**9])
def test_pipelined_requests_are_answered_in_order_however_they_are_cut(server, step):
    requests = b"".join(raw_request(CHAT, chat_body(f"number {i}", stream=i % 2 == 1)) for i in range(10))
    with server.socket() as c:
        stream = c.makefile("rb")
        for at in range(0, len(requests), step):
            c.sendall(requests[at:at + step])
        for i in range(10):
            status, headers, body = read_response(stream)
            assert status == 200
            text = text_of(body) if i % 2 == 0 else "".join(
                e["choices"][0]["delta"].get("content", "") for e in parse_events(body))
            assert text == f"number {i}"
    assert server.get("/health")[0] == 200


def test_a_thousand_pipelined_probes(server):
    with server.socket() as c:
        c.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        stream = c.makefile("rb")
        assert all(read_response(stream)[0] == 200 for _ in range(1000))


def test_chunked_bodies_are_read(server):
    data = json.dumps(chat_body("in pieces")).encode()
    with server.socket() as c:
        c.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                  % CHAT.encode())
        for i in range(0, len(data), 9):
            piece = data[i:i + 9]
            c.sendall(b"%x;x=y\r\n%s\r\n" % (len(piece), piece))
        c.sendall(b"0\r\nTrailer: 1\r\n\r\nGET /health HTTP/1.1\r\n\r\n")
        stream = c.makefile("rb")
        assert text_of(read_response(stream)[2]) == "in pieces"
        assert read_response(stream)[0] == 200


def test_expect_continue_is_answered_before_the_body(server):
    data = json.dumps(chat_body("late")).encode()
    with server.socket() as c:
        stream = c.makefile("rb")
        c.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                  b"Expect: 100-continue\r\n\r\n" % (CHAT.encode(), len(data)))
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n" and stream.readline() == b"\r\n"
        c.sendall(data)
        assert text_of(read_response(stream)[2]) == "late"
        c.sendall(b"POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
        assert read_response(stream)[0] == 404


def test_http_1_0_and_close(server):
    with server.socket() as c:
        c.sendall(b"GET /version HTTP/1.0\r\n\r\n")
        assert b"0.33.0" in c.makefile("rb").read()
    with server.socket() as c:
        c.sendall(raw_request(CHAT, chat_body(stream=True)).replace(b"HTTP/1.1", b"HTTP/1.0"))
        answer = c.makefile("rb").read()
        assert b"transfer-encoding" not in answer and answer.endswith(b"data: [DONE]\n\n")
    with server.socket() as c:
        c.sendall(raw_request(CHAT, chat_body(), Connection="close"))
        assert b"\r\nconnection: close\r\n" in c.makefile("rb").read()


def test_a_client_that_shuts_down_its_sending_side_still_gets_quick_answers(server):
    with server.socket() as c:
        c.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
        c.shutdown(socket.SHUT_WR)
        assert b"0.33.0" in c.makefile("rb").read()


@pytest.mark.parametrize("head,status", [
    (b"NONSENSE\r\n\r\n", 400), (b"GET / HTTP/3.0\r\n\r\n", 501), (b"GET /%00 HTTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\r\nA : b\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n", 400),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
    (b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 257 + b"\r\n", 431),
    (b"GET /" + b"a" * (4 << 20) + b" HTTP/1.1\r\n\r\n", 431),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400)])
def test_what_is_no_request_is_refused_and_ends_the_connection(server, head, status):
    with server.socket() as c:
        c.sendall(head)
        stream = c.makefile("rb")
        code, headers, body = read_response(stream)
        assert code == status and headers["connection"] == "close" and json.loads(body)["error"]["code"] == status
        assert stream.read() == b""


def test_bodies_over_the_limit_are_refused_before_they_are_read(start):
    with start("--max-body", "1000") as s:
        for head in [b"Content-Length: 1001\r\n\r\n", b"Content-Length: 99999999999999\r\n\r\n",
                     b"Transfer-Encoding: chunked\r\n\r\n400\r\n" + b"x" * 1024]:
            with s.socket() as c:
                c.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" % CHAT.encode() + head)
                code, _, body = read_response(c.makefile("rb"))
                assert code == 413 and b"request entity too large" in body.lower() and b"1000 bytes" in body
        assert s.chat()[0] == 200


def test_large_bodies_pass(server):
    assert server.chat("hi", ignored="x" * (8 << 20))[0] == 200


def test_idle_connections_are_closed(start):
    with start(env={"VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "1"}) as s:
        with s.socket() as c:
            c.sendall(b"GET /health HTTP/1.1\r\n\r\n")
            stream = c.makefile("rb")
            assert read_response(stream)[0] == 200
            assert stream.read() == b""


def test_connections_over_the_limit_wait_for_a_place(start):
    with start("--max-connections", "2") as s:
        first, second, third = s.socket(), s.socket(), s.socket()
        for c in (first, second, third):
            c.sendall(b"GET /health HTTP/1.1\r\n\r\n")
        assert read_response(first.makefile("rb"))[0] == read_response(second.makefile("rb"))[0] == 200
        first.close()
        assert read_response(third.makefile("rb"))[0] == 200
        second.close()
        third.close()


def preflight(server, origin="http://a", method="POST", headers="x-a, content-type"):
    return server.request("OPTIONS", CHAT, headers={"Origin": origin, "Access-Control-Request-Method": method,
                                                    "Access-Control-Request-Headers": headers})


def test_other_origins_are_refused_by_default(server):
    status, headers, body = preflight(server)
    assert (status, body) == (400, b"Disallowed CORS origin") and "access-control-allow-origin" not in headers
    assert server.request("GET", "/v1/models", headers={"Origin": "http://a"})[1]["vary"] == "Origin"


def test_all_origins(start):
    with start("--allowed-origins", '["*"]') as s:
        status, headers, body = preflight(s)
        assert (status, body) == (200, b"OK")
        assert headers["access-control-allow-origin"] == "*" and headers["access-control-max-age"] == "600"
        assert headers["access-control-allow-headers"] == "x-a, content-type"
        assert "POST" in headers["access-control-allow-methods"]
        assert s.request("GET", "/v1/models", headers={"Origin": "http://a"})[1]["access-control-allow-origin"] == "*"


def test_listed_origins_and_methods(start):
    with start("--allowed-origins", '["http://a"]', "--allowed-methods", '["GET"]', "--allow-credentials") as s:
        answer = s.request("GET", "/v1/models", headers={"Origin": "http://a"})[1]
        assert answer["access-control-allow-origin"] == "http://a" and answer["access-control-allow-credentials"] == "true"
        assert "access-control-allow-origin" not in s.request("GET", "/v1/models", headers={"Origin": "http://b"})[1]
        assert preflight(s, method="POST")[2] == b"Disallowed CORS method"
        assert preflight(s, method="GET")[0] == 200


def test_a_root_path_is_cut_off_also_before_the_key_check(start):
    with start("--root-path", "/api", "--api-key", "k") as s:
        assert s.get("/api/health")[0] == 200 and s.get("/health")[0] == 200
        assert s.get("/api/v1/models")[0] == 401
        assert s.get("/api/v1/models", Authorization="Bearer k")[0] == 200
        assert s.get("/api/%76%31/models")[0] == 401, "the decoded path is what is checked"


def test_a_unix_socket(start, tmp_path):
    path = tmp_path / "s"
    import http.client
    import subprocess

    from server import BINARY, MODEL
    p = subprocess.Popen([BINARY, "serve", MODEL, "--load-format", "replay", "--uds", path], stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            if path.exists():
                break
            time.sleep(0.1)
        c = http.client.HTTPConnection("x")
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(str(path))
        c.request("GET", "/health")
        assert c.getresponse().status == 200
    finally:
        p.terminate()
        assert p.wait(60) == 0
    assert not path.exists()


def test_a_port_in_use_is_named(start, server):
    with pytest.raises(RuntimeError, match=f"port {server.port}"):
        start("--port", str(server.port))


LONG = {"prompt": "x", "max_tokens": 4000, "n": 100, "vllm_xargs": {"replay_ids": [41] * 4000}}


def begin(server, **fields):
    """A long request that has started: its socket and the stream to read from."""
    c = server.socket(4096)
    c.sendall(raw_request(COMPLETIONS, {**LONG, **fields}))
    return c, c.makefile("rb")


@pytest.mark.parametrize("streams", [1, 20])
def test_a_stop_ends_streams_with_abort_and_the_process_with_success(start, streams):
    with start() as s:
        opened = [begin(s, stream=True) for _ in range(streams)]
        for c, stream in opened:
            assert b"200" in stream.readline()
        s.process.terminate()
        for c, stream in opened:
            rest = stream.read()
            assert b'"finish_reason":"abort"' in rest and b"data: [DONE]\n\n" in rest and rest.endswith(b"0\r\n\r\n")
            c.close()
        assert s.process.wait(60) == 0


def test_a_drain_lets_requests_finish_and_takes_no_new_ones(start):
    with start("--shutdown-timeout", "60") as s:
        c, stream = begin(s, stream=True, n=30)
        assert b"200" in stream.readline()
        s.process.terminate()
        while s.get("/health")[0] != 503:
            time.sleep(0.01)
        code, body = s.chat()
        assert code == 503 and body["error"]["type"] == "ServiceUnavailableError"
        assert s.get("/metrics")[0] == 200
        rest = stream.read()
        assert b"abort" not in rest and rest.count(b'"finish_reason":"length"') == 30
        c.close()
        assert s.process.wait(60) == 0


def test_a_second_signal_ends_a_drain_at_once(start):
    with start("--shutdown-timeout", "600") as s:
        c, stream = begin(s, stream=True)
        assert b"200" in stream.readline()
        s.process.terminate()
        while s.get("/health")[0] != 503:
            time.sleep(0.01)
        s.process.terminate()
        assert b'"finish_reason":"abort"' in stream.read()
        assert s.process.wait(60) == 0
        c.close()
