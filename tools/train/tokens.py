"""From documents to rows of token ids, and the tokenizer.

    tokens.py tokenizer OUT.json [--docs N]         train the byte-level BPE tokenizer
    tokens.py speed TOKENIZER.json                  tokens per second of one process
"""
import argparse
import collections
import json
import os
import re
import time

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from data import Maker
from dialect import CONTROL, TAGS

GIVEN_WEIGHT = 0.1  # loss weight of text that the model is given; generated text has 1
SPACED = 1100  # entries that are a blank and the start of a word

SPLITS = [
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]


def pre_tokenizer(first):
    steps = [first] + SPLITS[1:]
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior="isolated") for p in steps]
                                   + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


# What merges are learnt on: finer than Flint's own pieces. A word is cut from the character before it and a figure from its
# neighbours, so that a word has the same tokens behind a blank, a quote, an underscore or a tag, and copying is one to one.
FINE = [r"\p{N}", r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+",
        r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"]


def plain_parts(pieces):
    """The text of a document without its markers."""
    text = "".join(pieces)
    for t in CONTROL + TAGS:
        text = text.replace(t, "\0")
    return [x for x in text.split("\0") if x]


def train_tokenizer(path, docs=30000, size=4096, seed=7):
    """Byte-level BPE with Flint's pre-tokenizer in two stages: words without what stands before them, then the SPACED merges
    of a blank with the most frequent first pieces of words. The markers come last."""
    maker = Maker(seed)
    texts = [x for _ in range(docs) for x in plain_parts(maker.document())]
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(p), behavior="isolated") for p in FINE]
                                                + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=size - len(CONTROL) - len(TAGS) - SPACED, show_progress=False, min_frequency=3,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    state = json.loads(tok.to_str())
    vocab, merges = state["model"]["vocab"], [tuple(m) for m in state["model"]["merges"]]
    starts = collections.Counter()
    for words in (re.findall(r" ([A-Za-z]+)", x) for x in texts[:docs]):
        for e in tok.encode_batch_fast(words, add_special_tokens=False):
            starts[e.ids[0]] += 1
    names = {i: t for t, i in vocab.items()}
    for i, _ in starts.most_common(SPACED):
        merges.append(("\u0120", names[i]))
        vocab["\u0120" + names[i]] = len(vocab)
    tok = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tok.decoder = decoders.ByteLevel()
    tok.pre_tokenizer = pre_tokenizer(SPLITS[0])
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in CONTROL])
    tok.add_tokens([AddedToken(t, special=False, normalized=False) for t in TAGS])
    tok.save(path)
    return tok


def bare_words(tok):
    """The entries of letters alone, shortest words included."""
    return sorted(t for t in tok.get_vocab() if re.fullmatch(r"[A-Za-z]{1,8}", t))


def encode_docs(tok, docs):
    """Documents (lists of pieces) -> [(ids, loss weights)]; a weight belongs to the token it is a target for.

    In given text the token after <|assistant|> has weight 0: whether to think is learnt from generated text alone."""
    flat = tok.encode_batch_fast([p for d in docs for p in d], add_special_tokens=False)
    out, at, assistant = [], 0, tok.token_to_id("<|assistant|>")
    for d in docs:
        ids = [np.asarray(e.ids, np.uint16) for e in flat[at:at + len(d)]]
        at += len(d)
        weights = [np.full(len(x), 255 if i % 2 else round(255 * GIVEN_WEIGHT), np.uint8) for i, x in enumerate(ids)]
        for x, w in zip(ids[::2], weights[::2]):
            w[1:][x[:-1] == assistant] = 0
        out.append((np.concatenate(ids), np.concatenate(weights)))
    return out


def rows(tok, seed, length):
    """Endless rows (ids uint16, weights uint8) of that length, filled with whole documents; the last one is cut to fit."""
    maker, pool = Maker(seed, pieces=bare_words(tok)), []
    while True:
        ids, w, at = np.zeros(length, np.uint16), np.zeros(length, np.uint8), 0
        while at < length:
            if len(pool) < 64:
                pool += [d for d in encode_docs(tok, [maker.document() for _ in range(192)]) if len(d[0]) <= length]
            i = next((i for i in range(len(pool)) if len(pool[i][0]) <= length - at), 0)
            x, y = pool.pop(i)
            n = min(len(x), length - at)
            ids[at:at + n], w[at:at + n] = x[:n], y[:n]
            w[at] = 0  # nothing predicts the start of a document
            at += n
        yield ids, w


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("what", choices=("tokenizer", "speed"))
    ap.add_argument("path")
    ap.add_argument("--docs", type=int, default=30000)
    a = ap.parse_args()
    if a.what == "tokenizer":
        t = time.time()
        tok = train_tokenizer(a.path, a.docs)
        print(f"{tok.get_vocab_size()} entries in {time.time() - t:.1f} s")
        return
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tok = Tokenizer.from_file(a.path)
    m, kinds = Maker(0, pieces=bare_words(tok)), {}
    for kind in ("story_doc", "chat_doc", "copy_doc", "tool_doc", "needle_doc"):
        start = time.time()
        e = encode_docs(tok, [getattr(m, kind)() for _ in range(300)])
        lengths = [len(x[0]) for x in e]
        own = sum(int((w == 255).sum()) for _, w in e)
        print(f"{kind:10s} {np.mean(lengths):6.0f} tokens a document, longest {max(lengths)}, {own / sum(lengths):.2f} generated, "
              f"{sum(lengths) / (time.time() - start):.0f} tokens/s")
    docs = [m.document() for _ in range(2000)]
    e = encode_docs(tok, docs)
    tokens = sum(len(x[0]) for x in e)
    print(f"{sum(len(p) for d in docs for p in d) / tokens:.2f} characters/token, {tokens / len(docs):.0f} tokens/document")
    g, start = rows(tok, 1, 4096), time.time()
    for _ in range(60):
        next(g)
    print(f"rows: {60 * 4096 / (time.time() - start):.0f} tokens/s")


if __name__ == "__main__":
    main()
