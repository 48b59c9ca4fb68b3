"""Score a running server that serves the small Flint, through its OpenAI chat route.

    eval_http.py --base-url http://127.0.0.1:8000 --seed 7

Draws tasks that training has not seen (tools, names, facts: the generator's reserved combinations) from the seed, sends them
greedily with several requests in flight, compares the answers exactly and prints a table. Exit code 1 when a score is below
its threshold. Standard library only, beside the generator in ../train.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
import probe  # noqa: E402
from data import Maker  # noqa: E402

# group -> least share of right answers, in percent (None: reported only)
THRESHOLDS = {"tool call": 95, "no call where no tool fits": 95, "no call for a plain question": 95, "hand-written tools": 60,
              "second probe": None, "fact in 4096 tokens": 95, "simple questions": 90, "answer from a result": None}

Task = collections.namedtuple("Task", "group messages tools judge limit")


# ---------------------------------------------------------------- judging

def canonical(value):
    """A JSON value as text: 20.0 is 20, true is not 1, the order of keys does not matter."""
    def plain(x):
        if isinstance(x, float) and x == int(x):
            return int(x)
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        return [plain(v) for v in x] if isinstance(x, list) else x
    return json.dumps(plain(value), sort_keys=True, ensure_ascii=False)


def calls_of(message):
    """The calls of an answer as [(name, canonical arguments)]; arguments that are no JSON stay as they are."""
    out = []
    for call in message.get("tool_calls") or []:
        f = call["function"]
        try:
            out.append((f["name"], canonical(json.loads(f["arguments"]))))
        except ValueError:
            out.append((f["name"], f["arguments"]))
    return out


def wants_calls(calls):
    want = [(c["name"], canonical(c["arguments"])) for c in calls]
    return lambda message: calls_of(message) == want


def wants_no_call(message):
    return not calls_of(message) and bool((message.get("content") or "").strip())


def wants_text(text):
    return lambda message: not calls_of(message) and (message.get("content") or "").strip() == text.strip()


# ---------------------------------------------------------------- tasks

def openai_messages(turns):
    """The generator's messages as the chat route takes them."""
    out = []
    for i, m in enumerate(turns):
        new = {"role": m["role"], "content": m["content"]}
        if m.get("calls"):
            new["tool_calls"] = [{"id": f"call_{i}_{j}", "type": "function", "function": {
                "name": c["name"], "arguments": json.dumps(c["arguments"], ensure_ascii=False)}} for j, c in enumerate(m["calls"])]
        if m["role"] == "tool":
            back = next(k for k in range(len(out) - 1, -1, -1) if "tool_calls" in out[k])
            new["tool_call_id"] = out[back]["tool_calls"][min(len(out) - 1 - back, len(out[back]["tool_calls"]) - 1)]["id"]
        out.append(new)
    return out


def tool_tasks(m, n):
    """n calls and half as many requests without a fitting tool, plain questions and results to report."""
    out = []
    for i in range(n):
        tools = m.toolbox()
        schemas = [t[0] for t in tools]
        turns = m.tool_turn(tools, "one")
        out.append(Task("tool call", turns[:1], schemas, wants_calls(turns[1]["calls"]), 240))
        if i % 2 == 0:
            out.append(Task("no call where no tool fits", m.tool_turn(tools, "none")[:1], schemas, wants_no_call, 120))
            out.append(Task("no call for a plain question", m.tool_turn(tools, "chat")[:1], schemas, wants_no_call, 120))
            out.append(Task("answer from a result", turns[:-1], schemas, wants_text(turns[-1]["content"]), 240))
    return out


def hand_tasks():
    return [Task(group, [{"role": "user", "content": said}], tools, wants_calls([call]), 240)
            for group, entries in (("hand-written tools", probe.HAND), ("second probe", probe.SECOND))
            for tools, said, call in probe.tasks(entries)]


def question_tasks(m, n):
    out = []
    for _ in range(n):
        q, a, *_ = m.question()
        out.append(Task("simple questions", [{"role": "user", "content": q}], [], wants_text(a), 160))
    return out


