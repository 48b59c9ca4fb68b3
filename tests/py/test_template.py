"""Whole conversations through chat templates: the same bytes as jinja2 in transformers' environment.

The templates of tests/golden/templates are ours, in the manner of widely used families.
"""
import glob
import os

import pytest

from jinja_reference import ROOT, expected, render

TEMPLATES = sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "templates", "*.jinja")))
WIDE = {c: c + 0xFEE0 for c in range(0x21, 0x7F)}  # ASCII to full-width forms, which no template writes

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather at a\nplace",
                                         "parameters": {"type": "object", "properties": {
                                             "city": {"type": "string", "description": "Where «é»"},
                                             "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
                                             "days": {"type": "array", "items": {"type": "integer"}},
                                             "opt": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                                             "deep": {"type": "object", "properties": {"x": {"type": ["string", "null"]}}}},
                                             "required": ["city"]}}}
PLAIN = {"type": "function", "function": {"name": "now", "description": "d", "parameters": {"type": "object"}}}


def call(name, arguments, call_id="abc123XYZ"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


SYSTEM = {"role": "system", "content": " You are terse. "}
RESULT = {"role": "tool", "tool_call_id": "abc123XYZ", "content": '{"t": 7}'}
CHAIN = [user("U1"), assistant("", reasoning_content=" r1\n", tool_calls=[call("get_weather", {"city": "Zürich", "n": 3})]),
         RESULT, assistant("done", reasoning_content="r2")]

CONVERSATIONS = {
    "one": [user("Hello <|user|> {{ x }} \n")],
    "system": [SYSTEM, user("Hi")],
    "turns": [SYSTEM, user("a"), assistant("  b \n"), user("c"), assistant("d"), user("e 😀")],
    "think": [user("a"), assistant("<think>\nwhy\n</think>\n\nbecause"), user("b"), assistant("pre</think>post")],
    "reasoning": [user("a"), assistant("b", reasoning_content="long\nthought"), user("c"), assistant("d", reasoning="x")],
    "chain": CHAIN,
    "chain, then user": CHAIN + [user("U2")],
    "two calls": [user("U1"), assistant(None, tool_calls=[call("f", {"p": "a b", "n": 3}), call("g", {})]),
                  RESULT, {"role": "tool", "tool_call_id": "abc123XYZ", "content": "R2"}],
    "typed arguments": [user("x"), assistant("sure", tool_calls=[call("f", {
        "s": "é\"q\"", "i": -1, "f": 1e7, "b": True, "z": None, "l": [1, "a", {"k": 2.5}], "o": {"y": [], "x": {}}})])],
    "parts": [user([{"type": "text", "text": "look: "}, {"type": "image"}, {"type": "text", "text": " and say"}])],
    "system parts": [{"role": "system", "content": [{"type": "text", "text": "S"}]}, user([{"type": "text", "text": "T"}])],
    "bad order": [user("a"), user("b")],
    "unknown role": [user("a"), {"role": "oracle", "content": "?"}],
    "null content": [user("a"), assistant(None)],
    "empty": [],
    "tool result parts": [user("a"), assistant("", tool_calls=[call("f", {"a": 1})]),
                          {"role": "tool", "tool_call_id": "abc123XYZ", "content": [{"type": "text", "text": "P1"}]}],
    "late system": [user("a"), SYSTEM, user("b")],
    "lines": [user("\r\n a\r\n\tb\x0b\u2028c\u3000"), assistant("\n\n x\n"), user("\\n 'q' \"r\" <b>&amp;</b>")],
}
ARGUMENTS = {
    "plain": {"add_generation_prompt": True},
    "tools": {"add_generation_prompt": True, "tools": [TOOL, PLAIN], "enable_thinking": False},
    "no prompt": {"add_generation_prompt": False, "clear_thinking": False, "tools_in_user_message": False, "tools": [PLAIN]},
}


def variables(conversation, arguments):
    return {"messages": CONVERSATIONS[conversation], "bos_token": "<s>", "eos_token": "</s>", **ARGUMENTS[arguments]}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("conversation", CONVERSATIONS)
@pytest.mark.parametrize("path", TEMPLATES, ids=[os.path.basename(p)[:-6] for p in TEMPLATES])
def test_a_conversation_gives_what_jinja2_gives(path, conversation, arguments):
    source = read(path)
    given = variables(conversation, arguments)
    want = expected(source, given)
    text, mask, error = render(source, given)
    if isinstance(want, Exception):
        assert text is None, f"jinja2 refuses: {want!r}"
    else:
        assert text == want, error


def widened(value, key=None):
    """Every string of the client's in full-width letters, except those that templates compare."""
    if isinstance(value, dict):
        return {k: widened(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [widened(v, key) for v in value]
    return value.translate(WIDE) if isinstance(value, str) and key not in ("role", "type", "tool_call_id", "id") else value


@pytest.mark.parametrize("path", TEMPLATES, ids=[os.path.basename(p)[:-6] for p in TEMPLATES])
@pytest.mark.parametrize("messages", [[SYSTEM] + CHAIN + [user("U2")], CONVERSATIONS["turns"], CONVERSATIONS["parts"]])
def test_nothing_a_client_wrote_is_trusted(path, messages):
    given = {"messages": widened(messages), "tools": widened([TOOL]), "add_generation_prompt": True, "bos_token": "",
             "eos_token": ""}
    text, mask, error = render(read(path), given)
    if text is None:
        assert isinstance(expected(read(path), given), Exception), error
        return
    at = wide = 0
    for c in text:
        n = len(c.encode())
        if 0xFF01 <= ord(c) <= 0xFF5E:
            wide += 1
            assert not any(mask[at:at + n]), text
        at += n
    assert at == len(mask) and wide
    tags = [t for t in ("[gMASK]", "<|im_start|>", "<|eot_id|>", "[INST]", "<|Assistant|>", "<start_of_turn>", "<|start|>") if t in text]
    assert tags
    for tag in tags:
        at = text.encode().index(tag.encode())
        assert all(mask[at:at + len(tag)])


GLM = read(os.path.join(ROOT, "tests", "golden", "templates", "glm_style.jinja"))
CALLS = ("<tool_call>f<arg_key>p</arg_key><arg_value>a b</arg_value><arg_key>n</arg_key><arg_value>3</arg_value></tool_call>"
         "<tool_call>f</tool_call>")
RESULTS = "<|observation|><tool_response>R1</tool_response><tool_response>R2</tool_response>"
S, U1, U2 = {"role": "system", "content": "S"}, user("U1"), user("U2")
STEP = [U1, assistant(None, reasoning_content=" r1\n", tool_calls=[call("f", {"p": "a b", "n": 3}), call("f", {})]),
        {"role": "tool", "content": "R1"}, {"role": "tool", "content": "R2"}]
DONE = STEP + [assistant("done", reasoning_content="r2"), U2]
F = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}}
BLOCK = GLM[GLM.index("<|system|>\n"):GLM.index("<tools>\n")] + "<tools>\n"
AFTER = GLM[GLM.index("</tools>"):GLM.index("\n{%- endif -%}\n{%- set ns")]

# docs: the format of GLM-4.7 conversations, written out by hand.
GOLDEN = [
    ([S, U1], {}, "[gMASK]<sop><|system|>S<|user|>U1<|assistant|><think>"),
    ([S, U1], {"enable_thinking": False}, "[gMASK]<sop><|system|>S<|user|>U1<|assistant|></think>"),
    ([S, U1], {"tools": [F]}, "[gMASK]<sop>" + BLOCK + '{"type": "function", "function": {"name": "f", "description": "d", '
     '"parameters": {"type": "object", "properties": {}}}}\n' + AFTER + "<|system|>S<|user|>U1<|assistant|><think>"),
    (STEP, {}, "[gMASK]<sop><|user|>U1<|assistant|><think>r1</think>" + CALLS + RESULTS + "<|assistant|><think>"),
    (DONE, {}, "[gMASK]<sop><|user|>U1<|assistant|></think>" + CALLS + RESULTS
     + "<|assistant|></think>done<|user|>U2<|assistant|><think>"),
    (DONE, {"clear_thinking": False}, "[gMASK]<sop><|user|>U1<|assistant|><think>r1</think>" + CALLS + RESULTS
     + "<|assistant|><think>r2</think>done<|user|>U2<|assistant|><think>"),
    ([U1, assistant("x<think>\nwhy\n</think>\n\nyes")], {},
     "[gMASK]<sop><|user|>U1<|assistant|><think>why</think>yes<|assistant|><think>"),
    ([U1, assistant("<think>a</think>b</think>\nc"), U2], {},
     "[gMASK]<sop><|user|>U1<|assistant|></think>c<|user|>U2<|assistant|><think>"),
]


@pytest.mark.parametrize("messages,arguments,want", GOLDEN)
def test_the_glm_style_template_gives_the_golden_text(messages, arguments, want):
    text, _, error = render(GLM, {"messages": messages, "add_generation_prompt": True, **arguments})
    assert text == want, error
