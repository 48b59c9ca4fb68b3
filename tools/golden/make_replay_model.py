"""Write tests/golden/replay-model: everything of a checkpoint but its weights.

    make_replay_model.py [OUTDIR]

With `--load-format replay` a server needs only a tokenizer, a chat template and a config, so tests of
the HTTP interface run on this folder. The tokenizer is trained here on a few sentences; the template
is made for tests: the model opens thinking itself, unless a request's template argument
`open_thinking` makes the prompt end inside it. Needs the tokenizers package.
"""
import json
import pathlib
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/oracle"))
import flint_tiny  # noqa: E402  (the real tokenizer's stages and control tokens)

SENTENCES = flint_tiny.SENTENCES + [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "get_weather get_time city days unit Oslo Paris Berlin celsius",
    "Please say this again, word by word, until the words run out.",
    "zero one two three four five six seven eight nine ten eleven twelve",
]

TEMPLATE = r"""[gMASK]<sop>
{%- if tools -%}
<|system|>You can call these tools:
{% for tool in tools %}
{{ tool | tojson(ensure_ascii=False) }}
{% endfor %}
{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'tool' -%}<|observation|><tool_response>{{ m.content }}</tool_response>
{%- elif m.role in ['system', 'user', 'assistant'] -%}
<|{{ m.role }}|>
{%- if m.role == 'assistant' and m.reasoning is string -%}<think>{{ m.reasoning }}</think>{%- endif -%}
{{ m.content if m.content is string else '' }}
{%- for call in m.tool_calls or [] -%}
<tool_call>{{ call.function.name }}
{%- for k, v in call.function.arguments.items() -%}
<arg_key>{{ k }}</arg_key><arg_value>{{ v if v is string else v | tojson(ensure_ascii=False) }}</arg_value>
{%- endfor -%}
</tool_call>
{%- endfor -%}
{%- else -%}{{ raise_exception('unknown role ' ~ m.role) }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|>
{%- if open_thinking is defined and open_thinking -%}<think>{%- endif -%}
{%- if enable_thinking is defined and not enable_thinking -%}</think>{%- endif -%}
{%- endif -%}
"""


def make_tokenizer():
    """Byte-level BPE; control tokens last, as in the real vocabulary."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(p), behavior="isolated") for p in flint_tiny.SPLITS]
        + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(SENTENCES, trainers.BpeTrainer(
        vocab_size=580, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False)
                            for t in flint_tiny.CONTROL])
    tok.add_tokens([AddedToken(t, special=False, normalized=False) for t in flint_tiny.TAGS])
    return tok


def main():
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/golden/replay-model"
    out.mkdir(parents=True, exist_ok=True)
    tok = make_tokenizer()
    config = flint_tiny.make_config("nano", tok)
    text = json.dumps(json.loads(tok.to_str()), ensure_ascii=False, separators=(",", ":"))
    (out / "tokenizer.json").write_text(text, encoding="utf-8")
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (out / "generation_config.json").write_text(
        json.dumps({"eos_token_id": config["eos_token_id"]}, indent=1) + "\n")
    (out / "chat_template.jinja").write_text(TEMPLATE)
    size = sum(p.stat().st_size for p in out.iterdir())
    print(f"{out.name}: {tok.get_vocab_size()} tokens, {size} bytes")
    if size >= 60_000:
        sys.exit("larger than 60 kB: train fewer tokens")


if __name__ == "__main__":
    main()
