"""How often one server, led along another's greedy texts, would have said the same token.

    agree.py http://127.0.0.1:8001 http://127.0.0.1:8002 --prompts 100 --tokens 64

The first server writes greedily; the second is given prompt and text as token ids and asked for the best token at every
position of the text (prompt logprobs). Both serve the same model, say on the CPU and on a GPU. Positions that differ are listed
with the gap between the two best tokens, in nats. Exit code 1 below 99 %.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import eval_http as e  # noqa: E402
from data import Maker  # noqa: E402 (eval_http knows where it is)


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("writer")
    ap.add_argument("judge")
    ap.add_argument("--prompts", type=int, default=100)
    ap.add_argument("--tokens", type=int, default=64)
    ap.add_argument("--seed", type=int, default=5)
    a = ap.parse_args()
    writer, judge = (e.Server(url, None, 600) for url in (a.writer, a.judge))
    m = Maker(a.seed, held=True)
    half = a.prompts // 2
    tasks = (e.question_tasks(m, half) + e.tool_tasks(m, a.prompts))[:a.prompts]
    total = differ = 0
    for n, task in enumerate(tasks):
        body = {"messages": e.openai_messages(task.messages), **({"tools": task.tools} if task.tools else {})}
        prompt = writer.post("/tokenize", body)["tokens"]
        said = writer.post("/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": a.tokens, "ignore_eos": True,
                                               "return_token_ids": True})["choices"][0]["token_ids"]
        seen = judge.post("/v1/completions", {"prompt": prompt + said, "temperature": 0, "max_tokens": 1, "prompt_logprobs": 2})
        for i, token in enumerate(said):
            entry = seen["choices"][0]["prompt_logprobs"][len(prompt) + i]
            ranked = sorted(entry.items(), key=lambda x: x[1]["rank"])
            total += 1
            if int(ranked[0][0]) != token:
                differ += 1
                gap = ranked[0][1]["logprob"] - ranked[1][1]["logprob"]
                print(f"prompt {n} token {i}: {token} written, {ranked[0][0]} preferred, gap of the two best {gap:.4f}")
    print(f"{total - differ} of {total} positions agree, {100 * (1 - differ / total):.2f} %")
    sys.exit(differ > 0.01 * total)


if __name__ == "__main__":
    main()
