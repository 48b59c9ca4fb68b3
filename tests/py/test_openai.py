"""The openai client against a replaying server: what the model says is scripted, so every expected value stands in the test."""
import json

import pytest

openai = pytest.importorskip("openai")

from server import NAME, Server, chat_body  # noqa: E402

USER = [{"role": "user", "content": "hello"}]
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                   "required": ["city"]}}}
TIME = {"type": "function", "function": {"name": "get_time"}}
CALL = ("<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value>"
        "<arg_key>days</arg_key><arg_value>3</arg_value></tool_call>")


def chat(client, replay=None, **kw):
    extra = kw.pop("extra_body", {})
    if replay is not None:
        extra = {**extra, "vllm_xargs": {"replay": replay}}
    return client.chat.completions.create(model=NAME, messages=kw.pop("messages", USER), extra_body=extra, **kw)


def test_models_are_listed_and_retrieved(client):
    models = client.models.list()
    assert [m.id for m in models.data] == [NAME]
    card = client.models.retrieve(NAME)
    assert card.owned_by == "vllm" and card.object == "model" and card.max_model_len == 4096
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other/model")


def test_a_chat_answer_has_text_usage_and_reason(client):
    r = chat(client, "The quick brown fox")
    assert r.id.startswith("chatcmpl-") and r.object == "chat.completion" and r.model == NAME
    assert r.choices[0].message.content == "The quick brown fox"
    assert r.choices[0].message.role == "assistant"
    assert r.choices[0].finish_reason == "stop"
    assert r.usage.total_tokens == r.usage.prompt_tokens + r.usage.completion_tokens


def test_without_a_script_the_prompt_is_said_back(client):
    assert chat(client, messages=[{"role": "user", "content": "one"}, {"role": "assistant", "content": "x"},
                                  {"role": "user", "content": [{"type": "text", "text": "two"}]}]
                ).choices[0].message.content == "two"
    assert client.completions.create(model=NAME, prompt="The lazy dog", max_tokens=50).choices[0].text == "The lazy dog"


