# SPDX-License-Identifier: Apache-2.0
"""A model of 7 billion parameters is made on the device and trained one step,
with a few GiB of host memory: what is on the card takes none here."""
import resource

import torch
import transformers
from harness import equal, main, test

HOST_LIMIT_KIB = 3 << 20


@test
def seven_billion_parameters_take_little_host_memory():
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig())
    count = sum(p.numel() for p in model.parameters())
    equal(count, 6738415616)
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(0, model.config.vocab_size, (1, 512),
                           device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    assert torch.cuda.max_memory_allocated() > 8 * count
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"host memory: {host / 2**20:.2f} GiB")
    assert host < HOST_LIMIT_KIB, host


if __name__ == "__main__":
    main()
