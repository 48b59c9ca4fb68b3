"""The training tools: text and template agree, the probe stays unseen, the GGUF holds the checkpoint, the HTTP score counts."""
import http.server
import io
import json
import os
import re
import sys
import threading

import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
for part in ("train", "eval"):
    sys.path.insert(0, os.path.join(ROOT, "tools", part))

import data  # noqa: E402
import dialect  # noqa: E402
import eval_http  # noqa: E402
import probe  # noqa: E402
import toolwords  # noqa: E402
import words  # noqa: E402


def test_render_makes_the_text_of_the_chat_template():
    jinja2 = pytest.importorskip("jinja2")
    env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda x, ensure_ascii=False: json.dumps(x, ensure_ascii=ensure_ascii)
    with open(os.path.join(ROOT, "tools", "train", "chat_template.jinja"), encoding="utf-8") as f:
        template = env.from_string(f.read())
    m = data.Maker(11)
    for _ in range(60):
        tools = m.toolbox()
        turns = [t for kind in ("one", "many", "chat") for t in m.tool_turn(tools, kind)]
        schemas = [t[0] for t in tools]
        plain = [{"role": t["role"], "content": t["content"], "reasoning": t.get("reasoning") or "", "tool_calls": t.get("calls") or None}
                 for t in turns]
        want = template.render(messages=plain, tools=schemas, add_generation_prompt=False)
        assert "".join(dialect.render(turns, schemas))[:-len("<|endoftext|>")] == want


def test_training_and_evaluation_draw_different_tools_and_names():
    train, held = data.Maker(1), data.Maker(1, held=True)
    pairs = [{m.pair(toolwords.VERB, toolwords.NOUN) for _ in range(3000)} for m in (train, held)]
    assert not pairs[0] & pairs[1]


def test_words_of_the_hand_written_tools_are_in_no_list():
    """The words that tell the probe's tools and values apart; everyday words like get or name are nobody's."""
    own = set("""exchange quote eur usd resize image sunset restaurant cuisine vegan heidelberg ping hostname attempts database sql birds plants
    zone litres greenhouse terrace roof reykjavik rocket payload orbit swahili shutdown dentist bartholomew quigley customer
    participant ottersbach subnet aggressive polish silverware drawer microfibre wilhelmshaven kick nickname spamming token burnable
    yirgacheffe thessaloniki calibrate telescope azimuth elevation ambulance crossroad pod namespace cents""".split())

    def leaves(x):
        if isinstance(x, str):
            yield x
        elif isinstance(x, dict):
            yield from (s for pair in x.items() for y in pair for s in leaves(y))
        elif isinstance(x, (list, tuple)):
            yield from (s for y in x for s in leaves(y))
    listed = {w for mod in (words, toolwords) for k, v in vars(mod).items() if k.isupper()
              for s in leaves(v) for w in re.findall(r"[a-z]+", s.lower())}
    assert not own & listed


def test_a_tiny_checkpoint_becomes_a_gguf_with_equal_values(tmp_path):
    torch, gguf = pytest.importorskip("torch"), pytest.importorskip("gguf")
    pytest.importorskip("tokenizers")
    import export_gguf
    import model as network
    tokenizer = os.path.join(ROOT, "tools", "train", "tokenizer.json")
    torch.manual_seed(3)
    net = network.Flint(network.make_config(4096, num_hidden_layers=3, hidden_size=64, intermediate_size=128, num_experts=4,
                                            num_experts_per_tok=2, shared_expert_intermediate_size=64), 4080)
    for p in net.quantised():
        p.data = network.fake_nvfp4(p.data)
    network.save(net, str(tmp_path / "ckpt"), tokenizer)
    out = str(tmp_path / "tiny.gguf")
    kinds = export_gguf.export(str(tmp_path / "ckpt"), out)
    assert kinds["blk.2.ffn_gate_exps"].name == "NVFP4" and kinds["token_embd"].name == "BF16"
    fields = gguf.GGUFReader(out).fields
    assert fields["general.architecture"].contents() == "flint"
    assert len(fields["tokenizer.ggml.tokens"].contents()) == 4096
    assert fields["tokenizer.ggml.tokens"].contents()[fields["tokenizer.ggml.eos_token_id"].contents()] == "<|endoftext|>"
    assert fields["flint.attention.sliding_window_pattern"].contents() == [False, False, False]


class FakeServer(http.server.BaseHTTPRequestHandler):
    """Answers the hand-written requests rightly, declines everything else, counts a token per four characters."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["messages"][-1]["content"]
        if self.path == "/tokenize":
            reply = {"count": len(asked) // 4}
        else:
            assert body["temperature"] == 0
            message = {"role": "assistant", "content": "I have no tool for that."}
            for name, _, _, said, args in probe.HAND:
                if said == asked:
                    message = {"role": "assistant", "content": None, "tool_calls": [
                        {"id": "x", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}]}
            reply = {"choices": [{"message": message}]}
        raw = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args):
        pass


def test_http_scores_count_right_and_wrong_answers():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    out = io.StringIO()
    try:
        code = eval_http.main(["--base-url", f"http://127.0.0.1:{server.server_port}", "--calls", "6", "--questions", "4",
                               "--per-depth", "1", "--seed", "5"], out)
    finally:
        server.shutdown()
    rows = {line[:32].strip(): line[32:].split() for line in out.getvalue().splitlines()}
    assert code == 1
    assert rows["hand-written tools"][:2] == ["12", "100.0"]
    assert rows["second probe"][:2] == ["12", "0.0"]
    assert rows["tool call"][:2] == ["6", "0.0"] and rows["tool call"][-1] == "BELOW"
    assert rows["no call where no tool fits"][:2] == ["3", "100.0"]
    assert rows["fact in 4096 tokens"][:2] == ["10", "0.0"]


def test_judging_is_by_value_and_type():
    def message(arguments):
        return {"tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}
    right = eval_http.wants_calls([{"name": "f", "arguments": {"a": 20, "b": True}}])
    assert right(message('{"b": true, "a": 20.0}'))
    assert not right(message('{"a": 20, "b": 1}'))
    assert not right(message('{"a": "20", "b": true}'))
    assert not right(message('{"a": 20, "b": true'))
    assert not right({"content": "none"})
