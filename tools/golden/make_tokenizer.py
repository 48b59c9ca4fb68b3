"""Write tests/golden/tokenizer/cases.json: ids and texts that the `tokenizers` library gives.

    make_tokenizer.py > tests/golden/tokenizer/cases.json

One small vocabulary, several normalisers, pre-tokenisers and sets of added tokens around it.
"""
import json

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TRAINING = [
    "The river carries the rain back to the sea, and the sea gives the rain back to the hills. " * 4,
    "It's 12345 steps from here; they've walked 678 of them, and we'll walk the rest. I'm here, you're there, he'd know. " * 3,
    "for (int i = 0; i < n; i++) {\n    sum += x[i] * y[i];\n\treturn 0;\n}\n\n\n    // ---- ==== ....\r\n" * 3,
    "{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}} " * 3,
    "Das Wetter in Zürich ist schön. café naïve. " * 3, "今日は天気がいい。漢字漢字 カタカナ " * 3, "Привет мир, мир и труд. مرحبا بالعالم नमस्ते दुनिया " * 3,
]
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORDS = rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}"
FLINT = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", WORDS + r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
O200K = WORDS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

TEXTS = [
    "", "a", " ", "\n", "The river carries the rain.", "IT'S HERE, they'LL walk; we'\u017f", "x=1;\r\n//y\n\n\tLong   blank   ",
    "12345678 ١٢٣٤ ²³ Ⅷ 7", "今日は42カタカナ漢字。", "naïve café — 東京 🙂👩‍👩‍👧 \U0001fae8\U0001fae8!", "cafe\u0301 e\u0301\u0323 가각 \u1112\u1161\u11ab",
    "Привет, мир! مرحبا नमस्ते ไทย", "\x00\x01\x1f\x7f\x85\u180e\u2028\u3000.", "a\u00a0b\u200bc\ufeffd", "   leading, and trailing   ", "----====....####",
    "<|user|>hello<|assistant|><think>why</think>", " <|user|> <think> x", "<|user|><|user|><|use", "x<|user|", "a<left> b <left>c", "a<right>  b<right>\n", " <both> z",
    "<alone>a<alone> <alone>.<alone>\u1c89<alone>", "caféx cafe\u0301", "[<think>]", "e" * 60, "the the " * 12, "\ud7ff\ue000\U0010ffff",
]
DECODE = [[0xE4], [0xF0 - 0x44, 5, 200], list(range(0, 256, 5)), list(range(255, 0, -7))]


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


def byte_level(prefix=False, regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


SPECIAL = [AddedToken(t, special=True, normalized=False) for t in ("<|endoftext|>", "<|user|>", "<|assistant|>", "<|user|><|user|>")]
TAGS = [AddedToken(t, special=False, normalized=False) for t in ("<think>", "</think>")]
ODD = [AddedToken("<left>", lstrip=True, normalized=False), AddedToken("<right>", rstrip=True, normalized=False),
       AddedToken("<both>", lstrip=True, rstrip=True, special=True, normalized=False), AddedToken("<alone>", single_word=True, normalized=False),
       AddedToken("cafe\u0301", normalized=True), AddedToken("  ", normalized=True)]
CONFIGS = [
    ("flint", {}, [split(Regex(p)) for p in FLINT] + [byte_level()], SPECIAL + TAGS),
    ("o200k", {"ignore_merges": True, "post": processors.TemplateProcessing(single="<|user|> $A", special_tokens=[("<|user|>", 0)])},
     [split(Regex(O200K)), byte_level()], SPECIAL + TAGS),
    ("gpt2 with NFC", {"nfc": True, "post": processors.ByteLevel()}, [byte_level(True, True)], SPECIAL + TAGS + ODD),
    ("odd tokens", {}, [split(Regex(O200K)), byte_level()], SPECIAL + TAGS + ODD),
    ("digits, removed", {}, [pre_tokenizers.Digits(individual_digits=True), split(" ", "removed"), byte_level(False, True)], TAGS),
    ("digit runs, merged with previous", {}, [pre_tokenizers.Digits(), split("e", "merged_with_previous"), byte_level()], TAGS),
    ("merged with next", {}, [split(Regex(r"\s"), "merged_with_next"), split(".", "contiguous"), byte_level()], []),
    ("inverted", {}, [split(Regex(r"\w+"), "removed", True), byte_level()], []),
]


def main():
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.Sequence([split(Regex(O200K)), byte_level()])
    base.train_from_iterator(TRAINING, trainers.BpeTrainer(
        vocab_size=700, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    model = json.loads(base.to_str())["model"]
    out = {"made_by": f"tokenizers {tokenizers.__version__}", "model": {"vocab": model["vocab"], "merges": [" ".join(m) for m in model["merges"]]}, "configs": []}
    for name, options, steps, added in CONFIGS:
        tok = Tokenizer(models.BPE(model["vocab"], [tuple(m) for m in model["merges"]], ignore_merges=options.get("ignore_merges", False)))
        tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
        tok.decoder = decoders.ByteLevel()
        if options.get("nfc"):
            tok.normalizer = normalizers.NFC()
        if options.get("post"):
            tok.post_processor = options["post"]
        tok.add_tokens(added)
        parts = json.loads(tok.to_str())
        texts, decode = [], []
        for t in TEXTS:
            case = {"text": t, "ids": tok.encode(t, add_special_tokens=False).ids}
            tok.encode_special_tokens = True
            case["plain"] = tok.encode(t, add_special_tokens=False).ids
            tok.encode_special_tokens = False
            texts.append(case)
        n = tok.get_vocab_size()
        for ids in DECODE + [[60, 61, n - 1, 62], [n - 2, n - 3, 1]]:
            if all(tok.id_to_token(i).isascii() or i < 256 for i in ids):
                decode.append({"ids": ids, "text": tok.decode(ids, skip_special_tokens=False), "skipped": tok.decode(ids, skip_special_tokens=True)})
        out["configs"].append({"name": name, "ignore_merges": options.get("ignore_merges", False), "texts": texts, "decode": decode,
                               **{k: parts[k] for k in ("added_tokens", "normalizer", "pre_tokenizer", "post_processor")}})
    text = json.dumps(out, ensure_ascii=True, separators=(",", ":"))
    print(text.replace('{"name":', '\n{"name":').replace('{"text":', '\n{"text":'))


if __name__ == "__main__":
    main()
