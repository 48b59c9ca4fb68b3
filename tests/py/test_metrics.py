"""The exposition: a strict parser reads it, every name is there from the start, and the figures are those of the requests made."""
import json

import pytest

parser = pytest.importorskip("prometheus_client.parser")

from server import say  # noqa: E402

ENGINE = ["model_name", "engine"]
GAUGES = {"num_requests_running": [], "num_requests_waiting": [], "kv_cache_usage_perc": [],
          "num_requests_waiting_by_reason": [("reason", ["capacity", "deferred"])],
          "engine_sleep_state": [("sleep_state", ["awake", "weights_offloaded", "discard_all"])],
          "gpu_cache_usage_perc": [], "num_requests_swapped": [], "cpu_cache_usage_perc": [], "gpu_prefix_cache_hit_rate": []}
COUNTERS = {"prompt_tokens": [], "generation_tokens": [], "prompt_tokens_cached": [], "num_preemptions": [],
            "prompt_tokens_by_source": [("source", ["local_compute", "local_cache_hit", "external_kv_transfer"])],
            "prompt_tokens_cached_by_source": [("source", ["device", "host", "p2p", "disk", "external_unspecified"])],
            "request_success": [("finished_reason", ["stop", "length", "abort", "error", "repetition"])],
            "prefix_cache_queries": [], "prefix_cache_hits": [], "external_prefix_cache_queries": [],
            "external_prefix_cache_hits": [], "mm_cache_queries": [], "mm_cache_hits": [],
            "gpu_prefix_cache_queries": [], "gpu_prefix_cache_hits": []}
TTFT = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560]
ITL = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80]
LATENCY = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680]
LENGTH = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]  # up to the model length of 4096
HISTOGRAMS = {"time_to_first_token_seconds": TTFT, "inter_token_latency_seconds": ITL,
              "request_time_per_output_token_seconds": ITL, "time_per_output_token_seconds": ITL,
              "e2e_request_latency_seconds": LATENCY, "request_queue_time_seconds": LATENCY,
              "request_inference_time_seconds": LATENCY, "request_prefill_time_seconds": LATENCY,
              "request_decode_time_seconds": LATENCY, "request_prompt_tokens": LENGTH,
              "request_generation_tokens": LENGTH, "request_max_num_generation_tokens": LENGTH,
              "request_params_max_tokens": LENGTH, "request_prefill_kv_computed_tokens": LENGTH,
              "iteration_tokens_total": [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384],
              "request_params_n": [1, 2, 5, 10, 20], "request_num_preemptions": [1, 2, 3, 4, 5, 10, 20]}
PROCESS = ["process_cpu_seconds", "process_resident_memory_bytes", "process_virtual_memory_bytes", "process_open_fds",
           "process_max_fds", "process_start_time_seconds"]
HTTP = {"http_requests": "counter", "http_request_duration_seconds": "histogram",
        "http_request_duration_highr_seconds": "histogram", "http_request_size_bytes": "summary",
        "http_response_size_bytes": "summary"}


def families(server):
    status, headers, body = server.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
    assert status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "content-encoding" not in headers
    found = {}
    for f in parser.text_string_to_metric_families(body.decode()):
        assert f.name not in found, "a family is written once"
        found[f.name] = f
    return found


def samples(server):
    out = {}
    for f in families(server).values():
        for s in f.samples:
            out[(s.name,) + tuple(sorted(v for k, v in s.labels.items() if k not in ENGINE))] = s.value
    return out


@pytest.fixture(scope="module")
def fresh(start):
    """A server that nobody else has asked."""
    with start("--reasoning-parser", "glm47", "--tool-call-parser", "glm47", "--enable-auto-tool-choice") as s:
        yield s


def test_every_name_is_there_from_the_start_with_zero(fresh):
    found = families(fresh)
    for table, kind, suffix in [(GAUGES, "gauge", ""), (COUNTERS, "counter", "_total")]:
        for name, labels in table.items():
            f = found[f"vllm:{name}"]
            values = [s for s in f.samples if s.name == f"vllm:{name}{suffix}"]
            assert f.type == kind and f.documentation
            assert all(s.labels["model_name"] == "tiny" and s.labels["engine"] == "0" for s in values)
            for label, wanted in labels:
                assert {s.labels[label] for s in values} == set(wanted)
            expected = {"awake": 1}
            assert all(s.value == expected.get(s.labels.get("sleep_state"), 0) for s in values), name
    for name, bounds in HISTOGRAMS.items():
        f = found[f"vllm:{name}"]
        buckets = [s for s in f.samples if s.name.endswith("_bucket")]
        assert f.type == "histogram" and [float(s.labels["le"]) for s in buckets] == bounds + [float("inf")], name
        assert all(s.value == 0 for s in f.samples if not s.name.endswith("_created"))
    for name in PROCESS:
        assert name in found and found[name].samples[0].value > 0
    for name, kind in HTTP.items():
        assert found[name].type == kind
    info = found["vllm:cache_config_info"].samples[0]
    assert info.value == 1 and info.labels["block_size"] == "64" and "model_name" not in info.labels
    assert {"num_gpu_blocks", "cache_dtype", "gpu_memory_utilization", "enable_prefix_caching", "num_gpu_blocks_override",
            "num_cpu_blocks", "sliding_window", "prefix_caching_hash_algo", "user_specified_block_size",
            "kv_cache_size_tokens", "kv_cache_max_concurrency"} <= set(info.labels)
    rejections = found["vllm:admission_rejections"].samples
    assert {s.labels["reason"] for s in rejections if s.name.endswith("_total")} == {"max_num_queued_reqs", "max_num_queued_tokens"}
    assert all("engine" not in s.labels for s in rejections)
    tool = [s for s in found["vllm:tool_call_parser_invocations"].samples if s.name.endswith("_total")]
    assert len({tuple(sorted(s.labels.items())) for s in tool}) == 2 * 2 * 3


