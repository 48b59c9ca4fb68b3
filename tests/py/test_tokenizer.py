"""Tokenizer against the `tokenizers` library: the same ids, the same text back, the same cuts.

Tokenizers and text are made here from a seed. SUMI_LONG=1: 5 MB of text and larger vocabularies. SUMI_TEST_GGUF names
a GGUF file, SUMI_TEST_TOKENIZER a tokenizer.json that are compared too. The C side is tok_tool of the newest build folder (or of SUMI_BUILD).
"""
import glob
import os
import random
import struct
import subprocess

import pytest

tokenizers = pytest.importorskip("tokenizers")
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers  # noqa: E402

from corpus import Corpus  # noqa: E402

LONG = os.environ.get("SUMI_LONG") == "1"
BYTES = 5_000_000 if LONG else 300_000
VOCAB = 20_000 if LONG else 2_000
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CONTROL = ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>"]
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
WORDS = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTION}")
FLINT = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", WORDS + r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]
O200K = WORDS + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"]
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


def tool():
    found = glob.glob(os.path.join(os.environ.get("SUMI_BUILD", os.path.join(ROOT, "build*")), "tok_tool"))
    if not found:
        pytest.skip("tok_tool is not built (cmake --preset release && cmake --build build)")
    return max(found, key=os.path.getmtime)


def records(texts):
    return b"".join(struct.pack("<I", len(t)) + t for t in (x if isinstance(x, bytes) else x.encode() for x in texts))


def run(*args, data):
    return subprocess.run([tool(), *map(str, args)], input=data, stdout=subprocess.PIPE, check=True).stdout


def byte_level(**kw):
    return pre_tokenizers.ByteLevel(**{"add_prefix_space": False, "use_regex": False, **kw})


def splits(patterns):
    return [pre_tokenizers.Split(Regex(p), behavior="isolated") for p in patterns]


def train(steps, normalizer=None, added=(), ignore_merges=False, post=None):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tok.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tok.decoder = decoders.ByteLevel()
    if normalizer:
        tok.normalizer = normalizer
    if post:
        tok.post_processor = post
    tok.train_from_iterator(Corpus(11).records(BYTES // 2), trainers.BpeTrainer(
        vocab_size=VOCAB, show_progress=False, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])
    tok.add_tokens([AddedToken(t, special=False, normalized=False) for t in TAGS])
    tok.add_tokens(list(added))
    return tok


def odd_tokens():
    return [AddedToken("<alone>", single_word=True, normalized=False), AddedToken("<left>", lstrip=True, normalized=False),
            AddedToken("<right>", rstrip=True, normalized=False), AddedToken("<both>", lstrip=True, rstrip=True, special=True, normalized=False),
            AddedToken("<|user|><|user|>", special=True, normalized=False), AddedToken("ba", single_word=True),
            AddedToken("caf\u00e9", normalized=True), AddedToken("e\u0323\u0301x", normalized=True), AddedToken("   ", normalized=True),
            AddedToken("\n\n\n\n", rstrip=True), AddedToken("\U0001F600!", normalized=False), AddedToken("<", normalized=True)]


def from_gguf(path):
    """The tokenizer of a GGUF file with pre-tokenizer "flint", as the checkpoint that it was made from had it."""
    gguf = pytest.importorskip("gguf")
    f = gguf.GGUFReader(path).fields
    get = lambda k: f["tokenizer.ggml." + k].contents()
    assert get("pre") == "flint"
    kind = get("token_type")
    vocab = {t: i for i, t in enumerate(get("tokens")) if kind[i] == gguf.TokenType.NORMAL}
    tok = Tokenizer(models.BPE(vocab, [tuple(m.split(" ")) for m in get("merges")]))
    tok.pre_tokenizer = pre_tokenizers.Sequence(splits(FLINT) + [byte_level()])
    tok.decoder = decoders.ByteLevel()
    for i, t in enumerate(get("tokens")):
        if kind[i] == gguf.TokenType.CONTROL:
            tok.add_special_tokens([AddedToken(t, special=True, normalized=False)])
        elif kind[i] == gguf.TokenType.USER_DEFINED:
            tok.add_tokens([AddedToken(t, normalized=False)])
    return tok


