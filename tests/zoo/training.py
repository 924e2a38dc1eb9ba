# SPDX-License-Identifier: Apache-2.0
"""How a configuration of the zoo trains: precision, optimizer, options. Every
variant is an entry of a table; the name of the entry is what configs.csv has."""
import contextlib

import torch

PRECISIONS = {
    # name: (type of the parameters, type of autocast, GradScaler)
    "fp32": (None, None, False),
    "bf16": (None, torch.bfloat16, False),
    "fp16": (None, torch.float16, True),
    "pure-bf16": (torch.bfloat16, None, False),
}


def _torch(name, **values):
    return lambda parameters: getattr(torch.optim, name)(
        parameters, **{"lr": 1e-3, **values})


def _library(module, name, **values):
    def make(parameters):
        optim = __import__(module, fromlist=[name])
        return getattr(optim, name)(parameters, **{"lr": 1e-3, **values})
    return make


def _muon(parameters):
    """Muon for the matrices and AdamW for the rest, as its paper has it."""
    parameters = list(parameters)
    matrices = [p for p in parameters if p.dim() == 2]
    rest = [p for p in parameters if p.dim() != 2]
    return ([torch.optim.Muon(matrices, lr=1e-3)] if matrices else []) + \
        ([torch.optim.AdamW(rest)] if rest else [])


def _timm(name):
    def make(parameters):
        import timm.optim
        return timm.optim.create_optimizer_v2(list(parameters), opt=name,
                                              lr=1e-3)
    return make


def _transformers_adafactor(parameters):
    from transformers.optimization import Adafactor
    return Adafactor(parameters, relative_step=True, warmup_init=True, lr=None)


OPTIMIZERS = {
    "sgd": _torch("SGD"),
    "sgd-momentum": _torch("SGD", momentum=0.9, nesterov=True),
    "sgd-fused": _torch("SGD", momentum=0.9, fused=True),
    "sgd-loop": _torch("SGD", momentum=0.9, foreach=False),
    "adam": _torch("Adam"),
    "adam-fused": _torch("Adam", fused=True),
    "adam-amsgrad": _torch("Adam", amsgrad=True),
    "adam-loop": _torch("Adam", foreach=False),
    "adamw": _torch("AdamW"),
    "adamw-foreach": _torch("AdamW", foreach=True),
    "adamw-fused": _torch("AdamW", fused=True),
    "adamw-loop": _torch("AdamW", foreach=False),
    "adamw-capturable": _torch("AdamW", capturable=True),
    "adafactor": _torch("Adafactor"),
    "adafactor-transformers": _transformers_adafactor,
    "muon": _muon,
    "nadam": _torch("NAdam"),
    "radam": _torch("RAdam"),
    "adamax": _torch("Adamax"),
    "adagrad": _torch("Adagrad"),
    "adadelta": _torch("Adadelta"),
    "rmsprop": _torch("RMSprop", momentum=0.9, centered=True),
    "rprop": _torch("Rprop"),
    "asgd": _torch("ASGD"),
    "lbfgs": _torch("LBFGS", max_iter=4),
    "bnb-adamw8bit": _library("bitsandbytes.optim", "AdamW8bit"),
    "bnb-paged-adamw8bit": _library("bitsandbytes.optim", "PagedAdamW8bit"),
    "bnb-paged-adamw32bit": _library("bitsandbytes.optim", "PagedAdamW32bit"),
    "bnb-lion8bit": _library("bitsandbytes.optim", "Lion8bit"),
    "bnb-ademamix": _library("bitsandbytes.optim", "AdEMAMix8bit"),
    "bnb-sgd8bit": _library("bitsandbytes.optim", "SGD8bit", momentum=0.9),
    "ao-adamw8bit": _library("torchao.optim", "AdamW8bit"),
    "ao-adamw4bit": _library("torchao.optim", "AdamW4bit"),
    "ao-adamwfp8": _library("torchao.optim", "AdamWFp8"),
    "timm-lamb": _timm("lamb"),
    "timm-lion": _timm("lion"),
    "timm-adopt": _timm("adopt"),
    "timm-adan": _timm("adan"),
    "timm-lars": _timm("lars"),
    "timm-madgrad": _timm("madgrad"),
    "timm-mars": _timm("mars"),
    "timm-laprop": _timm("laprop"),
    "timm-novograd": _timm("novograd"),
    "timm-kron": _timm("kron"),
    "timm-adafactor-bv": _timm("adafactorbv"),
}


