# SPDX-License-Identifier: Apache-2.0
"""Some of the random programs of fuzz_values.py, and what one fill covers."""
import time

import torch
import value_operators
from fuzz_values import GPU, run, taken
from harness import ROOT, Skip, equal, main, test


@test
def known_elements_are_those_of_the_cpu():
    counts, wrong = run(150, 7)
    assert not wrong, "\n".join(wrong)
    assert counts["known"] > 0.85 * counts["operators"], counts
    assert counts["unknown"], counts


@test
def the_table_of_the_documentation_is_true():
    if not torch.__version__.startswith("2.11."):
        raise Skip("the table is of PyTorch 2.11")
    text = (ROOT / "doc/evidence/values.md").read_text(encoding="utf-8")
    table = text.split("<!-- table: value_operators -->")[1].split("<!--")[0]
    want = [line for line in table.splitlines() if line.startswith("| `") or
            line.startswith(("| comp", "| arith", "| conv", "| matrix"))]
    equal([f"| {name} | {' | '.join(cells)} |"
           for name, cells in value_operators.rows()], want)


def same(tensor, number):
    """TENSOR is known to be NUMBER all over."""
    have, known = taken(tensor)
    assert known.all(), f"{int(known.sum())} of {known.numel()} are known"
    equal([have.min().item(), have.max().item()], [number, number])


@test
def what_a_fill_covers_is_known_whatever_its_size():
    mask = torch.ones(8, 80000, dtype=torch.int64, device=GPU)
    equal(torch.ones(8, 80000, device=GPU).sum().item(), 640000.0)
    equal(mask.sum(-1).tolist(), [80000] * 8)
    equal(mask.cumsum(-1)[:, -1].tolist(), [80000] * 8)
    equal([mask.all().item(), mask.any().item(), (mask == 0).any().item()],
          [True, True, False])
    equal([mask.max().item(), mask.argmax().item(),
           mask.float().mean().item()], [1, 0, 1.0])
    equal([mask.nonzero().shape[0], mask[mask.bool()].numel()], [640000] * 2)
    same(torch.where(mask > 0, mask * 3, mask), 3)
    same(mask.half() + 0.5, 1.5)
    same(mask.clone(), 1)
    same(torch.cat([mask, mask]), 1)
    same(torch.stack([mask, mask], -1), 1)
    same(mask[:, None].expand(8, 3, 80000).reshape(-1), 1)
    same(torch.zeros(9000, 9000, device=GPU).masked_fill_(
        torch.zeros(9000, 1, dtype=torch.bool, device=GPU), 5), 0)
    same(torch.full((5000, 5000), 2.5, device=GPU), 2.5)
    equal(torch.full((5000, 5000), 2.5).sum().item(),
          torch.full((5000, 5000), 2.5, device=GPU).cpu().sum().item())


@test
def what_changes_a_part_of_a_fill_is_known_as_far_as_it_goes():
    x = torch.zeros(5000, 5000, device=GPU)
    x[3, 3] = 1
    equal(x[3, 2:5].tolist(), [0.0, 1.0, 0.0])
    x.add_(torch.randn(5000, 1, device=GPU))
    assert not taken(x)[1].any()


@test
def masks_of_samples_come_from_the_host():
    """Of integers more bytes are known than of numbers that may be random."""
    mask = torch.ones(8, 80000, dtype=torch.int64)
    mask[3, 70000:] = 0
    lengths = [80000] * 3 + [70000] + [80000] * 4
    equal(mask.to(GPU).sum(-1).tolist(), lengths)
    equal(mask.to(GPU).cumsum(-1)[:, -1].tolist(), lengths)
    equal(torch.ones(9, 1000000, dtype=torch.bool).to(GPU).all().item(), True)
    weight = torch.nn.Linear(1000, 1000).to(GPU).weight
    assert not taken(weight)[1].any()


def unknown(*shape):
    return torch.randn(*shape, 4, device=GPU) @ torch.randn(4, device=GPU)


@test
def filters_keep_and_few_numbers_are_equal():
    """As torchvision's detectors drop small boxes and match anchors: a real
    card kept 8,555 of 8,662, and found a pair for each box or two."""
    wide = (unknown(8662) >= 0.001) & (unknown(8662) >= 0.001)
    equal(torch.where(wide)[0].numel(), 8575)
    equal((unknown(1000) >= 0).sum().item(), 990)
    equal((unknown(1000) > 0).sum().item(), 500)
    equal((unknown(1000) > 0.7).sum().item(), 500)
    quality = unknown(2, 217413)
    best = quality.max(1).values
    equal(torch.where(quality == best[:, None])[0].numel(), 2)
    some = torch.cat([torch.linspace(-1, 1, 9, device=GPU), unknown(20)])
    equal((some >= 0).nonzero().flatten().tolist()[:5], [4, 5, 6, 7, 8])


@test
def a_small_vocabulary_is_no_router():
    """The best of 3 beams of 256 tokens: not the first ones, of which one ends
    a text."""
    tokens = unknown(1, 768).topk(6).indices % 256
    assert 0 not in tokens.tolist()[0], tokens


@test
def a_fill_takes_no_time_for_its_size():
    def seconds(rows):
        start = time.process_time()
        for _ in range(20):
            torch.zeros(rows, 1000, device=GPU).add_(1)
        return time.process_time() - start
    seconds(1000)
    assert seconds(8000000) < 20 * seconds(1000) + 0.1


if __name__ == "__main__":
    main(carried=True)
