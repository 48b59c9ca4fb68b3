"""What a server refuses and how: each row is one rule of the interface. After every refusal the next request works."""
import json

import pytest

from server import NAME, chat_body, parse_events

TOOL = {"type": "function", "function": {"name": "f"}}
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"

# field, value, type, param: for chat requests
CHAT_ROWS = [
    ("messages", None, "Bad Request", "body.messages"),
    ("messages", "hi", "Bad Request", "body.messages"),
    ("messages", [], "BadRequestError", "messages"),
    ("messages", ["hi"], "Bad Request", "body.messages.0"),
    ("messages", [{"content": "x"}], "Bad Request", "body.messages.0.role"),
    ("messages", [{"role": "user", "content": 5}], "Bad Request", "body.messages.0.content"),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
     "BadRequestError", None),
    ("messages", [{"role": "user", "content": [{"type": "riddle"}]}], "BadRequestError", None),
    ("messages", [{"role": "martian", "content": "x"}], "BadRequestError", None),
    ("model", 5, "Bad Request", "body.model"),
    ("frequency_penalty", 2.1, "BadRequestError", "frequency_penalty"),
    ("frequency_penalty", "1", "Bad Request", "body.frequency_penalty"),
    ("presence_penalty", -2.1, "BadRequestError", "presence_penalty"),
    ("repetition_penalty", 0, "BadRequestError", "repetition_penalty"),
    ("temperature", -0.1, "BadRequestError", "temperature"),
    ("temperature", 2.1, "BadRequestError", "temperature"),
    ("temperature", "hot", "Bad Request", "body.temperature"),
    ("top_p", 0, "BadRequestError", "top_p"),
    ("top_p", 1.1, "BadRequestError", "top_p"),
    ("top_k", -2, "BadRequestError", "top_k"),
    ("top_k", 1.5, "Bad Request", "body.top_k"),
    ("min_p", 1.1, "BadRequestError", "min_p"),
    ("logit_bias", [1], "Bad Request", "body.logit_bias"),
    ("logit_bias", {"99999999": 1}, "BadRequestError", "logit_bias"),
    ("logit_bias", {"-1": 1}, "BadRequestError", "logit_bias"),
    ("logit_bias", {"1e3": 1}, "BadRequestError", "logit_bias"),
    ("logit_bias", {"abc": 1}, "BadRequestError", "logit_bias"),
    ("logit_bias", {"18446744073709551617": 1}, "BadRequestError", "logit_bias"),
    ("logit_bias", {"5": "1"}, "Bad Request", "body.logit_bias.5"),
    ("logit_bias", {str(i): 1 for i in range(300_000)}, "BadRequestError", "logit_bias"),
    ("logprobs", 1, "Bad Request", "body.logprobs"),
    ("top_logprobs", 1, "BadRequestError", "top_logprobs"),
    ("max_tokens", 0, "BadRequestError", "max_tokens"),
    ("max_tokens", "9", "Bad Request", "body.max_tokens"),
    ("max_tokens", 4097, "BadRequestError", "max_tokens"),
    ("max_completion_tokens", 5000, "BadRequestError", "max_completion_tokens"),
    ("max_completion_tokens", 0, "BadRequestError", "max_tokens"),
    ("n", 0, "BadRequestError", "n"),
    ("n", 16385, "BadRequestError", "n"),
    ("n", [1], "Bad Request", "body.n"),
    ("response_format", {"type": "poem"}, "Bad Request", "body.response_format.type"),
    ("response_format", "text", "Bad Request", "body.response_format"),
    ("seed", "1", "Bad Request", "body.seed"),
    ("seed", 2**63, "Bad Request", "body.seed"),
    ("stop", "", "BadRequestError", "stop"),
    ("stop", ["a", ""], "BadRequestError", "stop"),
    ("stop", ["a", "b", "c", "d", "e"], "BadRequestError", "stop"),
    ("stop", 5, "Bad Request", "body.stop"),
    ("stop", ["a", 5], "Bad Request", "body.stop.1"),
    ("stream", "yes", "Bad Request", "body.stream"),
    ("stream_options", {"include_usage": True}, "BadRequestError", "stream_options"),
    ("stream_options", [], "Bad Request", "body.stream_options"),
    ("tools", [], "BadRequestError", "tools"),
    ("tools", {}, "Bad Request", "body.tools"),
    ("tools", [{"type": "function"}], "Bad Request", "body.tools.0.function.name"),
    ("tools", [{"type": "magic", "function": {"name": "f"}}], "Bad Request", "body.tools.0.type"),
    ("tool_choice", "auto", "BadRequestError", "tool_choice"),
    ("tool_choice", "required", "BadRequestError", "tool_choice"),
    ("tool_choice", 5, "Bad Request", "body.tool_choice"),
    ("parallel_tool_calls", 1, "Bad Request", "body.parallel_tool_calls"),
    ("reasoning_effort", "huge", "Bad Request", "body.reasoning_effort"),
    ("thinking_token_budget", -2, "BadRequestError", "thinking_token_budget"),
    ("thinking_token_budget", True, "BadRequestError", "thinking_token_budget"),
    ("thinking_token_budget", 1.5, "BadRequestError", "thinking_token_budget"),
    ("include_reasoning", "no", "Bad Request", "body.include_reasoning"),
    ("stop_token_ids", [99999], "BadRequestError", "stop_token_ids"),
    ("stop_token_ids", ["1"], "Bad Request", "body.stop_token_ids.0"),
    ("ignore_eos", 1, "Bad Request", "body.ignore_eos"),
    ("min_tokens", -1, "BadRequestError", "min_tokens"),
    ("skip_special_tokens", "x", "Bad Request", "body.skip_special_tokens"),
    ("bad_words", [""], "BadRequestError", "bad_words"),
    ("bad_words", "word", "Bad Request", "body.bad_words"),
    ("bad_words", ["w"] * 129, "BadRequestError", "bad_words"),
    ("allowed_token_ids", [], "BadRequestError", "allowed_token_ids"),
    ("allowed_token_ids", [-1], "BadRequestError", "allowed_token_ids"),
    ("truncate_prompt_tokens", -2, "BadRequestError", "truncate_prompt_tokens"),
    ("truncate_prompt_tokens", 4097, "BadRequestError", "truncate_prompt_tokens"),
    ("truncation_side", "top", "Bad Request", "body.truncation_side"),
    ("prompt_logprobs", -2, "BadRequestError", "prompt_logprobs"),
    ("prompt_logprobs", 21, "BadRequestError", "prompt_logprobs"),
    ("logprob_token_ids", [1], "BadRequestError", "logprob_token_ids"),
    ("documents", ["text"], "Bad Request", "body.documents.0"),
    ("documents", [{"a": 1}], "Bad Request", "body.documents"),
    ("chat_template", "{{ 1 }}", "BadRequestError", "chat_template"),
    ("chat_template_kwargs", {"chat_template": "x"}, "BadRequestError", "chat_template_kwargs"),
    ("chat_template_kwargs", 5, "Bad Request", "body.chat_template_kwargs"),
    ("mm_processor_kwargs", {"a": 1}, "BadRequestError", "mm_processor_kwargs"),
    ("media_io_kwargs", {"a": 1}, "BadRequestError", "media_io_kwargs"),
    ("cache_salt", "", "BadRequestError", "cache_salt"),
    ("cache_salt", "a@b", "BadRequestError", "cache_salt"),
    ("cache_salt", "x" * 129, "BadRequestError", "cache_salt"),
    ("vllm_xargs", {"a": {"b": 1}}, "Bad Request", "body.vllm_xargs"),
    ("vllm_xargs", {"a": None}, "Bad Request", "body.vllm_xargs"),
    ("priority", "high", "Bad Request", "body.priority"),
    ("request_id", 5, "Bad Request", "body.request_id"),
    ("stream_interval", 0, "BadRequestError", "stream_interval"),
]
# several fields at once
CHAT_BODIES = [
    ({"logprobs": True, "top_logprobs": -2}, "BadRequestError", "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "BadRequestError", "logprobs"),
    ({"n": 2, "temperature": 0}, "BadRequestError", "n"),
    ({"min_tokens": 9, "max_tokens": 8}, "BadRequestError", "min_tokens"),
    ({"prompt_logprobs": 1, "stream": True}, "BadRequestError", "prompt_logprobs"),
    ({"logprobs": True, "logprob_token_ids": list(range(129))}, "BadRequestError", "logprob_token_ids"),
    ({"logprobs": True, "logprob_token_ids": [99999]}, "BadRequestError", "logprob_token_ids"),
    ({"continue_final_message": True, "add_generation_prompt": True}, "BadRequestError", "continue_final_message"),
    ({"tools": [TOOL], "tool_choice": "maybe"}, "BadRequestError", "tool_choice"),
    ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
     "BadRequestError", "tool_choice"),
    ({"tools": [TOOL], "tool_choice": {}}, "BadRequestError", "tool_choice"),
    ({"vllm_xargs": {"replay_ids": [99999]}}, "BadRequestError", "vllm_xargs"),
]
COMPLETION_ROWS = [
    ({}, "BadRequestError", "prompt"),
    ({"prompt": ""}, "BadRequestError", "prompt"),
    ({"prompt": []}, "BadRequestError", "prompt"),
    ({"prompt": [""]}, "BadRequestError", "prompt"),
    ({"prompt": [[]]}, "BadRequestError", "prompt"),
    ({"prompt": 5}, "Bad Request", "body.prompt"),
    ({"prompt": ["a", 5]}, "Bad Request", "body.prompt"),
    ({"prompt": [[1], "a"]}, "Bad Request", "body.prompt"),
    ({"prompt": [1.5]}, "Bad Request", "body.prompt"),
    ({"prompt": [-1]}, "BadRequestError", "prompt"),
    ({"prompt": [99999]}, "BadRequestError", "prompt"),
    ({"prompt": ["a"] * 1025}, "BadRequestError", "prompt"),
    ({"prompt": "a", "suffix": "b"}, "BadRequestError", "suffix"),
    ({"prompt": "a", "logprobs": True}, "Bad Request", "body.logprobs"),
    ({"prompt": "a", "logprobs": -2}, "BadRequestError", "logprobs"),
    ({"prompt": "a", "logprobs": 21}, "BadRequestError", "logprobs"),
    ({"prompt": "a", "max_tokens": 0}, "BadRequestError", "max_tokens"),
    ({"prompt": "a", "max_tokens": 4097}, "BadRequestError", "max_tokens"),
]
UNBUILT = [{"response_format": {"type": "json_object"}},
           {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
           {"structured_outputs": {"regex": "a"}}, {"use_beam_search": True}, {"thinking_token_budget": 100},
           {"repetition_detection": {"max_pattern_size": 3, "min_count": 2}}]


def refused(answer, status, kind, param):
    code, body = answer
    error = body["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert (code, error["code"]) == (status, status), error
    assert error["type"] == kind, error
    if param is not None:
        assert error["param"] == param, error
    return error["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("field,value,kind,param", CHAT_ROWS, ids=[f"{r[0]}-{i}" for i, r in enumerate(CHAT_ROWS)])
def test_a_chat_field_that_breaks_a_rule(server, field, value, kind, param, stream):
    body = chat_body(stream=stream, max_tokens=4)
    body[field] = value
    if field == "stream_options" and stream and kind == "BadRequestError":
        pytest.skip("legal in a stream")
    message = refused(server.post(CHAT, body), 400, kind, param)
    assert len(message) < 1500
    if kind == "BadRequestError" and param in body:
        assert f"(parameter={param}, value=" in message


@pytest.mark.parametrize("fields,kind,param", CHAT_BODIES)
def test_chat_fields_that_exclude_each_other(server, fields, kind, param):
    refused(server.chat(**fields), 400, kind, param)


@pytest.mark.parametrize("body,kind,param", COMPLETION_ROWS)
def test_a_completion_field_that_breaks_a_rule(server, body, kind, param):
    refused(server.post(COMPLETIONS, body), 400, kind, param)


@pytest.mark.parametrize("fields", UNBUILT)
def test_what_is_not_built_is_refused_by_name(server, fields):
    message = refused(server.chat(**fields), 501, "NotImplementedError", None)
    assert next(iter(fields)) in message
    refused(server.post(COMPLETIONS, {"prompt": "x", **fields}), 501, "NotImplementedError", None)


def test_null_is_absence_and_unknown_fields_are_ignored(server):
    fields = {row[0]: None for row in CHAT_ROWS if row[0] != "messages"}
    status, r = server.chat("yes", **fields, guided_json={"type": "object"}, best_of=3, functions=[], whatever={})
    assert status == 200 and r["choices"][0]["message"]["content"] == "yes"
    assert server.chat(stream_options={})[0] == 200


def test_tools_need_the_flags_of_the_server(plain):
    message = refused(plain.chat(tools=[TOOL]), 400, "BadRequestError", "tool_choice")
    assert "--enable-auto-tool-choice" in message and "--tool-call-parser" in message
    refused(plain.chat(tools=[TOOL], tool_choice="required"), 400, "BadRequestError", "tool_choice")
    assert plain.chat(tools=[TOOL], tool_choice="none")[0] == 200
    refused(plain.chat(thinking_token_budget=5), 400, "BadRequestError", "thinking_token_budget")


def test_an_unknown_model_is_not_found(server):
    for path, body in [(CHAT, chat_body()), (COMPLETIONS, {"prompt": "x"}), ("/tokenize", {"prompt": "x"}),
                       ("/detokenize", {"tokens": [1]})]:
        message = refused(server.post(path, {**body, "model": "gone"}), 404, "NotFoundError", "model")
        assert "gone" in message and NAME in message


def test_a_body_that_is_no_json_names_the_place(server):
    for data, at in [(b"", 0), (b"{", 1), (b'{"a":}', 5), (b"[1,]", 3), (b"{'a':1}", 1), (b'{"a":NaN}', 5),
                     (b'{"a":Infinity}', 5), (b'{"a":"\n"}', 6), (b'{"a":"\\ud800"}', None), (b'{"a":"\xff"}', 6),
                     (b'{"a":"\xed\xa0\x80"}', 6), (b'{} {}', None), (b'{"a":01}', None), (b"\x00", 0)]:
        code, body = server.post(CHAT, data)
        assert code == 400 and body["error"]["type"] == "Bad Request", (data, body)
        assert body["error"]["param"].startswith("body."), (data, body)
        if at is not None:
            assert abs(int(body["error"]["param"][5:]) - at) <= 2, (data, body)
    for data in [b"[]", b"null", b"5", b'"text"']:
        assert refused(server.post(CHAT, data), 400, "Bad Request", "body")
    assert server.chat()[0] == 200


def test_the_last_of_equal_keys_wins(server):
    data = json.dumps(chat_body("one")).encode()[:-1] + b',"messages":[{"role":"user","content":"two"}]}'
    assert server.post(CHAT, data)[1]["choices"][0]["message"]["content"] == "two"


@pytest.mark.parametrize("depth", [10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_refused_with_the_limit(server, depth, closed):
    data = b'{"model":"%s","x":' % NAME.encode() + b"[" * depth + (b"]" * depth + b"}" if closed else b"")
    code, body = server.post(CHAT, data)
    assert code == 400 and "128" in body["error"]["message"]
    assert server.chat()[0] == 200


def test_deep_tools_are_refused(server):
    tools = '{"type":"object","properties":{"a":' * 3000 + "{}" + "}}" * 3000
    data = json.dumps(chat_body())[:-1] + ',"tools":[{"type":"function","function":{"name":"f","parameters":%s}}]}' % tools
    assert server.post(CHAT, data.encode())[0] == 400


@pytest.mark.parametrize("kind", [None, "text/plain", "application/jsonp", "multipart/form-data; boundary=x"])
def test_the_content_type_must_be_json(server, kind):
    status, _, body = server.request("POST", CHAT, json.dumps(chat_body()), {"Content-Type": kind} if kind else {})
    error = json.loads(body)["error"]
    assert (status, error["type"], error["param"]) == (400, "Bad Request", None)
    status, _, _ = server.request("POST", CHAT, json.dumps(chat_body()),
                                  {"Content-Type": "Application/JSON; charset=utf-8"})
    assert status == 200


def test_compressed_bodies_are_refused(server):
    code, body = server.post(CHAT, b"\x1f\x8b", {"Content-Encoding": "gzip"})
    assert code == 415 and body["error"]["code"] == 415


@pytest.mark.parametrize("stream", [False, True])
def test_the_context_limit(server, stream):
    """H4: prompts of C-2, C-1, C, C+1 and 10 C tokens with a budget of 16."""
    c = 4096
    for n, out in [(c - 2, 2), (c - 1, 1)]:
        body = {"prompt": [40] * n, "max_tokens": 16, "stream": stream, "vllm_xargs": {"replay_ids": [41] * 16},
                "stream_options": {"include_usage": True} if stream else None}
        if stream:
            events = server.events(COMPLETIONS, body)
            usage, reason = events[-1]["usage"], events[-2]["choices"][0]["finish_reason"]
        else:
            answer = server.post(COMPLETIONS, body)[1]
            usage, reason = answer["usage"], answer["choices"][0]["finish_reason"]
        assert usage["completion_tokens"] == out and reason == "length"
        assert server.chat()[0] == 200
    for n in [c, c + 1, 10 * c]:
        code, body = server.post(COMPLETIONS, {"prompt": [40] * n, "max_tokens": 16, "stream": stream})
        message = body["error"]["message"]
        assert code == 400 and body["error"]["type"] == "BadRequestError"
        assert body["error"]["param"] == ("max_tokens" if n == c else "input_tokens")
        assert f"maximum context length is {c} tokens" in message and str(n) in message
        assert "reduce the length of the input prompt" in message
        assert server.chat()[0] == 200


def test_a_text_far_over_the_context_is_refused_before_it_is_tokenised(server):
    code, body = server.post(COMPLETIONS, {"prompt": "x" * 2_000_000})
    assert code == 400 and body["error"]["param"] == "input_text"
    code, body = server.chat("x" * 2_000_000)
    assert code == 400 and body["error"]["param"] == "input_text"
    assert server.post(COMPLETIONS, {"prompt": "x" * 2_000_000, "truncation_side": "left",
                                     "truncate_prompt_tokens": 10})[0] == 200


def test_prompts_are_truncated_where_they_are_asked_to_be(server):
    ids = list(range(40, 60))
    for side, kept in [(None, ids[-5:]), ("left", ids[-5:]), ("right", ids[:5])]:
        r = server.post(COMPLETIONS, {"prompt": ids, "truncate_prompt_tokens": 5, "truncation_side": side,
                                      "return_token_ids": True, "max_tokens": 1})[1]
        assert r["choices"][0]["prompt_token_ids"] == kept and r["usage"]["prompt_tokens"] == 5
    r = server.post(COMPLETIONS, {"prompt": [40] * 5000, "truncate_prompt_tokens": -1, "max_tokens": 5})
    assert r[0] == 200 and r[1]["usage"]["prompt_tokens"] == 4095 and r[1]["usage"]["completion_tokens"] == 1


def test_biases_are_clamped_and_the_next_request_works(server):
    assert server.chat(logit_bias={"5": 1e308, "6": -1e308})[0] == 200
    assert server.chat(logit_bias={str(i): 1 for i in range(500)})[0] == 200


def test_unknown_paths_and_methods(server):
    for path in ["/nope", "/v1/embeddings", "/v1/messages", "/v1/models/", "//v1/models"]:
        status, _, body = server.request("POST", path, b"{}")
        assert status == 404 and json.loads(body)["detail"] == "Not Found", path
        assert json.loads(body)["error"]["code"] == 404
    status, headers, body = server.request("GET", CHAT)
    assert status == 405 and headers["allow"] == "POST" and json.loads(body)["detail"] == "Method Not Allowed"
    assert server.request("DELETE", "/ping")[1]["allow"] == "GET, POST"


def test_errors_of_a_stream_are_plain_http_errors(server):
    status, headers, body = server.request("POST", CHAT, json.dumps(chat_body(stream=True, temperature=9)),
                                           {"Content-Type": "application/json"})
    assert status == 400 and headers["content-type"] == "application/json" and "error" in json.loads(body)


def test_a_full_server_refuses_with_503_before_the_stream(start):
    with start("--max-num-queued-reqs", "2") as s:
        status, headers, body = s.request("POST", COMPLETIONS, json.dumps({"prompt": "a", "n": 3, "stream": True}),
                                          {"Content-Type": "application/json"})
        assert status == 503 and json.loads(body)["error"]["type"] == "Service Unavailable"
        assert headers["retry-after"] == "1"
        assert s.chat()[0] == 200
        assert s.metrics()['vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"}'] == 1


def test_token_routes(server):
    text = "The fox, 天気 😀 <|user|>"
    code, r = server.post("/tokenize", {"prompt": text, "return_token_strs": True})
    assert code == 200 and r["count"] == len(r["tokens"]) == len(r["token_strs"]) and r["max_model_len"] == 4096
    assert r["token_strs"][-1] == "<|user|>"
    assert server.post("/detokenize", {"tokens": r["tokens"]})[1] == {"prompt": text}
    chat = server.post("/tokenize", {"messages": [{"role": "user", "content": "hi <|user|>"}]})[1]
    assert chat["token_strs"] is None and chat["tokens"].count(r["tokens"][-1]) == 1, "text forges no control token"
    longer = server.post("/tokenize", {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL]})[1]
    assert longer["count"] > server.post("/tokenize", {"messages": [{"role": "user", "content": "hi"}]})[1]["count"]
    assert server.post("/tokenize", {"prompt": "x " * 50_000})[1]["count"] > 4096
    refused(server.post("/tokenize", {"prompt": ["a"]}), 400, "Bad Request", "body.prompt")
    refused(server.post("/tokenize", {}), 400, "Bad Request", "body.prompt")
    refused(server.post("/detokenize", {"tokens": [-1]}), 400, "BadRequestError", "tokens")
    refused(server.post("/detokenize", {"tokens": "x"}), 400, "Bad Request", "body.tokens")


def test_templates_of_requests_need_a_flag(start):
    with start("--trust-request-chat-template") as s:
        r = s.chat(chat_template="Q{{ messages[0].content }}A", return_prompt_text=True)[1]
        assert r["prompt_text"] == "QhelloA"
        refused(s.chat(chat_template="{{"), 400, "BadRequestError", "chat_template")


def test_a_failure_after_the_first_byte_is_an_event(server):
    """parse_events checks that [DONE] comes last, also here: a plain stream has no error event."""
    events = server.events(CHAT, chat_body())
    assert not any("error" in e for e in events)
    assert parse_events(b'data: {"error":{}}\n\ndata: [DONE]\n\n') == [{"error": {}}]
