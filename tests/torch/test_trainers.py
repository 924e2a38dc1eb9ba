# SPDX-License-Identifier: Apache-2.0
"""Attribution of models that a library trains. MEMSIM_BUILD says where the
memsim is that runs the jobs. # Libraries: trainers"""
import importlib.util
import os
import tempfile

from harness import Skip, equal, main, test
from jobs import check_sums, owners, phases, rounded, run

LIGHTNING = """
import lightning
class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, _):
        return F.mse_loss(self.net(batch[0]), batch[0])
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
rows = torch.utils.data.TensorDataset(torch.randn(2048, 256))
lightning.Trainer(
    max_epochs=1, accelerator="gpu", devices=1, logger=False,
    enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, default_root_dir=FOLDER).fit(
        Lit(), torch.utils.data.DataLoader(rows, batch_size=512))
"""

TRAINER = """
from transformers import (GPT2Config, GPT2LMHeadModel, Trainer,
                          TrainingArguments)
model = GPT2LMHeadModel(GPT2Config(
    n_layer=3, n_embd=256, n_head=4, vocab_size=5000, n_positions=256,
    bos_token_id=0, eos_token_id=0))
rows = [{k: torch.randint(5000, (256,)) for k in ("input_ids", "labels")}
        for _ in range(32)]
Trainer(model, TrainingArguments(
    FOLDER, max_steps=3, per_device_train_batch_size=4, report_to=[],
    gradient_accumulation_steps=2, save_strategy="no", bf16=True,
    disable_tqdm=True), train_dataset=rows).train()
"""
FOLDER = "import tempfile; FOLDER = tempfile.mkdtemp()"


def trained(code, *libraries):
    """The card of CODE's run, whose peaks are those without attribution."""
    for name in libraries:
        if not importlib.util.find_spec(name):
            raise Skip(f"there is no {name}")
    cards = [run(FOLDER + code, modules=modules)[0]["ranks"][0]["devices"][0]
             for modules in (True, False)]
    for key in ("peak_allocated_bytes", "peak_reserved_bytes",
                "peak_used_bytes"):
        equal(cards[0][key], cards[1][key])
    check_sums(cards[0])
    other = cards[0]["categories_at_peak"].get("other", 0)
    assert other < 0.02 * cards[0]["peak_allocated_bytes"], other
    return cards[0]


@test
def lightning():
    card = trained(LIGHTNING, "lightning")
    own = owners(card)
    size = rounded(1024 * 256) + rounded(1024)
    names = [name for name in own if name.endswith("blocks.1.up")]
    equal(len(names), 1)
    equal(own[names[0]]["parameter"], size)
    equal(own[names[0]]["optimizer"], 2 * size)
    end = phases(card, 3)["backward"]["end_categories"]
    assert 0 <= end["optimizer"] - 2 * end["parameter"] <= 4096, end


@test
def the_trainer_of_transformers():
    card = trained(TRAINER, "transformers", "accelerate")
    own = owners(card)
    size = rounded(256 * 1024) + rounded(1024)
    equal(own["transformer.h.1.mlp.c_fc"]["parameter"], size)
    equal(own["transformer.h.1.mlp.c_fc"]["optimizer"],
          2 * size + 2 * rounded(1))  # the fused AdamW counts on the card
    told = [p["phase"] for p in card["phases"] if p["step"] == 1]
    equal([p for p in told if p in ("forward", "backward")],
          ["forward", "backward"] * 2)  # two batches make a step


PREPARED = """
import lightning
class Lit(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def training_step(self, batch, _):
        return F.mse_loss(self.net(batch[0]), batch[0])
    def validation_step(self, batch, _):
        self.net(batch[0])
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())
def loader(rows, size):
    rows = torch.utils.data.TensorDataset(torch.randn(rows, 256))
    return torch.utils.data.DataLoader(rows, batch_size=size)
lightning.Trainer(
    max_steps=3, accelerator="gpu", devices=1, logger=False, **OPTIONS,
    enable_progress_bar=False, enable_model_summary=False,
    default_root_dir=FOLDER).fit(Lit(), loader(4096, 512), loader(8192, 8192))
"""

# Classes of the user's are recipes if they have this base (torchtune's
# recipe_interfaces.py).
INTERFACE = """
from typing import Protocol
class FTRecipeInterface(Protocol):
    def train(self, **kwargs) -> None:
        ...
"""

RECIPE = """
import sys
sys.path.insert(0, STAND_IN)
from torchtune.recipe_interfaces import FTRecipeInterface
class Recipe(FTRecipeInterface):
    def __init__(self):
        self.model = Net().cuda()
        self._val_dataloader = [torch.randn(8192, 256, device="cuda")]
    def train(self):
        train(self.model, adam(self.model))
        if EVALUATES:
            self.validate()
    def validate(self):
        with torch.no_grad():
            for x in self._val_dataloader:
                self.model(x)
Recipe().train()
"""


def said(result, *words):
    return [any(word in note for note in result["notes"]) for word in words]


@test
def what_lightning_did_not_do_is_noted():
    if not importlib.util.find_spec("lightning"):
        raise Skip("there is no lightning")
    words = ("Lightning's Trainer has data for an evaluation",
             "Lightning's Trainer saves checkpoints")
    for options, missing in (
            ({"num_sanity_val_steps": 0, "callbacks": "SAVES"}, [True, True]),
            ({"enable_checkpointing": False}, [False, False])):
        told = repr(options).replace(
            "'SAVES'", "[lightning.pytorch.callbacks.ModelCheckpoint("
            "every_n_train_steps=100)]")
        result, _ = run(f"{FOLDER}; import lightning.pytorch.callbacks; "
                        f"OPTIONS = {told}" + PREPARED)
        equal(said(result, *words), missing)
    peak = result["ranks"][0]["devices"][0]["peak"]
    equal(peak["episode"], "evaluation")


@test
def what_a_recipe_of_torchtune_did_not_do_is_noted():
    words = ("the torchtune recipe has data for an evaluation",
             "the torchtune recipe saves checkpoints")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "torchtune"))
        with open(f"{folder}/torchtune/recipe_interfaces.py", "w") as file:
            file.write(INTERFACE)
        for evaluates in False, True:
            result, _ = run(f"EVALUATES = {evaluates}; STAND_IN = {folder!r}"
                            + RECIPE)
            equal(said(result, *words), [not evaluates, True])


if __name__ == "__main__":
    main()
