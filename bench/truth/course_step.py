# SPDX-License-Identifier: Apache-2.0
"""One row of what students of Stanford's CS336 measured of its language model:
the peak of a forward pass or a training step, or what stands at the end."""
import argparse
import json

import torch

import course_models


class AdamW(torch.optim.Optimizer):
    """The course's: one tensor at a time, and not in place."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            state, grad = self.state[p], p.grad
            p.data -= 1e-3 * 0.01 * p.data
            # Held until the next parameter's have been made.
            old_m = state.get("m", torch.zeros_like(grad))
            old_v = state.get("v", torch.zeros_like(grad))
            m = 0.9 * old_m + 0.1 * grad
            v = 0.999 * old_v + 0.001 * torch.square(grad)
            p.data -= 1e-3 * m / (torch.sqrt(v) + 1e-8)
            state["m"], state["v"] = m, v


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(course_models.KINDS))
    parser.add_argument("mode", choices=sorted(MODES))
    parser.add_argument("size", choices=sorted(course_models.SIZES))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--amp", action="store_true", help="autocast, bf16")
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args()


class Job:
    def __init__(self, args):
        self.args = args
        self.model = course_models.make(args.kind, args.size, args.length)
        self.at_start = 0

    def ids(self, *shape):
        return torch.randint(0, 10000, (*shape, self.args.batch,
                                        self.args.length), device="cuda")

    def autocast(self):
        return torch.autocast("cuda", torch.bfloat16, enabled=self.args.amp)

    def forward(self, ids):
        with self.autocast():
            return self.model(ids)

    def loss(self, ids, labels):
        with self.autocast():
            logits = self.model(ids)
            return logits, self.model.kind.loss(logits, labels)

    def last_step(self):
        """The last step is what is measured."""
        torch.cuda.reset_peak_memory_stats()
        self.at_start = torch.cuda.memory_allocated()


def infer(job):
    """Forward passes in inference mode, each dropped."""
    before = job.args.steps - 1
    warm, last = job.ids(before), job.ids(1)
    job.model.eval()
    with torch.inference_mode():
        for i in range(before):
            job.forward(warm[i])
        job.last_step()
        job.forward(last[0])


def train(job):
    """Steps of training; the last one starts with nothing held."""
    optimizer = AdamW(job.model.parameters())
    before = job.args.steps - 1
    warm, last = job.ids(before), job.ids(1)
    warm_labels, last_labels = job.ids(before), job.ids(1)
    for i in range(before):
        logits, loss = job.loss(warm[i], warm_labels[i])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    logits = loss = None
    job.last_step()
    logits, loss = job.loss(last[0], last_labels[0])
    loss.backward()
    optimizer.step()


def keep(job):
    """Forward passes with their graph, the last one's held meanwhile."""
    ids, _ = job.ids(), job.ids()
    for _ in range(job.args.steps):
        logits = job.forward(ids)
        torch.cuda.synchronize()
    del logits


def both(job):
    """Forward and backward, without an optimizer."""
    ids, labels = job.ids(), job.ids()
    for _ in range(job.args.steps):
        logits, loss = job.loss(ids, labels)
        loss.backward()
        job.model.zero_grad()


MODES = {f.__name__: f for f in (infer, train, keep, both)}


def main():
    args = parse()
    torch.backends.cuda.matmul.allow_tf32 = args.kind == "own"
    job = Job(args)
    MODES[args.mode](job)
    print(json.dumps({
        "torch": torch.__version__,
        "start_allocated_bytes": job.at_start,
        "allocated_bytes": torch.cuda.memory_allocated(),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
    }))


if __name__ == "__main__":
    main()
