# SPDX-License-Identifier: Apache-2.0
"""Scripts that run out of memory, each for a reason of its own, for
edit_client.py: how much memory there is, and which advice makes it fit."""
import dataclasses

HEAD = """
import os, sys, tempfile
import torch
from torch import nn
import torch.nn.functional as F
class Block(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
    def forward(self, x, scale=1):
        return x + scale * self.down(F.gelu(self.up(self.norm(x))))
class Net(nn.Module):
    def __init__(self, count=8, width=512):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(count))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x
def batch(rows=16384, width=512):
    return torch.randn(rows, width, device="cuda")
"""

# A loop around NET, which the script has made, with its optimizer.
LOOP = """
for step in range(3):
    net(batch()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
ADAM = "optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)\n"
SGD = "optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)\n"

GPT2 = """
from transformers import GPT2Config, GPT2LMHeadModel
def gpt2(layers=8):
    return GPT2LMHeadModel(GPT2Config(
        n_layer=layers, n_embd=256, n_head=4, vocab_size=2000,
        n_positions=256, bos_token_id=0, eos_token_id=0))
def ids(rows=32):
    return torch.randint(2000, (rows, 256), device="cuda")
"""

TRAINER = GPT2 + """
from transformers import Trainer, TrainingArguments
rows = [{{k: torch.randint(2000, (256,)) for k in ("input_ids", "labels")}}
        for _ in range(128)]
arguments = TrainingArguments(
    tempfile.mkdtemp(), max_steps=2, per_device_train_batch_size=32,
    report_to=[], save_strategy="no", {0}
    disable_tqdm=True,  # no bars
)
Trainer(gpt2(), arguments, train_dataset=rows).train()
"""

RANKS = """
import torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
"""

# What bitsandbytes keeps, for machines without it.
BITSANDBYTES = """
import torch
class AdamW8bit(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]["params"]:
            s, n = self.state[p], p.numel()
            for name in () if s else ("mean", "square"):
                if n < 4096:
                    s[name] = torch.zeros_like(p)
                    continue
                s[name] = torch.zeros_like(p, dtype=torch.uint8)
                s[name + "_scale"] = torch.zeros(-(-n // 256), device=p.device)
            p.add_(p.grad, alpha=-1e-3)
class optim:
    AdamW8bit = AdamW8bit
"""


@dataclasses.dataclass
class Script:
    name: str
    memory_mib: int
    by: str  # is in the text of the advice that makes it fit
    code: str
    error: float = 0.05  # of the predicted peak of used memory, as measured
    libraries: tuple = ()
    options: tuple = ()  # of the script
    memsim: tuple = ()  # of memsim run
    others: dict = dataclasses.field(default_factory=dict)  # files beside it

    def files(self):
        return {"job.py": HEAD + self.code, **self.others}


SCRIPTS = [
    Script("a_loop_over_blocks", 1500, "checkpointing of blocks",
           "net = Net().cuda()\n" + ADAM + LOOP),
    Script("blocks_with_options", 1500, "checkpointing of blocks", """
class Scaled(Net):
    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x,
                      scale=1 / (1 + i))
        return x
net = Scaled().cuda()
""" + SGD + LOOP),
    Script("a_sequence_of_blocks", 1500, "checkpointing of body", """
class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*(Block() for _ in range(8)))
    def forward(self, x):
        return self.body(x)
net = Tower().cuda()
""" + SGD + LOOP, error=0.15),
    Script("an_encoder_and_a_decoder", 1700, "checkpointing of", """
class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.ModuleList(Block() for _ in range(5))
        self.decoder = nn.ModuleList(Block() for _ in range(5))
    def forward(self, x):
        for block in self.encoder: x = block(x)
        for layer in self.decoder: x = layer(x) + x
        return x
net = Both().cuda()
""" + SGD + LOOP, error=0.1),
    Script("autocast_to_bf16", 2000, "checkpointing of blocks", """
