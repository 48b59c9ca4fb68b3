"""Streams: their joined pieces are the whole answer, whatever the model says and however the text is cut into tokens."""
import json
import random

import pytest

from server import MODEL, merge_chat, parse_events, say, whole_chat, chat_body

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def tool(name, **properties):
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


TOOLS = [tool("get_time"), tool("get"), tool("a", x={"type": "integer"}), tool("b", y={"type": "string"}),
         tool("t", n={"type": "integer"}, list={"type": "array"}, on={"type": "boolean"},
              cur={"anyOf": [{"type": "string"}, {"type": "null"}]}, opt={"type": "object"}, q={"type": "string"})]


def argument(key, value):
    return f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"


TYPED = "<tool_call>t" + "".join(argument(k, v) for k, v in [
    ("n", "10"), ("list", "[]"), ("on", "true"), ("cur", "null"), ("opt", '{"a":1}'), ("q", "hi")]) + "</tool_call>"
CASES = {
    "plain": "The quick brown fox jumps over the lazy dog.",
    "empty": "",
    "blanks": "  \n\n ",
    "unicode": "Zürich 天気 😀👍🏽 ﷽ \u0000 tail",
    "json": '{"a": "\\"quoted\\"", "b": [1, 2]}\n\ttab',
    "reasoning": "<think>First look.  \n</think>Then speak.",
    "reasoning only": "<think>never ends",
    "stray end": "<think>a</think>b</think>c",
    "call": "<tool_call>get_time</tool_call>",
    "newline after the name": "<tool_call>get_time\n</tool_call>",
    "typed": TYPED,
    "two calls": "ok<tool_call>a" + argument("x", "1") + "</tool_call><tool_call>b" + argument("y", "z") + "</tool_call>",
    "text between calls": "one<tool_call>get</tool_call>two<tool_call>get_time</tool_call>three",
    "call while thinking": "<think>Let me see.<tool_call>get_time</tool_call>",
    "unknown tool": "before<tool_call>nothing</tool_call>after",
    "long value": "<tool_call>b" + argument("y", "line \\ \" < </arg \n\t" * 200) + "</tool_call>",
    "other special tokens": "a[gMASK]b<sop>c",
    "literal markers": "< think > </ tool_call > <tool",
}


def both(server, **fields):
    """(whole, streamed) answers as plain values; ids of calls are compared by their shape."""
    status, answer = server.post(CHAT, say(**fields))
    assert status == 200, answer
    events = server.events(CHAT, say(**fields))
    whole, streamed = whole_chat(answer), merge_chat(events)
    for side in (whole, streamed):
        for choice in side.values():
            for call in choice["calls"]:
                assert call.pop("id").startswith("chatcmpl-tool-")
    return whole, streamed, events


def same(whole, streamed):
    assert whole.keys() == streamed.keys()
    for i in whole:
        a, b = dict(whole[i]), dict(streamed[i])
        if a["calls"]:  # the whole answer strips content beside calls
            b["content"] = b["content"].strip()
        assert a == b


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fields", [{}, {"logprobs": True, "top_logprobs": 1}, {"max_tokens": 7}, {"stop": ["quick", "ok"]},
                                    {"parallel_tool_calls": False}, {"tool_choice": "none"}, {"stream_interval": 5}],
                         ids=lambda f: "-".join(f) or "default")
def test_a_stream_joins_to_the_whole_answer(server, name, fields):
    whole, streamed, _ = both(server, text=CASES[name], tools=TOOLS, **fields)
    same(whole, streamed)


@pytest.mark.parametrize("name", CASES)
def test_a_stream_without_parsers_joins_too(plain, name):
    whole, streamed, _ = both(plain, text=CASES[name])
    assert whole == streamed
    shown = CASES[name].replace("[gMASK]", "").replace("<sop>", "")
    assert whole[0]["content"] == shown
    raw = plain.post(CHAT, say(CASES[name], skip_special_tokens=False))[1]
    assert raw["choices"][0]["message"]["content"] == CASES[name]


def test_typed_arguments(server):
    whole, streamed, _ = both(server, text=TYPED, tools=TOOLS)
    assert json.loads(whole[0]["calls"][0]["arguments"]) == {
        "n": 10, "list": [], "on": True, "cur": None, "opt": {"a": 1}, "q": "hi"}


def test_two_calls_in_one_piece(server):
    whole, _, _ = both(server, text=CASES["two calls"], tools=TOOLS)
    assert whole[0]["content"] == "ok"
    assert [(c["name"], json.loads(c["arguments"])) for c in whole[0]["calls"]] == [("a", {"x": 1}), ("b", {"y": "z"})]