def test_a_stream_begins_with_the_role_and_joins_to_the_text(client):
    chunks = list(chat(client, "The quick brown fox jumps", stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant" and chunks[0].choices[0].delta.content == ""
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "The quick brown fox jumps"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 1
    assert len({c.id for c in chunks}) == 1 and {c.object for c in chunks} == {"chat.completion.chunk"}


def test_reasoning_is_apart_from_content(client):
    r = chat(client, "<think>First, look.</think>Found.")
    assert r.choices[0].message.reasoning == "First, look." and r.choices[0].message.content == "Found."
    assert r.usage.completion_tokens_details.reasoning_tokens > 0
    hidden = chat(client, "<think>First, look.</think>Found.", extra_body={"include_reasoning": False})
    assert hidden.choices[0].message.reasoning is None and hidden.choices[0].message.content == "Found."
    assert hidden.usage.completion_tokens_details == r.usage.completion_tokens_details


def test_thinking_that_the_prompt_opened_is_reasoning(client):
    r = chat(client, "Let me see.</think>Yes", extra_body={"chat_template_kwargs": {"open_thinking": True}})
    assert r.choices[0].message.reasoning == "Let me see." and r.choices[0].message.content == "Yes"
    never_closed = chat(client, "Let me see", extra_body={"chat_template_kwargs": {"open_thinking": True}})
    assert never_closed.choices[0].message.reasoning == "Let me see"
    assert never_closed.choices[0].message.content is None


def test_a_call_is_returned_with_typed_arguments(client):
    r = chat(client, "Checking." + CALL, tools=[WEATHER, TIME])
    call = r.choices[0].message.tool_calls[0]
    assert r.choices[0].message.content == "Checking." and r.choices[0].finish_reason == "tool_calls"
    assert call.type == "function" and call.id.startswith("chatcmpl-tool-")
    assert call.function.name == "get_weather"
    assert call.function.arguments == '{"city": "Oslo", "days": 3}'


def test_a_call_inside_open_thinking_is_found(client):
    r = chat(client, "Let me see.<tool_call>get_time</tool_call>", tools=[TIME],
             extra_body={"chat_template_kwargs": {"open_thinking": True}})
    m = r.choices[0].message
    assert m.reasoning == "Let me see." and r.choices[0].finish_reason == "tool_calls"
    assert [(c.function.name, c.function.arguments) for c in m.tool_calls] == [("get_time", "{}")]


def test_a_streamed_call_has_one_start_and_fragments_that_join(client):
    chunks = list(chat(client, CALL + "<tool_call>get_time</tool_call>", tools=[WEATHER, TIME], stream=True))
    parts = [p for c in chunks for p in c.choices[0].delta.tool_calls or []]
    starts = [p for p in parts if p.id]
    assert [(p.index, p.function.name) for p in starts] == [(0, "get_weather"), (1, "get_time")]
    assert len({p.id for p in starts}) == 2
    arguments = {}
    for p in parts:
        arguments[p.index] = arguments.get(p.index, "") + (p.function.arguments or "")
    assert {k: json.loads(v) for k, v in arguments.items()} == {0: {"city": "Oslo", "days": 3}, 1: {}}
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert not any(c.choices[0].delta.content for c in chunks)


def test_tool_choice_decides_what_a_call_becomes(client):
    both = CALL + "<tool_call>get_time</tool_call>"
    none = chat(client, "Hm." + CALL, tools=[WEATHER], tool_choice="none").choices[0]
    assert none.message.tool_calls is None and none.message.content == "Hm." and none.finish_reason == "stop"
    required = chat(client, CALL, tools=[WEATHER], tool_choice="required").choices[0]
    assert required.finish_reason == "tool_calls" and required.message.content == ""
    missed = chat(client, "No.", tools=[WEATHER], tool_choice="required").choices[0]
    assert missed.finish_reason == "stop" and missed.message.content == "No."
    named = chat(client, CALL, tools=[WEATHER],
                 tool_choice={"type": "function", "function": {"name": "get_weather"}}).choices[0]
    assert named.finish_reason == "stop" and len(named.message.tool_calls) == 1
    single = chat(client, both, tools=[WEATHER, TIME], parallel_tool_calls=False).choices[0]
    assert [c.function.name for c in single.message.tool_calls] == ["get_weather"]
    cut = chat(client, CALL, tools=[WEATHER], max_tokens=8).choices[0]
    assert cut.finish_reason == "length"


def test_tool_results_go_back_through_the_template(client):
    r = chat(client, "Three days of rain.", tools=[WEATHER], messages=USER + [
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}]},
        {"role": "tool", "tool_call_id": "a", "content": "rain"}])
    assert r.choices[0].message.content == "Three days of rain."


@pytest.mark.parametrize("stop,text,reason", [
    (["own fox"], "The quick br", "own fox"), (["fox", "quick"], "The ", "quick"), ("brown fox", "The quick ", "brown fox")])