MAKERS = {
    "flint": lambda: train(splits(FLINT) + [byte_level()]),
    "o200k": lambda: train(splits([O200K]) + [byte_level()], ignore_merges=True,
                           post=processors.TemplateProcessing(single="<|user|> $A", special_tokens=[("<|user|>", 0)])),
    "cl100k, NFC": lambda: train(splits([CL100K]) + [byte_level()], normalizer=normalizers.NFC(), added=odd_tokens()),
    "deepseek": lambda: train(splits(DEEPSEEK) + [byte_level()], added=odd_tokens(), post=processors.ByteLevel()),
    "gpt2": lambda: train([byte_level(add_prefix_space=True, use_regex=True)], added=odd_tokens(),
                          normalizer=normalizers.Sequence([normalizers.NFC()])),
    "digits": lambda: train([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Split(" ", "merged_with_next"),
                             pre_tokenizers.Split(Regex(r"\s+"), "removed"), byte_level(use_regex=True)]),
    "digit runs": lambda: train([pre_tokenizers.Digits(), pre_tokenizers.Split("e", "merged_with_previous", invert=True),
                                 pre_tokenizers.Split(Regex(r"\w+|\n"), "contiguous"), byte_level()]),
}


@pytest.fixture(scope="module", params=list(MAKERS) + ["gguf", "json"])
def tok(request, tmp_path_factory):
    if request.param == "gguf":
        path = os.environ.get("SUMI_TEST_GGUF")
        if not path:
            pytest.skip("SUMI_TEST_GGUF is not set")
        t = from_gguf(path)
    elif request.param == "json":
        path = os.environ.get("SUMI_TEST_TOKENIZER")
        if not path:
            pytest.skip("SUMI_TEST_TOKENIZER is not set")
        t = Tokenizer.from_file(path)
    else:
        t = MAKERS[request.param]()
    path = str(tmp_path_factory.mktemp("tok") / "tokenizer.json")
    t.save(path)
    return t, path


@pytest.fixture(scope="module")
def texts(tok):
    return Corpus(5, [a.content for a in tok[0].get_added_tokens_decoder().values()]).records(BYTES)


def show_first(texts, ours, theirs, t):
    for x, a, b in zip(texts, ours, theirs):
        if a != b:
            i = next((i for i in range(min(len(a), len(b))) if a[i] != b[i]), min(len(a), len(b)))
            spell = lambda ids: [t.id_to_token(j) for j in ids[max(i - 5, 0):i + 5]]
            return f"text {x[:100]!r} from id {i}: ours {spell(a)}, theirs {spell(b)}"
    return ""


@pytest.mark.parametrize("plain", [False, True])
def test_ids_are_those_of_the_library(tok, texts, plain):
    t, path = tok
    lines = run("encode", path, *(["plain"] if plain else []), data=records(texts)).decode().split("\n")[:-1]
    ours = [[int(i) for i in line.split()] for line in lines]
    t.encode_special_tokens = plain
    theirs = [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=False)]
    t.encode_special_tokens = False
    assert len(ours) == len(theirs)
    assert ours == theirs, show_first(texts, ours, theirs, t)


@pytest.mark.parametrize("skip", [False, True])
def test_text_is_that_of_the_library(tok, texts, skip):
    """Also for sequences that no text gives, whose bytes are not valid UTF-8."""
    t, path = tok
    r = random.Random(3)
    n = t.get_vocab_size()
    ids = [e.ids for e in t.encode_batch_fast(texts[:200], add_special_tokens=False)]
    ids += [[r.choice([r.randrange(n), r.randrange(256)]) for _ in range(r.randint(1, 30))] for _ in range(3000)]
    out = run("decode", path, *(["skip"] if skip else []), data="\n".join(" ".join(map(str, i)) for i in ids).encode() + b"\n")
    at = 0
    odd = {i for i, a in t.get_added_tokens_decoder().items() if not a.content.isascii()}  # read as byte-level by the library
    for i in ids:
        n, = struct.unpack_from("<I", out, at)
        ours = out[at + 4:at + 4 + n].decode()
        at += 4 + n
        if not odd & set(i):
            assert ours == t.decode(i, skip_special_tokens=skip), i