def test_no_name_is_sent_before_it_is_complete(server):
    events = server.events(CHAT, say("<tool_call>get_time</tool_call>", tools=TOOLS))
    names = [p["function"]["name"] for e in events for c in e["choices"]
             for p in c["delta"].get("tool_calls", []) if "name" in p["function"]]
    assert names == ["get_time"]


@pytest.mark.parametrize("parts", [["F09F98", "80"], ["C4", "8F"], ["E4", "BDA0"], ["F0", "9F", "98", "80"]])
@pytest.mark.parametrize("place", ["content", "stop", "argument"])
def test_a_character_split_over_tokens(server, parts, place):
    """F1: forced ids whose bytes are parts of one character. Byte tokens stand for themselves in this vocabulary."""
    vocabulary = json.loads((MODEL / "tokenizer.json").read_text())["model"]["vocab"]
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    spelling = {b: chr(b) for b in printable}
    spelling.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in printable)})
    data = bytes.fromhex("".join(parts))
    character = data.decode()
    ids = [vocabulary[spelling[b]] for b in data]

    def encode(text):
        return server.post("/tokenize", {"prompt": text})[1]["tokens"]
    before, after = ("x ", " y") if place != "argument" else ("<tool_call>b<arg_key>y</arg_key><arg_value>",
                                                              "</arg_value></tool_call>")
    script = encode(before) + ids + encode(after)
    body = chat_body(vllm_xargs={"replay_ids": script}, tools=TOOLS, **({"stop": ["never"]} if place == "stop" else {}))
    events = server.events(CHAT, body)
    text = json.dumps(events, ensure_ascii=False)
    assert "\ufffd" not in text
    m, whole = merge_chat(events)[0], whole_chat(server.post(CHAT, body)[1])[0]
    if place == "argument":
        assert json.loads(m["calls"][0]["arguments"]) == {"y": character} == json.loads(whole["calls"][0]["arguments"])
    else:
        assert m["content"] == f"x {character} y" == whole["content"]


def test_held_bytes_are_dropped_at_the_end(server):
    vocabulary = json.loads((MODEL / "tokenizer.json").read_text())["model"]["vocab"]
    ids = [vocabulary["H"], vocabulary["i"], vocabulary["ð"]]  # the first byte of an emoji
    body = chat_body(vllm_xargs={"replay_ids": ids})
    assert server.post(CHAT, body)[1]["choices"][0]["message"]["content"] == "Hi"
    assert merge_chat(server.events(CHAT, body))[0]["content"] == "Hi"


def test_chunks_have_the_exact_keys(server):
    events = server.events(CHAT, say("<think>a</think>b", stream_options={"include_usage": True}))
    first, last, usage = events[0], events[-2], events[-1]
    assert list(first) == ["id", "object", "created", "model", "choices", "prompt_token_ids", "prompt_text"]
    assert first["choices"] == [{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None,
                                 "finish_reason": None}]
    for e in events[1:-2]:
        assert list(e) == ["id", "object", "created", "model", "choices", "kv_transfer_params"]
        assert list(e["choices"][0]) == ["index", "delta", "logprobs", "finish_reason", "token_ids"]
    assert list(last["choices"][0]) == ["index", "delta", "logprobs", "finish_reason", "stop_reason", "token_ids",
                                        "weight_versions"]
    assert list(usage) == ["id", "object", "created", "model", "choices", "usage", "system_fingerprint"]
    assert usage["choices"] == [] and None not in usage["usage"].values()
    without = server.events(CHAT, say("b"))
    assert "usage" not in json.dumps(without) and without[-1]["system_fingerprint"]


def test_completion_chunks_have_the_exact_keys(server):
    events = server.events(COMPLETIONS, {"prompt": "The fox", "stream_options": {"include_usage": True}})
    for e in events[:-1]:
        assert list(e)[:5] == ["id", "object", "created", "model", "choices"] and e["object"] == "text_completion"
        assert list(e["choices"][0]) == ["index", "text", "logprobs", "finish_reason", "stop_reason",
                                         "prompt_token_ids", "token_ids", "weight_versions"]
    assert events[-1]["choices"] == [] and events[-1]["usage"]["prompt_tokens"] == 2


def test_continuous_usage_grows_to_the_sum(server):
    for path, body in [(CHAT, say("The quick brown fox jumps", n=2)), (COMPLETIONS, {"prompt": "The fox jumps", "n": 2})]:
        events = server.events(path, {**body, "stream_options": {"include_usage": True, "continuous_usage_stats": True}})
        last = {}
        for e in events[:-1]:
            i, n = e["choices"][0]["index"], e["usage"]["completion_tokens"]
            assert n >= last.get(i, 0) and "prompt_tokens_details" not in e["usage"]
            last[i] = n
        assert events[-1]["usage"]["completion_tokens"] == sum(last.values())
        if path == CHAT:
            assert events[0]["usage"]["completion_tokens"] == 0