# Options that change the model before it trains. Each returns the model.

def _linear_names(model):
    return sorted({name.split(".")[-1] for name, module
                   in model.named_modules()
                   if (isinstance(module, torch.nn.Linear) or
                       type(module).__name__ == "Conv1D")
                   and "head" not in name})


def _lora(model):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(
        r=4, target_modules=_linear_names(model)))


def _dora(model):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(
        r=4, use_dora=True, target_modules=_linear_names(model)))


def _ia3(model):
    import peft
    names = _linear_names(model)
    return peft.get_peft_model(model, peft.IA3Config(
        target_modules=names, feedforward_modules=names[-1:]))


def _replace_linear(model, make):
    kept = set(getattr(model, "_keep_in_fp32_modules", None) or ())
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is torch.nn.Linear and "head" not in name and \
                    name not in kept:
                setattr(parent, name, make(child))
    return model


def _four_bit(kind):
    def change(model):
        import bitsandbytes as bnb

        def make(old):
            new = bnb.nn.Linear4bit(
                old.in_features, old.out_features, old.bias is not None,
                compute_dtype=torch.bfloat16, quant_type=kind,
                compress_statistics=True)
            new.load_state_dict({k: v.cpu() for k, v
                                 in old.state_dict().items()})
            return new.cuda()
        return _replace_linear(model, make)
    return change


def _qlora(model):
    import peft
    model = _four_bit("nf4")(model)
    return _lora(peft.prepare_model_for_kbit_training(
        model, use_gradient_checkpointing=False))


def _eight_bit(model):
    import bitsandbytes as bnb

    def make(old):
        new = bnb.nn.Linear8bitLt(old.in_features, old.out_features,
                                  old.bias is not None,
                                  has_fp16_weights=False, threshold=6.0)
        new.load_state_dict({k: v.cpu() for k, v
                             in old.state_dict().items()})
        return new.cuda()
    return _lora(_replace_linear(model, make))


def _torchao(name):
    def change(model):
        from torchao import quantization
        quantization.quantize_(model, getattr(quantization, name)())
        return model
    return change


def _float8(model):
    from torchao.float8 import convert_to_float8_training
    return convert_to_float8_training(
        model, module_filter_fn=lambda m, name: "head" not in name)


def _checkpoint(model):
    if hasattr(model, "gradient_checkpointing_enable"):
        model.gradient_checkpointing_enable()
    elif hasattr(model, "set_grad_checkpointing"):
        model.set_grad_checkpointing(True)
    elif hasattr(model, "enable_gradient_checkpointing"):
        model.enable_gradient_checkpointing()
    else:
        raise ValueError("the model has no activation checkpointing")
    return model


def _cpu_offload(model):
    import accelerate
    return accelerate.cpu_offload(model, torch.device("cuda"))


CHANGES = {
    "checkpoint": _checkpoint,
    "channels_last": lambda m: m.to(memory_format=torch.channels_last),
    "lora": _lora,
    "dora": _dora,
    "ia3": _ia3,
    "qlora": _qlora,
    "nf4": _four_bit("nf4"),
    "fp4": _four_bit("fp4"),
    "int8": _eight_bit,
    "float8": _float8,
    "ao-int8wo": _torchao("Int8WeightOnlyConfig"),
    "ao-int8da": _torchao("Int8DynamicActivationInt8WeightConfig"),
    "ao-int4wo": _torchao("Int4WeightOnlyConfig"),
    "ao-float8wo": _torchao("Float8WeightOnlyConfig"),
    "ao-float8da": _torchao("Float8DynamicActivationFloat8WeightConfig"),
    "compile": torch.compile,
    "compile-overhead": lambda m: torch.compile(m, mode="reduce-overhead"),
    "cpu_offload": _cpu_offload,
}
# Quantized for inference: what has them is not trained.
INFERENCE_ONLY = {"nf4", "fp4", "ao-int8wo", "ao-int8da", "ao-int4wo",
                  "ao-float8wo", "ao-float8da", "cpu_offload", "inference"}