def needle_tasks(m, server, per_depth, length=4096, room=48):
    """A fact at ten depths of a text that, with its question, fills `length` tokens less `room`. The server counts the tokens."""
    out = []
    for i in range(10 * per_depth):
        depth = i % 10 / 9
        (fact, question, answer), *others = m.facts(6)
        text = m.filler(length * 5)
        for s, _, _ in others:
            text.insert(m.r.randint(0, len(text) // 3), s)

        def message(count):
            kept = text[:count]
            kept.insert(round(depth * len(kept)), fact)
            return [{"role": "user", "content": " ".join(kept) + "\n\n" + question}]
        low, high = 0, len(text)
        while low < high:  # the most sentences that fit
            middle = (low + high + 1) // 2
            low, high = (middle, high) if server.count(message(middle)) <= length - room else (low, middle - 1)
        out.append((i % 10, Task("fact in 4096 tokens", message(low), [], wants_text(answer), 40)))
    return out


# ---------------------------------------------------------------- the server

class Server:
    """The two routes that are needed."""

    def __init__(self, base, model, timeout):
        self.base, self.model, self.timeout, self.counts = base.rstrip("/"), model, timeout, True

    def post(self, route, body):
        if self.model:
            body = {"model": self.model, **body}
        request = urllib.request.Request(self.base + route, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:
            return json.load(answer)

    def answer(self, task):
        """The message of the assistant; an error becomes a message that no judge accepts."""
        body = {"messages": openai_messages(task.messages), "temperature": 0, "max_tokens": task.limit}
        if task.tools:
            body["tools"] = task.tools
        try:
            return self.post("/v1/chat/completions", body)["choices"][0]["message"]
        except urllib.error.HTTPError as e:
            return {"content": "", "error": f"HTTP {e.code}: {e.read()[:200].decode(errors='replace')}"}
        except (OSError, ValueError, KeyError, IndexError) as e:
            return {"content": "", "error": repr(e)}

    def count(self, messages):
        """Tokens of a prompt: asked from /tokenize, or estimated on the safe side if the server has none."""
        if self.counts:
            try:
                return self.post("/tokenize", {"messages": messages})["count"]
            except (OSError, ValueError, KeyError):
                self.counts = False
        return 16 + int(len(messages[0]["content"]) / 3.4)


# ---------------------------------------------------------------- the table

def score(server, tasks, flight, show, out):
    """Runs the tasks; -> {group: [right or not]} in task order."""
    with concurrent.futures.ThreadPoolExecutor(flight) as pool:
        answers = list(pool.map(server.answer, tasks))
    scores, shown = collections.defaultdict(list), collections.Counter()
    for task, message in zip(tasks, answers):
        good = bool(task.judge(message))
        scores[task.group].append(good)
        if not good and shown[task.group] < show:
            shown[task.group] += 1
            print(f"--- {task.group}: {json.dumps(task.messages[-1]['content'][-200:], ensure_ascii=False)}\n"
                  f"    => {json.dumps(message, ensure_ascii=False)[:400]}", file=out)
    return scores


def table(scores, out):
    """Prints the scores; -> True if every threshold is met."""
    print(f"{'task':32s} {'n':>5s} {'right':>8s} {'needed':>8s}", file=out)
    good = True
    for group, s in scores.items():
        share, least = 100 * sum(s) / len(s), THRESHOLDS.get(group)
        met = least is None or share >= least
        good = good and met
        need = "-" if least is None else f"{least} %"
        print(f"{group:32s} {len(s):5d} {share:6.1f} % {need:>8s}{'' if met else '   BELOW'}", file=out)
    return good


def main(argv=None, out=sys.stdout):
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--base-url", default="http://127.0.0.1:8000")
    ap.add_argument("--model", help="name to send; default: none")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--calls", type=int, default=200, help="tool calls; other groups follow")
    ap.add_argument("--questions", type=int, default=100)
    ap.add_argument("--per-depth", type=int, default=4, help="facts at each of ten depths; 0: none")
    ap.add_argument("--flight", type=int, default=8, help="requests in flight")
    ap.add_argument("--timeout", type=float, default=300)
    ap.add_argument("--show", type=int, default=0, help="print that many failures of each group")
    a = ap.parse_args(argv)
    m, server = Maker(a.seed, held=True), Server(a.base_url, a.model, a.timeout)
    needles = needle_tasks(m, server, a.per_depth)
    tasks = tool_tasks(m, a.calls) + hand_tasks() + question_tasks(m, a.questions) + [t for _, t in needles]
    scores = score(server, tasks, a.flight, a.show, out)
    good = table(scores, out)
    if needles:
        by = collections.defaultdict(list)
        for (depth, _), right in zip(needles, scores["fact in 4096 tokens"]):
            by[depth].append(right)
        print("facts by depth: " + " ".join(f"{100 * sum(x) // len(x)} %" for _, x in sorted(by.items())), file=out)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