def test_token_ids_and_prompt_are_returned_when_asked_for(server):
    body = say("The fox", return_token_ids=True, return_prompt_text=True)
    whole, events = server.post(CHAT, body)[1], server.events(CHAT, body)
    streamed = [i for e in events for c in e["choices"] for i in c.get("token_ids") or []]
    assert streamed == whole["choices"][0]["token_ids"] and len(streamed) == whole["usage"]["completion_tokens"]
    assert events[0]["prompt_token_ids"] == whole["prompt_token_ids"] and len(whole["prompt_token_ids"]) > 3
    assert events[0]["prompt_text"] == whole["prompt_text"] == "[gMASK]<sop><|user|>hello<|assistant|>"
    c = server.post(COMPLETIONS, {"prompt": "The fox", "return_token_ids": True, "echo": True})[1]["choices"][0]
    assert c["prompt_token_ids"] == c["token_ids"][:-1] and c["text"] == "The fox", "the echo is left out"


def test_reasoning_is_left_out_with_its_logprobs_and_ids(server):
    text = "<think>aaa bbb</think>ccc"
    for body in [say(text, logprobs=True, return_token_ids=True, include_reasoning=False)]:
        whole = server.post(CHAT, body)[1]
        tokens = "".join(t["token"] for t in whole["choices"][0]["logprobs"]["content"])
        assert "aaa" not in tokens and "ccc" in tokens
        streamed = merge_chat(server.events(CHAT, body))[0]
        assert streamed["reasoning"] == "" and streamed["content"] == "ccc"
        assert "".join(t["token"] for t in streamed["tokens"]) == tokens


def test_prompt_logprobs(server):
    r = server.post(CHAT, chat_body(prompt_logprobs=0))[1]
    assert len(r["prompt_logprobs"]) == r["usage"]["prompt_tokens"] and r["prompt_logprobs"][0] is None
    entry = list(r["prompt_logprobs"][1].values())[0]
    assert entry == {"logprob": 0.0, "rank": 1, "decoded_token": "<sop>"}
    c = server.post(COMPLETIONS, {"prompt": "The fox", "prompt_logprobs": 1})[1]["choices"][0]
    assert len(c["prompt_logprobs"]) == 2


def test_an_echo_of_the_answering_role(server):
    body = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "The fox"}],
            "continue_final_message": True, "echo": True, "vllm_xargs": {"replay": " jumps"}}
    assert server.post(CHAT, body)[1]["choices"][0]["message"]["content"] == "The fox jumps"
    assert merge_chat(server.events(CHAT, body))[0]["content"] == "The fox jumps"


def test_random_token_streams_join_to_the_whole(server):
    """Any ids at all, markers among them: 60 scripts from a fixed seed."""
    rng = random.Random(7)
    markers = server.post("/tokenize", {"prompt": "<think></think><tool_call></tool_call><arg_key></arg_key><arg_value></arg_value>"})[1]["tokens"]
    ends = set(json.loads((MODEL / "generation_config.json").read_text())["eos_token_id"])
    for _ in range(60):
        ids = [rng.choice(markers) if rng.random() < 0.15 else rng.randrange(580) for _ in range(rng.randrange(1, 120))]
        # It begins with <think>: an end of reasoning without a beginning is seen by the whole answer only.
        body = chat_body(vllm_xargs={"replay_ids": markers[:1] + [i for i in ids if i not in ends]}, tools=TOOLS)
        whole, streamed = whole_chat(server.post(CHAT, body)[1])[0], merge_chat(server.events(CHAT, body))[0]
        for choice in whole, streamed:
            choice["calls"] = [(c["name"], c["arguments"]) for c in choice["calls"]]
            if choice["calls"]:
                choice["content"] = choice["content"].strip()
        assert whole == streamed, ids


def test_keep_alive_comments_fill_the_silence(start):
    """A prompt that is read slowly: the stream is silent meanwhile."""
    with start("--sse-keep-alive-interval", "0.002", "--load-format", "dummy", "--max-num-batched-tokens", "256",
               "--max-num-seqs", "4", replay=False) as s:
        status, _, answer = s.request("POST", COMPLETIONS, json.dumps({"prompt": [40] * 1000, "stream": True, "max_tokens": 1}),
                                      {"Content-Type": "application/json"})
        assert status == 200 and b"\n\n: keep-alive\n\n" in b"\n\n" + answer
        assert len(parse_events(answer)) == 1