# Optimizers and options that compile kernels, which takes minutes.
COMPILED = {"timm-kron", "ao-adamw8bit", "ao-adamw4bit", "ao-adamwfp8",
            "compile", "compile-overhead"}
# Options that the loop below knows.
IN_THE_LOOP = {"accumulate", "offload", "ema", "clip", "schedule", "inference"}


def compiles(config):
    return not COMPILED.isdisjoint(
        [config["optimizer"], *config["options"].split()])


def tensors(value):
    """The tensors of a model's output, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key in value:
            yield from tensors(value[key])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)
    elif hasattr(value, "__dict__"):
        yield from tensors(list(vars(value).values()))


def loss_of(output):
    """The model's own loss, or a mean of all that it returned."""
    loss = getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor) and loss.dim() == 0:
        return loss
    parts = [t.float().mean() for t in tensors(output)
             if t.is_floating_point() and t.requires_grad]
    if not parts:
        raise ValueError("the model returned nothing that can be trained")
    return sum(parts)


def shapes(output):
    """The shapes that the model returned, as one line."""
    return " ".join("x".join(map(str, t.shape)) or "()"
                    for t in tensors(output))


def _saved(options):
    if "offload" in options:
        return torch.autograd.graph.save_on_cpu(pin_memory=True)
    return contextlib.nullcontext()


class Trainer:
    """Two steps of a MODEL that INPUTS() feeds."""

    def __init__(self, model, inputs, config):
        self.options = set(config["options"].split())
        kind, self.autocast, scaled = PRECISIONS[config["precision"]]
        self.device = config.get("device", "cuda")
        self.inputs, self.kind = inputs, kind
        if kind is not None:
            model = model.to(kind)
        for name in config["options"].split():
            if name not in IN_THE_LOOP:
                model = CHANGES[name](model)
        self.model = model
        self.scaler = torch.amp.GradScaler(self.device, enabled=scaled)
        self.lbfgs = config["optimizer"] == "lbfgs"
        if not self.options & INFERENCE_ONLY:
            self.prepare(config["optimizer"])

    def prepare(self, optimizer):
        trained = [p for p in self.model.parameters() if p.requires_grad]
        made = OPTIMIZERS[optimizer](trained)
        self.optimizers = made if isinstance(made, list) else [made]
        self.ema = torch.optim.swa_utils.AveragedModel(
            self.model, multi_avg_fn=torch.optim.swa_utils.
            get_ema_multi_avg_fn(0.99)) if "ema" in self.options else None
        self.schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(o, 10)
                          for o in self.optimizers
                          if "schedule" in self.options]

    def forward(self):
        with torch.autocast(self.device, self.autocast,
                            enabled=self.autocast is not None):
            args, named = self.inputs()
            if self.kind is not None:
                args = [self.cast(a) for a in args]
                named = {k: self.cast(v) for k, v in named.items()}
            return self.model(*args, **named)

    def cast(self, value):
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            return value.to(self.kind)
        if isinstance(value, (list, tuple)):
            return type(value)(self.cast(v) for v in value)
        return value

    def backward(self, parts):
        with _saved(self.options):
            loss = loss_of(self.forward()) / parts
        self.scaler.scale(loss).backward()
        return loss.detach()

    def step(self):
        parts = 2 if "accumulate" in self.options else 1
        for _ in range(parts):
            loss = self.backward(parts)
        if "clip" in self.options:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            if self.lbfgs:
                optimizer.step(lambda: self.backward(1))
            else:
                self.scaler.step(optimizer)
        self.scaler.update()
        for part in self.optimizers:
            part.zero_grad()
        for schedule in self.schedules:
            schedule.step()
        if self.ema:
            self.ema.update_parameters(self.model)
        return loss.item()

    def run(self):
        """(losses, shapes of what the model infers)"""
        losses = []
        if not self.options & INFERENCE_ONLY:
            self.model.train()
            losses = [self.step() for _ in range(2)]
        self.model.eval()
        with torch.inference_mode():
            return losses, shapes(self.forward())
