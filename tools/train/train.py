"""Train a small Flint-shaped model from generated text within a wall-clock budget, and write the checkpoint.

    train.py OUTDIR --minutes 6.5                  the real run, one H100/H200-class GPU
    train.py OUTDIR --minutes 1 --tiny             a miniature on the CPU, to see everything work

Muon trains the matrices inside the layers, AdamW the rest. The learning rate follows a cosine over wall-clock time. In the
last part (--qat) every step sees the weights rounded to NVFP4 while the f32 masters receive the gradient, and the rounded
values are what is written: the bf16 checkpoint then converts to NVFP4 without any loss.
"""
import argparse
import json
import math
import multiprocessing
import os
import time

import torch
from tokenizers import Tokenizer
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import model as network
import tokens


class Rows(IterableDataset):
    """Batches of packed rows; every worker process makes its own stream of documents."""

    def __init__(self, tokenizer_path, seed, batch, length):
        self.args = tokenizer_path, seed, batch, length

    def __iter__(self):
        path, seed, batch, length = self.args
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        info = get_worker_info()
        rows = tokens.rows(Tokenizer.from_file(path), seed * 1000 + (info.id if info else 0), length)
        while True:
            ids, w = zip(*(next(rows) for _ in range(batch)))
            yield torch.stack([torch.from_numpy(x.astype("int16")) for x in ids]), torch.stack([torch.from_numpy(x) for x in w])