def test_requests_are_counted(fresh):
    before = samples(fresh)
    r = fresh.post("/v1/chat/completions", say("one two three", n=2, temperature=1))[1]
    fresh.post("/v1/chat/completions", say("one two three", max_tokens=1))
    fresh.events("/v1/completions", {"prompt": [40, 41, 42], "max_tokens": 2})
    after = samples(fresh)

    def grown(name, *labels):
        key = (name, *sorted(labels))
        return after[key] - before.get(key, 0)
    assert grown("vllm:request_success_total", "stop") == 2 and grown("vllm:request_success_total", "length") == 2
    assert grown("vllm:generation_tokens_total") == r["usage"]["completion_tokens"] + 1 + 2
    assert grown("vllm:prompt_tokens_total") == 2 * r["usage"]["prompt_tokens"] + 3
    assert grown("vllm:prompt_tokens_by_source_total", "local_compute") == grown("vllm:prompt_tokens_total")
    assert grown("vllm:time_to_first_token_seconds_count") == 4
    assert grown("vllm:inter_token_latency_seconds_count") == grown("vllm:generation_tokens_total") - 4
    assert grown("vllm:e2e_request_latency_seconds_count") == 4
    for name in ["queue", "prefill", "decode", "inference"]:
        assert grown(f"vllm:request_{name}_time_seconds_count") == 4
    assert grown("vllm:request_prompt_tokens_sum") == 3 * r["usage"]["prompt_tokens"] + 3
    assert grown("vllm:request_generation_tokens_sum") == grown("vllm:generation_tokens_total")
    assert grown("vllm:request_params_n_count") == 3 and grown("vllm:request_params_n_sum") == 4
    assert grown("vllm:request_max_num_generation_tokens_count") == 3
    assert grown("vllm:request_num_preemptions_count") == 4 and grown("vllm:request_num_preemptions_sum") == 0
    assert grown("vllm:iteration_tokens_total_sum") >= grown("vllm:generation_tokens_total")
    assert grown("http_requests_total", "/v1/chat/completions", "POST", "2xx") == 2
    assert grown("http_requests_total", "/v1/completions", "POST", "2xx") == 1
    assert after["vllm:num_requests_running",] == after["vllm:num_requests_waiting",] == 0


def test_tool_calls_are_counted_by_mode(fresh):
    tools = [{"type": "function", "function": {"name": "f"}}]
    key = "vllm:tool_call_parser_invocations_total"
    before = samples(fresh)
    fresh.post("/v1/chat/completions", say("<tool_call>f</tool_call>", tools=tools))
    fresh.events("/v1/chat/completions", say("<tool_call>f</tool_call>", tools=tools))
    fresh.events("/v1/chat/completions", say("no", tools=tools))
    after = samples(fresh)
    for labels in [("non_streaming", "tool_call"), ("streaming", "tool_call"), ("streaming", "no_tool_call")]:
        k = (key, *sorted(labels + ("chat_completions",)))
        assert after[k] - before[k] == 1


def test_http_series_leave_out_probes_and_bound_their_labels(fresh):
    for path in ["/health", "/ping", "/version", "/load", "/metrics", "/metrics/"]:
        assert fresh.get(path)[0] == 200
    for path in ["/a", "/b", "/c/d"]:
        fresh.get(path)
    fresh.request("BREW", "/coffee")
    handlers = {s.labels["handler"] for s in families(fresh)["http_requests"].samples}
    assert not handlers & {"/health", "/ping", "/version", "/load", "/metrics"}
    assert "none" in handlers and not handlers & {"/a", "/coffee"}
    methods = {s.labels["method"] for s in families(fresh)["http_requests"].samples}
    assert "OTHER" in methods and "BREW" not in methods


def test_load_counts_requests_under_way(server):
    assert json.loads(server.get("/load")[1]) == {"server_load": 0}
    c = server.socket(4096)
    body = json.dumps({"prompt": "x", "stream": True, "max_tokens": 4000, "n": 20, "logprobs": 1,
                       "vllm_xargs": {"replay_ids": [41] * 4000}}).encode()
    c.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
              % len(body) + body)
    c.recv(100)
    assert json.loads(server.get("/load")[1]) == {"server_load": 1}
    c.close()
    server.wait_idle()
    assert json.loads(server.get("/load")[1]) == {"server_load": 0}


def test_the_simple_routes(server):
    assert server.request("GET", "/health")[2] == b"" and server.request("POST", "/ping")[0] == 200
    assert json.loads(server.get("/version")[1]) == {"version": "0.33.0"}
    assert server.get("/")[0] == 200 and server.request("HEAD", "/")[2] == b""
