"""Score a checkpoint on held-out tasks, greedily, and print a table.

    evaluate.py CKPT [--small] [--hand] [--show N]

No key/value cache: prompts lie in slots of fixed length inside rows of the training length, and every step runs the whole
rows again. With one shape for all tasks the compiled layers of a GPU are reused, and correctness needs no second code path.
"""
import argparse
import collections
import json
import os
import re
import time

import torch
from tokenizers import Tokenizer

import model as network
import probe
from data import Maker
from dialect import STOPS, asks, call_text, parse, prompt, says


def parsed(call):
    """A call's text -> (name, arguments as text); their order does not matter."""
    name = call[len("<tool_call>"):].split("<")[0]
    return name, dict(re.findall(r"<arg_key>(.*?)</arg_key><arg_value>(.*?)</arg_value>", call, flags=re.S))


def same_calls(wanted):
    """A test of an answer: exactly these calls."""
    want = [parsed(call_text(c)) for c in wanted]
    return lambda content, calls: [parsed(c) for c in calls] == want


def hand_tasks(group, entries):
    """The requests of a probe, with thinking and without."""
    out = []
    for tools, said, call in probe.tasks(entries):
        for thinking in (True, False):
            text = prompt([asks(said)], tools, thinking)
            out.append((group, text, same_calls([call])))
            out.append((group + ", name only", text, lambda c, k, n=call["name"]: [parsed(x)[0] for x in k] == [n]))
    return out