PATTERNS = FLINT + [O200K, CL100K, DEEPSEEK[2]] + [
    r"\s", r"\S+", r"\d+", r"\D", r"\w+", r"\W", r"\h+", r"\H+", r"[\s\d]+", r"[^\S]", r"[\S]+", r"[\w\-]+", r".", r"(?m:.)+", r"\v|\f|\a|\e",
    r"\p{L}+", r"\P{L}+", r"\p{^L}", r"[^\p{M}]+", r"\p{Han}+", r"\p{Hiragana}|\p{Katakana}+|\p{Hangul}{2}", r"\p{ lu }|\p{S_m}", r"[\p{Sc}\p{Nd}]",
    r"a{2}", r"a{2,3}?", r"a{,2}", r"a{2}?b?", r"(?:ab){1,2}+", r"\p{N}{3}+", r"a++b|a", r"x*", r"\d*?", r"^", r"$", r"^.", r".$", r"\Aa", r"\z", r"a|\Z",
    r"(?i)sk|K", r"a(?i)b|c", r"(?i:[a-z]+)", r"(?i:K)", r"(?<=a)b", r"(?<![a-z])[a-z]", r"(?=\d)", r"(?!\s)\W", r"(?>a+)b", r"(?<n>a)(b)?",
    r"\x41|\x{6f22}|\u00e9", r"\.\-\/\#\ ", r"[\x{4e00}-\x{9fff}]+", r"[+,\-./]", r"[-a]", r"[a-]", r"{", r"a{", r"}|]", r"(?#note)a", r"(?i-m:a.)",
    r"(?:a+)+", r"a+?+|b{2}{2}", r"(a|b)*c", r"[\b\n]", "é+", "[é-ü]", r"\s+(?!\S)|\s", r" ?\p{L}+(?:'\p{L}+)?", r"\r?\n", r"(?:\r\n|\n)+", r"\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))"]


@pytest.fixture(scope="module")
def cut_texts():
    r = random.Random(9)
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    r.shuffle(every)
    all_chars = ["".join(every[i:i + 2000]) for i in range(0, len(every), 2000)]
    short = ["".join(r.choice(" aAbBsSkK'tT1٣漢é\n\r\t.-_\u017f\u212a\u0301\u180e") for _ in range(r.randint(1, 12))) for _ in range(1500)]
    return Corpus(6).records(30_000) + (all_chars if LONG else all_chars[:30]) + short


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pieces_are_those_of_the_library(pattern, cut_texts):
    data = records(cut_texts)
    for behavior in range(5) if LONG or pattern in (r"\d+", r"x*", r"^") else [1]:
        for invert in (False, True):
            split = pre_tokenizers.Split(Regex(pattern), BEHAVIORS[behavior], invert)
            out = run("split", pattern, behavior, *(["invert"] if invert else []), data=data).decode().split("\n")
            for text, line in zip(cut_texts, out):
                theirs = [len(p.encode()) for p, _ in split.pre_tokenize_str(text)]
                assert [int(x) for x in line.split()] == theirs, (text, behavior, invert)


REFUSED = [r"(a)\1", r"\k<n>(?<n>a)", r"(?{x})", r"(*FAIL)", r"(?~a)", r"(?R)", r"\g<1>(a)", r"(?(1)a|b)(x)", r"[[:alpha:]]", r"[a&&b]", r"[a[b]]",
           r"\p{Greek}", r"\p{Cn}", r"[\P{L}]", r"[\D]", r"\b", r"\B", r"\G", r"\K", r"\R", r"\X", r"\y", r"\1", r"\0", r"\xE9", r"\x{41 42}", r"\cA",
           r"(?x: a)", r"(?i:ß)", r"(?i:ss)", r"(?i:\p{Lu})", r"(?i:\w)", r"(?i:\S)", r"(?i:[^a])", r"a**", r"(a*)*", r"(?:a|b?|c)+", r"(?:(?=a)|^){2}", r"(?:)+", r"[]a]", r"a{3,1}", r"a{99999}", r"(?=a)*", r"^*", r"\pL", r"[a-c-e]",
           r"(", r")", r"[", r"a\\" [:2], r"*", r"(?", r"(?i", r"\x", r"\p{L", r"[z-a]", r"[\d-z]", "(" * 100 + ")" * 100]


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_that_could_differ_are_refused(pattern):
    p = subprocess.run([tool(), "split", pattern, "1"], input=b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.returncode == 1 and b"regular expression" in p.stderr, p.stderr


def test_hostile_patterns_end():
    """Within seconds, with an error or a result, never with a hang."""
    for pattern in [r"(a+)+$x", r"(?:a|aa)+[bc]", r"(?:\s+\s+)+[xy]", r"a*a*a*a*a*[bc]"] + [r"(.*a){20}[xy]"] * LONG:
        out = run("split", pattern, 1, data=records(["a" * 5000 + " " * 5000, "x"]))
        assert out.count(b"\n") == 2