net = Net().cuda()
""" + ADAM + """
for step in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = net(batch(32768)).float().square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""),
    Script("losses_added_up_before_backward", 1500, "checkpointing of blocks",
           "net = Net().cuda()\n" + SGD + """
for step in range(3):
    loss = 0
    for part in range(4):
        loss = loss + net(batch(4096)).square().mean() / 4
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""", error=0.15),
    Script("gpt2_of_transformers", 1500, "checkpointing of", GPT2 + """
net = gpt2().cuda()
""" + ADAM + """
for step in range(3):
    net(input_ids=ids(), labels=ids()).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""", libraries=("transformers",), error=0.2),
    Script("vit_of_timm", 1500, "checkpointing of blocks", """
import timm
net = timm.create_model("vit_tiny_patch16_224").cuda()
""" + ADAM + """
for step in range(2):
    net(torch.randn(96, 3, 224, 224, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
""", libraries=("timm",)),
    Script("trainer_of_transformers", 1500, "checkpointing of",
           TRAINER.format(""), libraries=("transformers", "accelerate"), error=0.2),
    Script("trainer_that_says_no", 1500, "checkpointing of",
           TRAINER.format("gradient_checkpointing=False,"),
           libraries=("transformers", "accelerate"), error=0.2),
    Script("accelerator", 1500, "checkpointing of blocks", """
from accelerate import Accelerator
accelerator = Accelerator()
net = Net()
""" + ADAM + """
net, optimizer = accelerator.prepare(net, optimizer)
for step in range(3):
    accelerator.backward(net(batch()).square().mean())
    optimizer.step()
    optimizer.zero_grad()
""", libraries=("accelerate",)),
    Script("lightning", 1500, "checkpointing of net.blocks", """
import lightning
class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, _):
        return self.net(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
rows = torch.utils.data.TensorDataset(torch.randn(49152, 512))
lightning.Trainer(
    max_epochs=1, accelerator="gpu", devices=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=tempfile.mkdtemp()).fit(
        Lit(), torch.utils.data.DataLoader(rows, batch_size=16384))
""", libraries=("lightning",), error=0.1),
    Script("states_of_the_optimizer", 2400, "8-bit optimizer", """
net = Net(24, 1024).cuda()
""" + ADAM + LOOP.replace("batch()", "batch(64, 1024)"),
           others={"bitsandbytes.py": BITSANDBYTES}),
    Script("temporaries_of_the_optimizer", 3700, "fused=True", """
net = Net(24, 1024).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3,
                              weight_decay=0.1)
""" + LOOP.replace("batch()", "batch(64, 1024)")),
    Script("gradients_set_to_zero", 2050, "set_to_none", """
net = Net(4, 512).cuda()
head = nn.Linear(512, 60000).cuda()
optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=1e-3)
for step in range(3):
    head(net(batch(4096))).mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
"""),
    Script("casts_that_autocast_keeps", 1200, "cache_enabled=False", """
net = Net(24, 1024).cuda().eval()
with torch.no_grad():
    for step in range(2):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            for part in range(2):
                net(batch(256, 1024))
"""),
    Script("evaluation_with_gradients", 1500, "torch.no_grad()", """
net = Net().cuda()
""" + SGD + """
def evaluate():
    net.eval()
    total = 0.0
    for part in range(3):
        total += net(batch(16384)).square().mean().item()
    net.train()
    return total
for step in range(2):
    net(batch(1024)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    evaluate()
""", error=0.15),
    Script("a_teacher_with_gradients", 1500, "torch.no_grad()", """
net, teacher = Net(2).cuda(), Net(12).cuda().eval()
""" + SGD + """
for step in range(2):
    x = batch(8192)
    aim = teacher(x)
    F.mse_loss(net(x), aim.detach()).backward()
    optimizer.step()
    optimizer.zero_grad()
""", error=0.15),
    Script("generation_with_gradients", 1500, "torch.no_grad()", GPT2 + """
net = gpt2().cuda().eval()
past, token = None, ids(64)[:, :128]
for step in range(24):
    out = net(input_ids=token, past_key_values=past, use_cache=True)
    past, token = out.past_key_values, out.logits[:, -1:].argmax(-1)
""", libraries=("transformers",), error=0.3),
    Script("a_list_of_predictions", 1500, "what lists keep", """
net = Net(2).cuda().eval()
predictions = []
with torch.no_grad():
    for step in range(40):
        predictions.append(net(batch()))
print(torch.cat([p.cpu() for p in predictions]).shape)
""", error=0.25),
    Script("losses_of_validation", 1500, "what lists keep", """
class Runner:
    def __init__(self):
        self.net, self.losses = Net(2).cuda(), []
    def validate(self):
        self.net.eval()
        for part in range(10):
            loss = self.net(batch(8192)).square().mean()
            self.losses.append(loss)
Runner().validate()
""", error=0.3),
    Script("a_cache_of_features", 1500, "what lists keep", """
net = Net(2).cuda()
""" + SGD + """
features = {}
for step in range(48):
    y = net(batch())
    y.square().mean().backward()
    features[step] = y
    optimizer.step()
    optimizer.zero_grad()
""", error=0.15),
    Script("fragments", 2100, "expandable segments", """
kept = []
for i in range(8):  # what is left of each segment is too little for the next
    size = 200 + 24 * i << 20
    torch.empty(size, dtype=torch.uint8, device="cuda")
    size = 110 + 13 * i << 20
    kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
"""),
    Script("a_batch_too_big", 1500, "largest batch that fits", """
net = Net().cuda()
""" + SGD + """
rows = 1024 * int(sys.argv[sys.argv.index("--batch") + 1])
for step in range(2):
    y = net(batch(rows))
    del y
""", options=("--batch", "40")),
    # PyTorch's cache takes what there is: 1.9 GiB of 1.9, 2.2 of 2.2, 2.7 of 2.7.
    Script("parameters_on_each_rank", 2500, "FSDP over 8 GPUs", RANKS + """
net = nn.parallel.DistributedDataParallel(Net(16, 1024).cuda())
""" + ADAM + LOOP.replace("batch()", "batch(64, 1024)"),
           memsim=("--nproc-per-node", "8"), error=1),
]