def tool_tasks(m, n):
    """(group, prompt, test of (content, calls))."""
    out = []

    def add(group, messages, tools, content=None, calls=()):
        right = same_calls(calls)
        out.append((group, prompt(messages, [t[0] for t in tools], len(out) % 2 == 0),
                    lambda c, k, content=content, right=right: right(c, k) and (content is None or c == content)))
    for i in range(n):
        tools = m.toolbox()
        turns = m.tool_turn(tools, "one")
        add("one call", turns[:1], tools, "", turns[1]["calls"])
        add("answer from result", turns[:-1], tools, turns[-1]["content"])
        if i % 2 == 0:
            turns = m.tool_turn(tools, "many")
            add("several calls", turns[:1], tools, "", turns[1]["calls"])
            turns = m.tool_turn(tools, "chain")
            if len(turns) > 4:
                add("next call after a result", turns[:3], tools, "", turns[3].get("calls", ()))
            add("declines", m.tool_turn(tools, "none")[:1], tools)
            add("question beside tools: no call", m.tool_turn(tools, "chat")[:1], tools)
    m.held = False  # everyday tools belong to training; their values are new
    for _ in range(n // 2):
        tool = m.common_tool()
        said, call = m.common_request(tool)
        add("everyday tool", [asks(said)], [tool] + m.toolbox()[:2], "", [call]) if call["arguments"] else None
    m.held = True
    return out


def chat_tasks(m, n):
    """Questions, follow-ups, things to remember, copying."""
    out = []

    def add(group, messages, want):
        out.append((group, prompt(messages, (), len(out) % 2 == 0), lambda c, k, want=want: c == want.strip() and not k))
    for make in ("table", "add", "subtract", "multiply", "sequence", "compare", "animals", "listing", "number_word", "count"):
        m.kinds, kinds = [getattr(m, make)], m.kinds
        for _ in range(n // 2 if make == "table" else n // 4):
            q, a, *_ = m.question()
            add("Q&A: " + make, [asks(q)], a)
        m.kinds = kinds
    for make in dict.fromkeys(f.__name__ for f in m.copies):
        for _ in range(n // 6):
            q, a, *_ = getattr(m, make)()
            add("copying: " + make, [asks(q)], a)
    for _ in range(n // 4):
        q, a, *_ = m.question("capital")
        first = m.table("capital")
        add("follow-up", [asks(first[0]), says(first[1]), asks(q)], a)
        name, q = m.choice(["Zorbin", "Keltura", "Mira", "Otto"]), m.question()
        add("remembers a name", [asks(f"My name is {name}."), says(f"I will remember that your name is {name}."), asks(q[0]),
                                 says(q[1]), asks("What is my name?")], f"Your name is {name}.")
    return out


def needle_tasks(m, tok, length, per_depth, room=28):
    """A fact at ten depths of a text that fills `length` tokens together with its question and `room` for the answer."""
    out = []
    for i in range(10 * per_depth):
        depth = (i % 10) / 9
        (fact, question, answer), *others = m.facts(6)
        text = m.filler(length * 6)
        for s, _, _ in others:
            text.insert(m.r.randint(0, len(text) // 3), s)
        left = length - room - len(tok.encode(prompt([asks(f"{fact}\n\n{question}")])).ids)
        kept = []
        for s, e in zip(text, tok.encode_batch([" " + s for s in text])):
            left -= len(e.ids)
            if left < 0:
                break
            kept.append(s)
        kept.insert(round(depth * len(kept)), fact)
        out.append((f"needle {length}", prompt([asks(" ".join(kept) + "\n\n" + question)]), lambda c, k, want=answer: c == want, depth))
    return out


@torch.no_grad()
def generate(model, tok, prompts, slot, new, rows, length, device):
    """Greedy continuation of each prompt, as text without its stop token."""
    cuda = device == "cuda"
    stops = torch.tensor([tok.token_to_id(s) for s in STOPS], device=device)
    batch, out = rows * (length // slot), []
    for at in range(0, len(prompts), batch):
        part = [tok.encode(p, add_special_tokens=False).ids for p in prompts[at:at + batch]]
        ids = torch.full((batch, slot), 0)
        ids[:, 0] = model.start
        for i, p in enumerate(part):
            assert len(p) + new <= slot, f"prompt of {len(p)} tokens in a slot of {slot}"
            ids[i, :len(p)] = torch.tensor(p)
        ids = ids.to(device)
        ends = torch.tensor([len(p) for p in part] + [1] * (batch - len(part)), device=device)
        begin, done, each = ends.clone(), ends == 1, torch.arange(batch, device=device)
        for _ in range(new):
            x, _ = model.hidden(ids.view(-1, length), cuda, torch.bfloat16 if cuda else torch.float32)
            nxt = model.logits(x.reshape(batch, slot, -1)[each, ends - 1]).argmax(-1)
            done = done | torch.isin(nxt, stops)
            ids[each, ends] = torch.where(done, ids[each, ends], nxt)
            ends = torch.where(done, ends, ends + 1)
            if done.all():
                break
        ids, ends, begin = ids.tolist(), ends.tolist(), begin.tolist()
        out += [tok.decode(ids[i][begin[i]:ends[i]], skip_special_tokens=False) for i in range(len(part))]
    return out


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("checkpoint")
    ap.add_argument("--small", action="store_true", help="few tasks, for the CPU")
    ap.add_argument("--hand", action="store_true", help="only the hand-written tools")
    ap.add_argument("--show", type=int, default=0, help="print that many failures of each group")
    ap.add_argument("--rows", type=int, default=32)
    ap.add_argument("--seed", type=int, default=12345)
    a = ap.parse_args()
    begin = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = network.load(a.checkpoint, device)
    tok = Tokenizer.from_file(os.path.join(a.checkpoint, "tokenizer.json"))
    length, rows = (4096, a.rows) if device == "cuda" else (1024, 2)
    if device == "cuda":
        model.compile()
    m = Maker(a.seed, held=True)
    n = 12 if a.small else 160
    jobs = [(hand_tasks("hand-written tools", probe.HAND) + hand_tasks("second probe", probe.SECOND), 1024, 130)]
    if not a.hand:
        jobs += [(tool_tasks(m, n), 1024, 200), (chat_tasks(m, n), 512, 120)]
        jobs += [(needle_tasks(m, tok, size, 1 if a.small else 4), size, 28) for size in ((512, 1024) if a.small else (1024, 2048, 4096))]
    for tasks, slot, new in jobs:
        scores, failures, depths = collections.defaultdict(list), collections.defaultdict(list), collections.defaultdict(list)
        tasks = [t for t in tasks if len(tok.encode(t[1], add_special_tokens=False).ids) + new <= slot]
        prompts = list(dict.fromkeys(t[1] for t in tasks))
        texts = dict(zip(prompts, generate(model, tok, prompts, slot, new, rows, length, device)))
        for group, asked, test, *depth in tasks:
            good = test(*parse(texts[asked]))
            scores[group].append(good)
            if depth:
                depths[group].append((depth[0], good))
            if not good:
                failures[group].append((asked[-260:], texts[asked]))
        for group, s in scores.items():
            by = collections.defaultdict(list)
            for d, good in depths.get(group, ()):
                by[d].append(good)
            note = "   by depth " + " ".join(f"{100 * sum(x) // len(x)}" for _, x in sorted(by.items())) if by else ""
            print(f"{group:34s} {len(s):5d} {100 * sum(s) / len(s):6.1f}%{note}", flush=True)
        for group, f in failures.items():
            for asked, text in f[:a.show]:
                print(f"--- {group}\n...{json.dumps(asked)}\n => {json.dumps(text)}", flush=True)
    print(f"evaluated in {time.time() - begin:.0f} s")


if __name__ == "__main__":
    main()
