# SPDX-License-Identifier: Apache-2.0
"""Public reports that a script of its own shows: what is loaded at first, what is
saved, what the second step or an evaluation needs. Each function returns the
script; judge(name) runs it under memsim.

  scratch  words for the script that a run without the error gets
  dies     words for the script that the report's job gets: it has to run out
  notes    words that memsim's notes or lines have for the first
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import report_list
from harness import MEMSIM

HEAD = """
import copy, sys, torch
from torch import nn
import torch.nn.functional as F
what = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(0)

def net(layers=8, width=1024):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)]).cuda()

def train(model, optimizer, steps=8, rows=64, width=1024):
    for _ in range(steps):
        model(torch.randn(rows, width, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def script(_address, _said, **_options):
    """What report_list.py reads."""
    return lambda function: function


def run(name, words, memory):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "script.py"
        path.write_text(HEAD + globals()[name]())
        report = pathlib.Path(folder) / "json"
        done = subprocess.run(
            [MEMSIM, "run", "--gpu", "t4", "--memory", memory, "--json", report,
             "--", sys.executable, path, *words], cwd=folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return json.loads(report.read_text()), done.stderr


def judge(name):
    """What memsim said, what happened, whether that is right, whether it said
    that the job fits without a word of what was reported."""
    options = report_list.OPTIONS[name]
    memory = options.get("memory", "512MiB")
    first, _ = run(name, options.get("scratch", []), memory)
    last, _ = run(name, options["dies"], memory)
    dies = last["verdict"] == "oom"
    if "notes" not in options: # the reported job itself is what is recorded
        return (f"{first['verdict']}; as reported: {last['verdict']}",
                "out of memory" if dies else "fits",
                dies and first["verdict"] != "oom", not dies)
    said = [note for note in first["notes"] if options["notes"] in note]
    return (f"{first['verdict']}; {said[0] if said else 'no note'}",
            "out of memory" if dies else "fits",
            bool(said) and dies and first["verdict"] != "oom", not said)


RESUME = """
model = net()
optimizer = torch.optim.Adam(model.parameters())
train(model, optimizer, 2)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()},
           "checkpoint.pt")
"""


@script("karpathy/nanoGPT/pull/236",
        "resuming is out of memory in the first forward, starting is not: the "
        "checkpoint stays on the GPU", dies=["resume"], memory="330MiB")
def nanogpt_resumes():
    return RESUME + """
del model, optimizer
model = net()
optimizer = torch.optim.Adam(model.parameters())
if what == "resume":
    checkpoint = torch.load("checkpoint.pt", map_location="cuda")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
train(model, optimizer)
"""


@script("huggingface/transformers/issues/22123",
        "training from scratch has less than 1 GB to spare; loading the "
        "optimizer's state on the GPU runs out", dies=["resume"],
        memory="330MiB")
def optimizer_state_on_the_gpu():
    return RESUME + """
if what == "resume":
    optimizer.load_state_dict(torch.load("checkpoint.pt",
                                         map_location="cuda")["optimizer"])
train(model, optimizer)
"""


@script("axolotl-ai-cloud/axolotl/issues/219",
        "the first run goes smoothly, resuming is out of memory: the optimizer "
        "is loaded on the GPU", dies=["resume"], memory="330MiB")
def axolotl_resumes():
    return RESUME + """
if what == "resume":
    state = torch.load("checkpoint.pt", map_location="cuda")
    optimizer.load_state_dict(state["optimizer"])
    del state
train(model, optimizer)
"""


@script("facebookresearch/mmf/issues/185",
        "after the last iteration restoring the best checkpoint runs out: "
        "load_state_dict copies the optimizer's state", dies=["restore"],
        memory="330MiB")
def mmf_restores():
    return RESUME + """
train(model, optimizer)
if what == "restore":
    best = torch.load("checkpoint.pt", map_location="cuda")
    optimizer.load_state_dict(copy.deepcopy(best["optimizer"]))
"""


@script("lucidrains/imagen-pytorch/issues/131",
        "resuming uses way more memory than a fresh training",
        dies=["resume"], memory="380MiB")
def imagen_resumes():
    return RESUME + """
ema = copy.deepcopy(model)
if what == "resume":
    loaded = torch.load("checkpoint.pt", map_location="cuda")
    loaded["ema"] = {k: v.clone() for k, v in loaded["model"].items()}
    optimizer.load_state_dict(loaded["optimizer"])
train(model, optimizer)
"""


@script("allenai/OLMo-core/issues/846",
        "the checkpoint before the first step runs out: it makes the "
        "optimizer's states", dies=["save"], memory="250MiB")
def olmo_saves_first():
    return """
model = net()
half = copy.deepcopy(model)
if what == "save":
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
else:
    with torch.no_grad():
        for _ in range(8):
            model(torch.randn(64, 1024, device="cuda"))
"""


SAVES = """
model = net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
train(model, optimizer)
if what == "save":
"""


@script("huggingface/transformers/issues/23386",
        "training goes well, saving the final checkpoint is out of memory: the "
        "full state dict in fp32 is gathered on the GPU", dies=["save"],
        notes="no checkpoint was saved", memory="260MiB")
def fsdp_full_state():
    return SAVES + """
    full = {k: torch.cat([v] * 4) for k, v in model.state_dict().items()}
    torch.save(full, "pytorch_model.bin")
"""


@script("meta-llama/llama-cookbook/issues/45",
        "training finishes, saving the model runs out", dies=["save"],
        notes="no checkpoint was saved", memory="260MiB")
def llama_recipes_saves():
    return SAVES + """
    shards = [{k: v.clone() for k, v in model.state_dict().items()}
              for _ in range(3)]
    torch.save(shards, "model.pt")
"""


@script("tatsu-lab/stanford_alpaca/issues/65",
        "out of memory after the last epoch: the state dict is cloned",
        dies=["save"], notes="no checkpoint was saved", memory="250MiB")
def alpaca_saves():
    return SAVES + """
    torch.save({k: v.clone() * 1 for k, v in model.state_dict().items()} | {
        "flat": torch.cat([p.data.flatten() for p in model.parameters()])},
        "model.bin")
"""


@script("lm-sys/FastChat/issues/256",
        "after the training: failed to clone() tensors of the state dict",
        dies=["save"], notes="no checkpoint was saved", memory="248MiB")
def fastchat_saves():
    return SAVES + """
    state = {k: v.clone() for k, v in model.state_dict().items()}
    torch.save({k: v.float().clone() for k, v in state.items()}, "model.bin")
"""


@script("Lightning-AI/pytorch-lightning/issues/20312",
        "out of memory after a full epoch: checkpointing collates all "
        "parameters on one GPU", dies=["save"], notes="no checkpoint was saved",
        memory="260MiB")
def lightning_checkpoint():
    return SAVES + """
    gathered = [torch.cat([p.data.flatten() for p in model.parameters()])
                for _ in range(4)]
    torch.save(gathered, "last.ckpt")
"""


@script("ByteDance-Seed/Bagel/issues/157",
        "state_dict() of the average in fsdp_save_ckpt runs out: it is "
        "unsharded", dies=["save"], notes="no checkpoint was saved",
        memory="280MiB")
def bagel_saves():
    return """
model = net()
ema = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
train(model, optimizer)
if what == "save":
    full = {k: v.repeat(8) for k, v in ema.state_dict().items() if v.dim() == 1}
    full |= {k: torch.cat([v] * 4) for k, v in ema.state_dict().items()}
    torch.save(full, "ema.pt")
"""


@script("pytorch/pytorch/issues/9439",
        "SGD trains with batches of 8, Adam is out of memory with them in its "
        "second iteration", dies=["adam"], memory="250MiB")
def adam_instead_of_sgd():
    return """
model = net()
make = torch.optim.Adam if what == "adam" else torch.optim.SGD
train(model, make(model.parameters(), lr=1e-3))
"""


VALIDATES = """
from torch.utils.data import DataLoader, TensorDataset
data = [DataLoader(TensorDataset(torch.randn(count, 1024)), batch_size=rows)
        for count, rows in ((512, 64), (32768, VALIDATION))]
model = net()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, in data[0]:
    model(x.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@script("hszhao/semseg/issues/60",
        "out of memory in the validation after an epoch: no torch.no_grad()",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def semseg_validates():
    return VALIDATES.replace("VALIDATION", "8192") + """
if what == "validate":
    for x, in data[1]:
        output = model(x.cuda())
"""


@script("facebookarchive/loop/issues/57",
        "a sharp jump of memory in the validation, then out of memory",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def loop_validates():
    return VALIDATES.replace("VALIDATION", "1024") + """
if what == "validate":
    total = 0
    for x, in data[1]:
        total += model(x.cuda()).square().mean()
"""


@script("leftthomas/SRGAN/issues/43",
        "the first epoch works, memory explodes after 19% of the validation",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def srgan_validates():
    return VALIDATES.replace("VALIDATION", "512") + """
if what == "validate":
    results = {"mse": 0}
    for x, in data[1]:
        results["mse"] += ((model(x.cuda()) - 1) ** 2).data.mean() \\
            + model(x.cuda()).mean()
"""


@script("dmlc/dgl/issues/745",
        "the validation is out of memory, training is fine: gradients are on",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def dgl_validates():
    return VALIDATES.replace("VALIDATION", "16384") + """
if what == "validate":
    for x, in data[1]:
        logits = model(x.cuda())
"""


@script("facebookresearch/fairchem/pull/199",
        "validation needs more memory than training", dies=["validate"],
        notes="was built and not used", memory="300MiB")
def fairchem_validates():
    return VALIDATES.replace("VALIDATION", "4096") + """
if what == "validate":
    for x, in data[1]:
        positions = x.cuda().requires_grad_()
        forces = -torch.autograd.grad(model(positions).sum(), positions,
                                      create_graph=True)[0]
"""


@script("gentaiscool/end2end-asr-pytorch/pull/41",
        "out of memory in the validation: gradients are stored",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def asr_validates():
    return VALIDATES.replace("VALIDATION", "2048") + """
if what == "validate":
    predictions = []
    for x, in data[1]:
        predictions.append(model(x.cuda()))
"""


@script("taconite/arah-release/issues/11",
        "out of memory after 15% of the validation of a resumed run",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def arah_validates():
    return VALIDATES.replace("VALIDATION", "256") + """
if what == "validate":
    images = []
    with torch.no_grad():
        for x, in data[1]:
            images.append(model(x.cuda()))
"""


@script("skorch-dev/skorch/issues/218",
        "memory rises with each validation batch until nothing is left",
        dies=["validate"], notes="was built and not used", memory="300MiB")
def skorch_validates():
    return VALIDATES.replace("VALIDATION", "512") + """
if what == "validate":
    history = []
    for x, in data[1]:
        history.append({"valid_loss": model(x.cuda()).square().mean()})
"""