def test_a_stop_string_cuts_the_text_and_is_named(client, stop, text, reason):
    r = chat(client, "The quick brown fox", stop=stop)
    assert r.choices[0].message.content == text
    assert r.choices[0].finish_reason == "stop" and r.choices[0].stop_reason == reason
    streamed = list(chat(client, "The quick brown fox", stop=stop, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in streamed) == text
    assert streamed[-1].choices[0].stop_reason == reason


def test_a_held_beginning_of_a_stop_string_comes_out_at_the_end(client):
    r = chat(client, "The quick br own fo", stop=["own fox"])
    assert r.choices[0].message.content == "The quick br own fo" and r.choices[0].stop_reason is None
    kept = chat(client, "The quick brown fox", stop=["quick"], extra_body={"include_stop_str_in_output": True})
    assert kept.choices[0].message.content == "The quick"


def test_stop_token_ids_end_the_answer(client, server):
    ids = server.post("/tokenize", {"prompt": " brown"})[1]["tokens"]
    r = chat(client, "The quick brown fox", extra_body={"stop_token_ids": ids[:1]})
    assert r.choices[0].message.content == "The quick" and r.choices[0].stop_reason == ids[0]


def test_every_end_token_ends_the_answer_and_is_not_shown(server):
    for marker in ["<|endoftext|>", "<|user|>", "<|observation|>"]:
        status, r = server.chat(vllm_xargs={"replay": "Yes." + marker + "and fifty more words"})
        assert status == 200 and r["choices"][0]["message"]["content"] == "Yes."
        assert r["choices"][0]["finish_reason"] == "stop" and r["choices"][0]["stop_reason"] is None


def test_the_budget_ends_the_answer_with_length(client):
    r = chat(client, "The quick brown fox jumps over", max_tokens=2)
    assert r.choices[0].finish_reason == "length" and r.usage.completion_tokens == 2
    newer = chat(client, "The quick brown fox jumps over", max_completion_tokens=3, max_tokens=9)
    assert newer.usage.completion_tokens == 3


def test_n_gives_n_choices(client):
    r = chat(client, "same", n=3)
    assert [c.index for c in r.choices] == [0, 1, 2] and {c.message.content for c in r.choices} == {"same"}
    texts = {}
    for chunk in chat(client, "same", n=3, stream=True):
        for c in chunk.choices:
            texts[c.index] = texts.get(c.index, "") + (c.delta.content or "")
    assert texts == {0: "same", 1: "same", 2: "same"}


def test_logprobs_have_one_entry_per_token(client):
    r = chat(client, "The fox", logprobs=True, top_logprobs=2)
    content = r.choices[0].logprobs.content
    assert len(content) == r.usage.completion_tokens
    assert "".join(c.token for c in content[:-1]) == "The fox" and content[-1].token == "<|endoftext|>"
    assert all(c.logprob == 0 and bytes(c.bytes).decode() == c.token for c in content)
    assert all(c.top_logprobs[0].token == c.token for c in content)
    ids = chat(client, "The fox", logprobs=True, extra_body={"return_tokens_as_token_ids": True})
    assert all(c.token.startswith("token_id:") for c in ids.choices[0].logprobs.content)


def test_completions_take_text_ids_and_lists(client, server):
    ids = server.post("/tokenize", {"prompt": "The fox"})[1]["tokens"]
    assert client.completions.create(model=NAME, prompt=ids).choices[0].text == "The fox"
    two = client.completions.create(model=NAME, prompt=[ids, ids], max_tokens=9)
    assert [(c.index, c.text) for c in two.choices] == [(0, "The fox"), (1, "The fox")]
    assert two.usage.prompt_tokens == 2 * len(ids)
    mixed = client.completions.create(model=NAME, prompt=["one", "two"], n=2, temperature=1)
    assert [(c.index, c.text) for c in mixed.choices] == [(0, "one"), (1, "one"), (2, "two"), (3, "two")]


def test_completions_default_to_sixteen_tokens(client):
    r = client.completions.create(model=NAME, prompt="one two three four five six seven eight nine ten eleven twelve")
    assert r.usage.completion_tokens == 16 and r.choices[0].finish_reason == "length"


def test_echo_returns_the_prompt_and_its_logprobs(client):
    r = client.completions.create(model=NAME, prompt="The quick brown", max_tokens=0, echo=True, logprobs=1, temperature=0)
    c = r.choices[0]
    assert c.text == "The quick brown" and r.usage.completion_tokens == 1
    assert "".join(c.logprobs.tokens) == "The quick brown"
    assert c.logprobs.text_offset == [0, 3, 9, 14][:len(c.logprobs.tokens)]
    assert c.logprobs.token_logprobs[0] is None and c.logprobs.top_logprobs[0] is None
    assert c.logprobs.token_logprobs[1:] == [0] * (len(c.logprobs.tokens) - 1)
    more = client.completions.create(model=NAME, prompt="The fox", max_tokens=50, echo=True,
                                     extra_body={"vllm_xargs": {"replay": " jumps"}})
    assert more.choices[0].text == "The fox jumps"
    streamed = client.completions.create(model=NAME, prompt="The fox", max_tokens=50, echo=True, stream=True,
                                         extra_body={"vllm_xargs": {"replay": " jumps"}})
    assert "".join(c.choices[0].text for c in streamed) == "The fox jumps"


def test_a_seed_repeats_and_choice_i_is_seed_plus_i(start):
    """Random weights: the text is whatever it is, but the same each time."""
    with start("--load-format", "dummy", "--max-model-len", "256", replay=False) as s:
        c = openai.OpenAI(base_url=s.url + "/v1", api_key="none", max_retries=0)

        def texts(**kw):
            r = c.completions.create(model=NAME, prompt="The fox", max_tokens=8, temperature=1, **kw)
            return [x.text for x in r.choices]
        assert texts(seed=5) == texts(seed=5)
        assert texts(seed=5, n=3) == texts(seed=5) + texts(seed=6) + texts(seed=7)
        r = c.completions.create(model=NAME, prompt="The fox", max_tokens=4, logprobs=3, temperature=0)
        lp = r.choices[0].logprobs
        assert all(v == max(t.values()) for v, t in zip(lp.token_logprobs, lp.top_logprobs))
        assert all(v < 0 for v in lp.token_logprobs)


@pytest.mark.parametrize("call,exception,param", [
    (lambda c: chat(c, temperature=-1), openai.BadRequestError, "temperature"),
    (lambda c: c.chat.completions.create(model="gone", messages=USER), openai.NotFoundError, "model"),
    (lambda c: chat(c, response_format={"type": "json_object"}), openai.APIStatusError, None),
])
def test_errors_become_the_clients_exceptions(client, call, exception, param):
    with pytest.raises(exception) as e:
        call(client)
    assert e.value.param == param and e.value.body["code"] == e.value.status_code


def test_a_wrong_key_is_an_authentication_error(start):
    with start("--api-key", "right", "second") as s:
        for key in ["right", "second"]:
            assert openai.OpenAI(base_url=s.url + "/v1", api_key=key).models.list().data
        with pytest.raises(openai.AuthenticationError):
            openai.OpenAI(base_url=s.url + "/v1", api_key="wrong", max_retries=0).models.list()
        status, headers, body = s.request("POST", "/v1/nothing", b"{}", {"Origin": "http://a"})
        assert status == 401 and body == b'{"error":"Unauthorized"}'
        assert not any(h.startswith("access-control") for h in headers)
        assert s.get("/health")[0] == 200 and s.get("/version")[0] == 200
        assert s.get("/v1/models", Authorization="bEaReR right")[0] == 200
        assert s.get("/v1/models", Authorization="Bearer righ")[0] == 401
        assert s.get("/v1/models", Authorization="right")[0] == 401
        assert s.request("OPTIONS", "/v1/models")[0] == 405


def test_the_answer_is_labelled_with_the_requests_id(server):
    status, headers, body = server.request(
        "POST", "/v1/chat/completions", json.dumps(chat_body()),
        {"Content-Type": "application/json", "X-Request-Id": "abc"})
    assert status == 200 and headers["x-request-id"] == "abc" and json.loads(body)["id"] == "chatcmpl-abc"
    assert server.chat(request_id="from-body")[1]["id"] == "chatcmpl-from-body"
    assert server.post("/v1/completions", {"prompt": "x", "request_id": "b"})[1]["id"] == "cmpl-b"


def test_the_first_served_name_labels_every_answer(start):
    with Server("--served-model-name", "first", "second") as s:
        assert [m["id"] for m in json.loads(s.get("/v1/models")[1])["data"]] == ["first", "second"]
        for name in ["first", "second", "", None]:
            assert s.chat(model=name)[1]["model"] == "first"
        assert s.chat(model="third")[0] == 404