class Muon:
    """Momentum whose step is orthogonalised: each matrix moves by about the same amount in every direction.

    Fused parameters are cut into the matrices they hold; matrices of one shape are worked on together. The factor
    0.2 sqrt(max side) gives a step the size of AdamW's, so both share a learning rate."""

    def __init__(self, model, decay=0.02, momentum=0.95):
        self.decay, self.momentum, self.groups = decay, momentum, {}
        c = model.config
        q, kv = (c[k] * c["head_dim"] for k in ("num_attention_heads", "num_key_value_heads"))
        for name, p in model.layers.named_parameters():
            if p.dim() < 2 or name.endswith("router"):
                continue
            if name.endswith("qkv"):
                cut = lambda t: [x[None] for x in t.split([q, kv, kv])]
            elif name.endswith("gate_up"):
                cut = lambda t: [t.view(-1, t.shape[-2] // 2, t.shape[-1])]
            else:
                cut = lambda t: [t.view(-1, *t.shape[-2:])]
            for i, x in enumerate(cut(p.data)):
                self.groups.setdefault(x.shape[1:], []).append((p, cut, i))
        self.buffers = {}

    @staticmethod
    def orthogonal(g, steps=5):
        """Newton-Schulz iteration towards the nearest (semi-)orthogonal matrix, batched."""
        x = g.bfloat16() if g.is_cuda else g
        tall = x.shape[-2] > x.shape[-1]
        x = x.mT if tall else x
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        for _ in range(steps):
            a = x @ x.mT
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        return (x.mT if tall else x).to(g.dtype)

    @torch.no_grad()
    def step(self, lr):
        for shape, members in self.groups.items():
            g = torch.cat([cut(p.grad)[i] for p, cut, i in members])
            if shape not in self.buffers:
                self.buffers[shape] = torch.zeros_like(g)
            b = self.buffers[shape].lerp_(g, 1 - self.momentum)
            u = self.orthogonal(g.lerp_(b, self.momentum)) * (-lr * 0.2 * max(shape) ** 0.5)
            views = [cut(p.data)[i] for p, cut, i in members]
            torch._foreach_mul_(views, 1 - lr * self.decay)
            torch._foreach_add_(views, list(u.split([v.shape[0] for v in views])))


@torch.no_grad()
def round_to_nvfp4(params):
    """Round in place; matrices of one shape together. -> the values before."""
    old = [p.detach().clone() for p in params]
    shapes = {}
    for p in params:
        shapes.setdefault(p.shape, []).append(p)
    for same in shapes.values():
        for p, x in zip(same, network.fake_nvfp4(torch.stack([p.data for p in same])).unbind()):
            p.data.copy_(x)
    return old


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("outdir")
    ap.add_argument("--tokenizer", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizer.json"),
                    help="made if it does not exist")
    ap.add_argument("--minutes", type=float, default=6.5, help="wall-clock budget, start-up included")
    ap.add_argument("--steps", type=int, default=10 ** 9, help="stop earlier")
    ap.add_argument("--batch", type=int, default=32, help="rows per step")
    ap.add_argument("--length", type=int, default=4096)
    ap.add_argument("--lr", type=float, default=4e-3)
    ap.add_argument("--balance", type=float, default=0.01, help="weight of the load-balancing loss")
    ap.add_argument("--qat", type=float, default=0.15, help="last part of the time with NVFP4 weights; 0: none")
    ap.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--tiny", action="store_true", help="a small model with short rows")
    a = ap.parse_args()
    begin = time.time()
    os.makedirs(a.outdir, exist_ok=True)
    cuda = torch.cuda.is_available()
    device, dtype = ("cuda", torch.bfloat16) if cuda else ("cpu", torch.float32)
    change = {}
    if a.tiny:
        a.batch, a.length, a.workers = 8, 512, 1
        change = dict(num_hidden_layers=6, hidden_size=128, intermediate_size=256, num_experts=8, num_experts_per_tok=2,
                      shared_expert_intermediate_size=64, num_attention_heads=4, num_key_value_heads=1)
    path = a.tokenizer
    if not os.path.exists(path):
        tokens.train_tokenizer(path)
    tok = Tokenizer.from_file(path)
    data = iter(DataLoader(Rows(path, a.seed, a.batch, a.length), batch_size=None, num_workers=a.workers, prefetch_factor=8))

    torch.manual_seed(a.seed)
    model = network.Flint(network.make_config(tok.get_vocab_size(), **change), tok.token_to_id("[gMASK]")).to(device)
    if cuda:
        model.compile()
    muon = Muon(model)
    mine = {id(p) for g in muon.groups.values() for p, _, _ in g}
    rest = [p for p in model.parameters() if id(p) not in mine]
    adam = torch.optim.AdamW(rest, lr=a.lr, betas=(0.9, 0.98), weight_decay=0.0, fused=cuda)
    log = open(os.path.join(a.outdir, "train.jsonl"), "w", encoding="utf-8")
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, {a.batch * a.length} tokens/step, start-up "
          f"{time.time() - begin:.1f} s", flush=True)

    warm, last, sums, count, mark = 60 if not a.tiny else 10, None, torch.zeros(3, device=device), 0, (time.time(), 0)
    step = rounding = 0
    while step < a.steps:
        progress = (time.time() - begin) / (60 * a.minutes)
        if progress >= 1:
            break
        lr = a.lr * min(1, (step + 1) / warm) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        ids, weight = next(data)
        ids, weight = ids.to(device, non_blocking=True).long(), weight.to(device, non_blocking=True)
        rounding = progress >= 1 - a.qat
        masters = round_to_nvfp4(model.quantised()) if rounding else None
        loss, own, balance = model.loss(ids, weight, cuda, dtype)
        (loss + a.balance * balance).backward()
        if masters:
            torch._foreach_copy_([p.data for p in model.quantised()], masters)
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for g in adam.param_groups:
            g["lr"] = lr
        adam.step()
        muon.step(lr)
        for p in model.parameters():
            p.grad = None
        sums += torch.stack([loss.detach(), own.detach(), balance.detach()])
        count, step = count + 1, step + 1
        if last is not None:
            last.item()  # stay at most one step ahead of the device, so that the clock means something
        last = loss.detach()
        if step % (10 if a.tiny else 50) == 0 or step in (1, 5, 20):
            mean = (sums / count).tolist()
            now = time.time()
            speed = (step - mark[1]) * a.batch * a.length / (now - mark[0])
            row = dict(step=step, progress=round(progress, 4), tokens=step * a.batch * a.length, loss=round(mean[0], 4),
                       answer_loss=round(mean[1], 4), balance=round(mean[2], 4), lr=round(lr, 6), tokens_per_s=round(speed),
                       nvfp4=bool(rounding))
            log.write(json.dumps(row) + "\n")
            log.flush()
            print(" ".join(f"{k}={v}" for k, v in row.items()), flush=True)
            sums.zero_()
            count, mark = 0, (now, step)
    if a.qat:
        round_to_nvfp4(model.quantised())
    network.save(model, a.outdir, path)
    memory = f", peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB" if cuda else ""
    print(f"{step} steps, {step * a.batch * a.length / 1e6:.0f} M tokens in {time.time() - begin:.0f} s{memory}", flush=True)
    for worker in multiprocessing.active_children():  # endless; do not wait for them
        worker.terminate()
    os._exit(0)


if __name__ == "__main__":
    main()
