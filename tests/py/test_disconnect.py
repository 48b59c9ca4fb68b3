"""Clients that leave or do not read: the work stops, nothing leaks, others are not held up."""
import random
import socket
import struct
import threading
import time

import pytest

from server import parse_events, raw_request, read_response

COMPLETIONS = "/v1/completions"
LONG = {"prompt": "x", "max_tokens": 4000, "n": 16, "vllm_xargs": {"replay_ids": [41] * 4000}}
WIDE = ["--max-model-len", "32768", "--hf-overrides", '{"max_position_embeddings": 32768}']


def reset(c):
    """Closes with a reset instead of a goodbye."""
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.close()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("leave", [lambda c: c.close(), reset], ids=["close", "reset"])
def test_leaving_ends_the_work(server, stream, leave):
    before = server.metric("vllm:generation_tokens_total")
    aborted = 'vllm:request_success_total{model_name="tiny",engine="0",finished_reason="abort"}'
    count = server.metrics()[aborted]
    body = {**LONG, "n": 200}  # 800,000 tokens
    c = server.socket(4096)
    c.sendall(raw_request(COMPLETIONS, {**body, "stream": stream}))
    while server.metric("vllm:num_requests_running") == 0:
        time.sleep(0.005)
    leave(c)
    server.wait_idle()
    assert server.metric("vllm:generation_tokens_total") - before < 800_000
    assert server.metrics()[aborted] > count


def test_leaving_in_a_long_prompt_ends_the_work(start):
    """Replay reads a prompt in one step; random weights do not."""
    with start("--load-format", "dummy", "--max-num-batched-tokens", "256", "--max-num-seqs", "4", replay=False) as s:
        c = s.socket()
        c.sendall(raw_request(COMPLETIONS, {"prompt": [40] * 4000, "max_tokens": 1}))
        while s.metric("vllm:num_requests_running") == 0:
            time.sleep(0.01)
        c.close()
        s.wait_idle()
        assert s.metric("vllm:prompt_tokens_total") == 0 and s.metric("vllm:kv_cache_usage_perc") == 0


def test_five_hundred_disconnects_leave_nothing_behind(start):
    """J1: eight clients at once leave at random points, before, in and after the answer."""
    with start("--max-num-seqs", "8") as s:
        def leaver(seed):
            rng = random.Random(seed)
            for _ in range(63):
                with s.socket(4096) as c:
                    data = raw_request(COMPLETIONS, {**LONG, "n": 2, "max_tokens": rng.choice([1, 100, 4000]),
                                                     "stream": rng.random() < 0.7})
                    c.sendall(data[:rng.choice([len(data), len(data), len(data), rng.randrange(len(data))])])
                    if rng.random() < 0.7:
                        c.settimeout(rng.choice([0.001, 0.01, 0.05]))
                        try:
                            c.recv(rng.choice([1, 100, 100_000]))
                        except TimeoutError:
                            pass
                    if rng.random() < 0.3:
                        reset(c)
        threads = [threading.Thread(target=leaver, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        s.wait_idle()
        m = s.metrics()
        assert m['vllm:kv_cache_usage_perc{model_name="tiny",engine="0"}'] == 0
        answers = []

        def asker():
            answers.append(s.chat("still here"))
        threads = [threading.Thread(target=asker) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert [a[1]["choices"][0]["message"]["content"] for a in answers] == ["still here"] * 8
        for _ in range(600):  # connections close by themselves
            if s.metric("process_open_fds") < 20:
                break
            time.sleep(0.05)
        assert s.metric("process_open_fds") < 20


def memory(server):
    return server.metric("process_resident_memory_bytes")


def test_a_reader_that_does_not_read_holds_nobody_up(start):
    """J3: A asks for 8,000 tokens in many choices and reads nothing; B is served; then A gets every byte."""
    # A sanitizer keeps freed memory for a while, which is not what is measured.
    with start(*WIDE, env={"ASAN_OPTIONS": "quarantine_size_mb=1"}) as s:
        script = list(range(40, 90)) * 160
        body = {"prompt": "x", "max_tokens": 8000, "n": 8, "stream": True, "temperature": 1, "vllm_xargs": {"replay_ids": script}}
        expected = s.post("/detokenize", {"tokens": script})[1]["prompt"]
        s.chat()
        before = memory(s)
        slow = s.socket(2048)
        slow.sendall(raw_request(COMPLETIONS, body))
        s_events = s.events(COMPLETIONS, body)  # B, meanwhile
        s.wait_idle()
        text = {}
        for e in s_events:
            for c in e["choices"]:
                text[c["index"]] = text.get(c["index"], "") + c["text"]
        assert text == {i: expected for i in range(8)}
        assert memory(s) - before < 64 << 20
        time.sleep(0.5)
        status, _, answer = read_response(slow.makefile("rb"))
        text = {}
        events = parse_events(answer)
        for e in events:
            for c in e["choices"]:
                text[c["index"]] = text.get(c["index"], "") + c["text"]
        assert status == 200 and text == {i: expected for i in range(8)}
        slow.close()


def test_a_closed_half_request_costs_nothing(server):
    for data in [b"", b"P", b"POST /v1/completions HTTP/1.1\r\n", raw_request(COMPLETIONS, LONG)[:-5]]:
        c = server.socket()
        c.sendall(data)
        c.close()
    assert server.chat()[0] == 200


def test_many_streams_half_of_which_leave(start):
    """Every second of 300 open streams is cut; the others are whole."""
    with start("--max-num-seqs", "64") as s:
        script = [41] * 200
        body = raw_request(COMPLETIONS, {"prompt": "x", "max_tokens": 200, "stream": True, "vllm_xargs": {"replay_ids": script}})
        expected = s.post("/detokenize", {"tokens": script})[1]["prompt"]
        sockets = [s.socket() for _ in range(300)]
        for c in sockets:
            c.sendall(body)
        for c in sockets[::2]:
            c.close()
        for c in sockets[1::2]:
            events = parse_events(read_response(c.makefile("rb"))[2])
            assert "".join(e["choices"][0]["text"] for e in events) == expected
            c.close()
        s.wait_idle()


def test_a_dead_reader_is_dropped_in_time(start):
    """Megabytes of logprobs that nobody takes: after the stated time the connection goes."""
    with start(*WIDE, "--write-timeout", "1") as s:
        descriptors = s.metric("process_open_fds")
        c = s.socket(2048)
        c.sendall(raw_request(COMPLETIONS, {"prompt": "x", "max_tokens": 30000, "n": 8, "stream": True, "temperature": 1,
                                            "logprobs": 1, "vllm_xargs": {"replay_ids": [41] * 30000}}))
        for _ in range(600):
            if any("nothing could be written in time" in line for line in s.log):
                break
            time.sleep(0.05)
        else:
            raise AssertionError("the reader was not dropped")
        s.wait_idle()
        assert s.chat()[0] == 200 and s.metric("process_open_fds") == descriptors
        c.close()
