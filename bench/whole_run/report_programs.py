# SPDX-License-Identifier: Apache-2.0
"""Public reports of memory that runs out, each rebuilt in a few lines: what the
report says, not the program's own source. A program is a generator that yields
after each step. bench/whole_run/reports runs them; as a program it takes what
tests/torch/growth_programs.py does.

The kinds:

  grows       memory grows from step to step until it runs out
  evaluation  it grows from batch to batch of an evaluation between two steps
  length      a longer or larger sample than those before needs more; n: its
              size, as doc/whole-run.md counts it (default: 2,048 tokens)
"""
import copy
import functools
import os
import pathlib
import sys

import torch
from torch import nn
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]
                       / "tests/torch"))
import growth_programs as programs  # noqa: E402
from growth_programs import BATCH, WIDTH, Training, batch, net  # noqa: E402

TRUTH = os.environ.get("REPORT_TRUTH", "")  # what happens is to be found out


def program(_address, _said, **_options):
    """What report_list.py reads."""
    def add(function):
        programs.LEAKS[function.__name__] = function
        return function
    return add


grows = evaluation = length = program


# --- losses and their graphs -------------------------------------------------

class Meter:
    """The AverageMeter of many training scripts."""

    def __init__(self):
        self.sum, self.count = 0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n


def train_with(keep):
    """A training whose loss KEEP gets before it is gone."""
    t = Training()
    while True:
        x, y = batch()
        loss = F.cross_entropy(t.model(x), y)
        t.optimizer.zero_grad()
        loss.backward()
        t.optimizer.step()
        keep(loss)
        yield


@grows("microsoft/SpareNet/issues/12",
       "slow, steady increase, out of memory after 2 epochs: the meters of the "
       "losses are updated with tensors that have a graph")
def sparenet_meters():
    meters = [Meter(), Meter()]
    t = Training()
    while True:
        x, y = batch()
        out = t.model(x)
        coarse, fine = out.square().mean(), F.cross_entropy(out, y)
        t.optimizer.zero_grad()
        (coarse + fine).backward()
        t.optimizer.step()
        meters[0].update(coarse)
        meters[1].update(fine)
        yield


@grows("google/brax/pull/152", "total_loss += loss keeps the history")
def brax_total_loss():
    total = [0]
    yield from train_with(lambda loss: total.__setitem__(0, total[0] + loss))


@grows("pytorch/pytorch/issues/1840",
       "memory grows until it runs out: sum_log_likelihood += "
       "neg_log_likelihood of a BiLSTM tagger")
def likelihood_of_a_tagger():
    embed = nn.Embedding(1000, 128).cuda()
    lstm = nn.LSTM(128, 128, bidirectional=True).cuda()
    head = nn.Linear(256, 20).cuda()
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(),
                                 *head.parameters()], 0.01)
    total = 0
    while True:
        words = torch.randint(0, 1000, (64, 32), device="cuda")
        tags = torch.randint(0, 20, (64 * 32,), device="cuda")
        loss = F.cross_entropy(head(lstm(embed(words))[0]).view(-1, 20), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
        yield


@grows("rballester/tntorch/pull/19",
       "each loss in loss_history is a full graph; 1,000 iterations fill 12 GB")
def tntorch_loss_history():
    history = []
    yield from train_with(history.append)


@grows("BatsResearch/labelmodels/issues/4",
       "running_loss is the sum of tensors that are not detached; the GPU runs "
       "out of memory with a large training set")
def labelmodels_running_loss():
    model = nn.Linear(WIDTH, WIDTH).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    running_loss = 0.0
    while True:
        votes = torch.randn(512, WIDTH, device="cuda")
        optimizer.zero_grad()
        loss = torch.mean(-1 * torch.logsumexp(model(votes), 1))
        loss.backward()
        optimizer.step()
        running_loss += loss
        yield


@grows("ray-project/ray/pull/40940",
       "loss_sum += loss in a fine-tuning loop keeps each iteration's loss")
def ray_loss_sum():
    model = nn.Sequential(nn.Embedding(1000, 256), nn.Linear(256, 256),
                          nn.GELU(), nn.Linear(256, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    loss_sum = torch.tensor(0.0, device="cuda")
    while True:
        ids = torch.randint(0, 1000, (4, 128), device="cuda")
        loss = F.cross_entropy(model(ids).view(-1, 1000), ids.view(-1))
        loss_sum = loss_sum + loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


@grows("huggingface/transformers/pull/6999",
       "tr_loss += loss in place: the tensor gets a history; 20,000 steps fill "
       "12 GB")
def trainer_tr_loss():
    tr_loss = torch.tensor(0.0, device="cuda")
    t = Training(torch.optim.AdamW)
    while True:
        loss = t.step(256)
        tr_loss += loss
        yield


@grows("TRI-ML/packnet-sfm/pull/51",
       "the outputs of training steps are collected with their loss's graph")
def packnet_outputs():
    outputs = []
    yield from train_with(lambda loss: outputs.append(
        {"loss": loss, "metrics": {"abs_rel": loss.detach()}}))


@grows("jokester-zzz/SSA-SC/issues/2",
       "loss[key] instead of loss[key].item() makes the memory rise")
def ssa_sc_losses():
    track = {"total": 0, "semantic_1_1": 0, "semantic_1_2": 0}

    def keep(loss):
        for key in track:
            track[key] = track[key] + loss
    yield from train_with(keep)


@grows("MultimediaTechLab/YOLO/pull/83",
       "total_loss[name] += loss_val of a dict of tensors leaks with each batch")
def yolo_total_loss():
    total = {"BoxLoss": torch.tensor(0.0, device="cuda"),
             "DFLoss": torch.tensor(0.0, device="cuda")}

    model = nn.Sequential(nn.Conv2d(3, 16, 3, 2), nn.SiLU(),
                          nn.Conv2d(16, 32, 3, 2)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    while True:
        out = model(torch.randn(4, 3, 128, 128, device="cuda"))
        parts = {"BoxLoss": out.abs().mean(), "DFLoss": out.square().mean()}
        optimizer.zero_grad()
        sum(parts.values()).backward()
        optimizer.step()
        for name, value in parts.items():
            total[name] += value
        yield


@grows("JIA-Lab-research/DecoupleNet/issues/3",
       "losses are recorded with += and without .item(): out of memory after "
       "some iterations of one GPU")
def decouplenet_losses():
    model = nn.Conv2d(3, 32, 3, padding=1).cuda()
    head = nn.Conv2d(32, 19, 1).cuda()
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], 0.01)
    recorded = {"main": 0, "aux": 0}
    while True:
        x = torch.randn(2, 3, 96, 96, device="cuda")
        y = torch.randint(0, 19, (2, 96, 96), device="cuda")
        main = F.cross_entropy(head(torch.relu(model(x))), y)
        aux = main * 0.4
        optimizer.zero_grad()
        (main + aux).backward()
        optimizer.step()
        recorded["main"] += main
        recorded["aux"] += aux
        yield


@grows("OpenGVLab/OmniQuant/pull/43",
       "15 GB rise to 20 GB in an epoch of calibration: the loss is kept in a "
       "list with its graph")
def omniquant_loss_list():
    layer = nn.Linear(WIDTH, WIDTH).cuda().requires_grad_(False)
    scale = nn.Parameter(torch.ones(WIDTH, 1, device="cuda"))
    optimizer = torch.optim.AdamW([scale])
    loss_list = []
    while True:
        x = torch.randn(256, WIDTH, device="cuda")
        out = layer(x)
        quantized = F.linear(x, torch.round(layer.weight / scale) * scale)
        loss = F.mse_loss(quantized, out)
        loss_list.append(loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield


@grows("pai4451/ML2021/issues/2",
       "train_loss += output.loss of a fine-tuned BERT stores the graph")
def ml2021_train_loss():
    model = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    train_loss = 0
    while True:
        loss = model(torch.randn(8, 64, 128, device="cuda")).square().mean()
        train_loss += loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


@grows("horovod/horovod/pull/641",
       "the loss that is averaged over the ranks has its graph; out of memory")
def horovod_metric():
    metric = torch.tensor(0.0, device="cuda")
    t = Training(torch.optim.SGD)
    while True:
        loss = t.step(512)
        metric = metric + loss.clone() / 4  # stands for the all-reduce
        yield


@grows("pfnet/pytorch-pfn-extras/pull/49",
       "the reporter clones values and retains their graphs")
def reporter_clones():
    observation = []
    yield from train_with(lambda loss: observation.append(
        {"train/loss": loss.clone()}))


@grows("sktime/pytorch-forecasting/pull/1924",
       "logs with graphs are appended to training_step_outputs for a whole epoch")
def forecasting_step_outputs():
    model = nn.LSTM(16, 64, batch_first=True).cuda()
    head = nn.Linear(64, 7).cuda()
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    training_step_outputs = []
    while True:
        prediction = head(model(torch.randn(64, 30, 16, device="cuda"))[0])
        loss = prediction.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        training_step_outputs.append({"loss": loss, "prediction": prediction})
        yield


@grows("Lightning-AI/pytorch-lightning/issues/4556",
       "self.log(on_epoch=True) stores each batch's loss on the GPU for the "
       "epoch: a slow leak of small tensors")
def lightning_epoch_output():
    epoch_output = []
    yield from train_with(lambda loss: epoch_output.append(
        [{"extra": {}, "minimize": loss.detach().clone()}]))


@grows("Lightning-AI/pytorch-lightning/issues/1510",
       "the number of tensors rises linearly in the first epoch, on the GPU and "
       "the CPU")
def lightning_first_epoch():
    outputs = []
    t = Training()
    while True:
        x, y = batch(256)
        out = t.model(x)
        loss = F.cross_entropy(out, y)
        t.optimizer.zero_grad()
        loss.backward()
        t.optimizer.step()
        outputs.append({"loss": loss, "log": {"train_loss": loss},
                        "progress_bar": {"accuracy": out.argmax(1)}})
        yield


@grows("IBM/mi-prometheus/issues/111",
       "one more tensor without elements in memory with each loss; out of "
       "memory eventually")
def prometheus_statistics():
    statistics = []
    yield from train_with(lambda loss: statistics.append(loss.detach().clone()))


@grows("facebookresearch/mmf/pull/846",
       "the first report of the loop is not detached while new ones are added")
def mmf_reports():
    t, combined = Training(), {}
    while True:
        x, y = batch(256)
        scores = t.model(x)
        loss = F.cross_entropy(scores, y)
        t.optimizer.zero_grad()
        loss.backward()
        t.optimizer.step()
        for key, value in {"losses": loss, "metrics": scores.mean()}.items():
            combined[key] = combined[key] + value if key in combined else value
        yield


@grows("rabbityl/lepard/issues/12",
       "workers are killed after a while: AverageMeter.update() adds tensors "
       "that are not detached")
def lepard_meters():
    meter = Meter()
    yield from train_with(lambda loss: meter.update(loss, BATCH))


@grows("wandb/wandb/issues/354",
       "logging tensors instead of numbers keeps 40 GB in less than an hour")
def wandb_history():
    history = []
    yield from train_with(lambda loss: history.append({"loss": loss}))


# --- recurrent states and retained graphs ------------------------------------

@grows("pytorch/pytorch/issues/1887",
       "output, hidden = encoder(hidden, hidden) in an endless loop: memory "
       "grows until it runs out")
def gru_of_its_hidden_state():
    encoder = nn.GRU(100, 100).cuda()
    hidden = torch.randn(1, 64, 100, device="cuda")
    while True:
        output, hidden = encoder(hidden, hidden)
        yield


@grows("pytorch/pytorch/issues/2198",
       "out, hidden = rnn(data, hidden) 10,000 times without detach()")
def lstm_history():
    rnn = nn.LSTM(256, 256).cuda()
    hidden = None
    while True:
        out, hidden = rnn(torch.rand(4, 16, 256, device="cuda"), hidden)
        yield


@grows("sgadgil6/cnslab_fmri/issues/4",
       "the module keeps its hidden state; with retain_graph=True memory runs "
       "out")
def fmri_lstm():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.linear = nn.LSTM(22, 128), nn.Linear(128, 1)
            self.hidden = (torch.randn(1, 64, 128, device="cuda"),
                           torch.randn(1, 64, 128, device="cuda"))

        def forward(self, x):
            out, self.hidden = self.lstm(x, self.hidden)
            return self.linear(out[-1])
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    while True:
        loss = model(torch.randn(50, 64, 22, device="cuda")).square().mean()
        optimizer.zero_grad()
        gradients = torch.autograd.grad(loss, list(model.parameters()),
                                        retain_graph=True)
        with torch.no_grad():
            for p, g in zip(model.parameters(), gradients):
                p.grad = g
        del loss, gradients
        # the report's optimizer changes weights in place, which 2.x refuses
        # to go back through; the graph is kept all the same
        yield


@grows("pytorch/pytorch/issues/4661",
       "gradients of an embedding, taken by a hook with create_graph=True, leak",
       marked=True)
def embedding_gradients():
    embed = nn.Embedding(1000, 256).cuda()
    head = nn.Linear(256, 2).cuda()
    embedding_gradient = []
    while True:
        ids = torch.randint(0, 1000, (16, 64), device="cuda")
        vectors = embed(ids)
        loss = head(torch.tanh(vectors).mean(1)).square().mean()
        gradient, = torch.autograd.grad(loss, vectors, create_graph=True)
        embedding_gradient.append(gradient)
        yield


@grows("akanimax/pro_gan_pytorch/pull/12",
       "backward(create_graph=True) of a gradient penalty: usage increases with "
       "each batch")
def gan_penalty():
    critic = net()
    merged_inputs = []
    optimizer = torch.optim.Adam(critic.parameters())
    while True:
        merged = batch(256)[0].requires_grad_()
        out = critic(merged)
        out.sum().backward(create_graph=True)
        merged_inputs.append(merged)
        penalty = (merged.grad.norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        penalty.backward()
        optimizer.step()
        yield


@grows("jettify/pytorch-optimizer/issues/306",
       "with weight_decay > 0 the memory grows with each epoch: the state of the "
       "optimizer has a graph of the parameters",
       marked=True)
def apollo_weight_decay():
    model = nn.Linear(WIDTH, WIDTH).cuda()
    state = [torch.zeros_like(p) for p in model.parameters()]
    while True:
        model(batch(256)[0]).square().mean().backward()
        for i, p in enumerate(model.parameters()):
            gradient = p.grad.add(p * 0, alpha=1e-4)  # has a graph
            state[i] = state[i] * 0.9 + gradient * 0.1
            p.data.add_(state[i].data, alpha=-1e-3)
            p.grad = None
        yield


# --- tensors that are kept ---------------------------------------------------

class ListMetric:
    """A metric whose states are lists, as torchmetrics has them."""

    def __init__(self, *names):
        self.states = {name: [] for name in names}

    def update(self, **values):
        for name, value in values.items():
            self.states[name].append(value.detach())


@grows("Lightning-AI/pytorch-lightning/issues/4098",
       "a metric with a list state as loss: out of memory in less than an epoch")
def metric_as_loss():
    t, intersections = Training(), []
    while True:
        x, y = batch(256)
        out = t.model(x).softmax(1)
        intersections.append((out * F.one_hot(y, 10)).sum(1))
        loss = 1 - torch.cat(intersections[-1:]).mean()
        t.optimizer.zero_grad()
        loss.backward()
        t.optimizer.step()
        yield


@grows("Lightning-AI/torchmetrics/issues/3294",
       "AveragePrecision grows with each call, Accuracy and Precision do not")
def average_precision():
    metric = ListMetric("preds", "target")
    t = Training()
    while True:
        t.step(256)
        metric.update(preds=torch.rand(2056, 16, device="cuda"),
                      target=torch.randint(0, 2, (2056, 16), device="cuda"))
        yield


@grows("Lightning-AI/torchmetrics/issues/2481",
       "RetrievalMRR in a training step: runaway memory of indexes, preds and "
       "targets")
def retrieval_metric():
    metric, t = ListMetric("indexes", "preds", "target"), Training()
    while True:
        t.step(256)
        logits = torch.randn(128, 128, device="cuda")
        metric.update(indexes=torch.arange(128 * 128, device="cuda"),
                      preds=logits.flatten(), target=logits.flatten() > 0)
        yield


@grows("Lightning-AI/torchmetrics/issues/1094",
       "SSIM on the GPU stores all images; allocation increases with each batch")
def ssim_images():
    preds, target = [], []
    model = nn.Conv2d(3, 3, 3, padding=1).cuda()
    while True:
        with torch.no_grad():
            image = torch.rand(8, 3, 64, 64, device="cuda")
            preds.append(model(image))
            target.append(image)
        yield


@grows("Lightning-AI/torchmetrics/issues/1949",
       "one metric object for each evaluation, never reset: states stay on the "
       "GPU")
def metric_instances():
    kept, t = [], Training()
    while True:
        t.step(256)
        metric = ListMetric("preds", "target")
        metric.update(preds=torch.rand(4096, device="cuda"),
                      target=torch.randint(0, 2, (4096,), device="cuda"))
        kept.append(metric)
        yield


@grows("NRCan/geo-deep-learning/issues/582",
       "metrics that are not reset after validation: a slow leak over epochs")
def metrics_not_reset():
    t, metric = Training(), ListMetric("iou")
    for step in range(1 << 30):
        t.step(256)
        if step % 2:
            with torch.no_grad():
                out = t.model(batch(256)[0])
                metric.update(iou=out.softmax(1))
        yield


@grows("meta-pytorch/opacus/issues/176",
       "hooks save activations also without gradients; they are not deleted")
def opacus_hooks():
    model, activations = net(), {}
    for layer in model:
        layer.register_forward_hook(
            lambda m, args, out: activations.setdefault(m, []).append(
                args[0].detach()))
    while True:
        with torch.no_grad():
            model(batch(256)[0])
        yield


@grows("Mikubill/sketch2img/issues/7",
       "the hooked UNet records features at each step; small GPUs run out")
def sketch_features():
    features = []
    unet = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.SiLU(),
                         nn.Conv2d(32, 4, 3, padding=1)).cuda()
    unet[1].register_forward_hook(lambda m, args, out: features.append(out))
    latent = torch.randn(2, 4, 64, 64, device="cuda")
    while True:
        with torch.no_grad():
            latent = latent - 0.1 * unet(latent)
        yield


@grows("utkuozbulak/pytorch-cnn-visualizations/issues/53",
       "guided backpropagation of the frames of a video: out of memory soon")
def guided_backprop():
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(),
                          nn.Conv2d(32, 32, 3)).cuda()
    outputs = []
    model[1].register_forward_hook(lambda m, args, out: outputs.append(out))
    while True:
        image = torch.randn(1, 3, 128, 128, device="cuda", requires_grad=True)
        model(image).mean().backward()
        yield


@grows("jmschrei/tangermeme/pull/84",
       "modules keep detached inputs and outputs of each model that is explained")
def explained_models():
    models = []
    while True:
        model = net()
        for layer in model:
            def keep(m, args, out):
                m.input, m.output = args[0].detach(), out.detach()
            layer.register_forward_hook(keep)
        with torch.no_grad():
            model(batch(256)[0])
        models.append(model)
        yield


@grows("cpnota/autonomous-learning-library/issues/144",
       "frames become tensors before they are stacked: the replay buffer stores "
       "each of them four times on the GPU")
def stacked_frames():
    buffer = []
    policy = nn.Conv2d(4, 16, 8, 4).cuda()
    frames = [torch.zeros(1, 84, 84, device="cuda")] * 4
    while True:
        frames = [*frames[1:], torch.rand(1, 84, 84, device="cuda")]
        state = torch.cat(frames)
        with torch.no_grad():
            policy(state[None])
        buffer.append(state)
        yield


@grows("lucidrains/ema-pytorch/issues/35",
       "each checkpoint makes a deep copy of the average that is not collected")
def post_hoc_ema():
    t, copies = Training(), []
    for step in range(1 << 30):
        t.step(256)
        if step % 2:
            copies.append(copy.deepcopy(t.model).state_dict())
        yield


@grows("pytorch/pytorch/pull/149354",
       "functools.cache of a method keeps the object, so the model's memory "
       "stays after del")
def cached_methods():
    class Model:
        def __init__(self):
            self.net = net()

        @functools.cache
        def parameters(self):
            return list(self.net.parameters())
    while True:
        model = Model()
        model.parameters()
        with torch.no_grad():
            model.net(batch(64)[0])
        del model
        yield


@grows("iCog-Labs-Dev/PC-Transformers/issues/129",
       "the whole sequence is appended to the KV cache at every step")
def duplicated_context():
    attend = nn.Linear(256, 512).cuda()
    sequence, cache = torch.randn(1, 8, 256, device="cuda"), None
    with torch.no_grad():
        while True:
            new = attend(sequence)
            cache = new if cache is None else torch.cat([cache, new], 1)
            sequence = torch.cat([sequence, sequence[:, -1:]], 1)
            yield


@grows("xlang-ai/instructor-embedding/issues/37",
       "batch inference of a large set: some memory stays after each batch")
def embeddings_with_gradients():
    encoder, embeddings = net(), []
    while True:
        embeddings.append(F.normalize(encoder(batch(256)[0])))
        yield


@grows("ltkong218/IFRNet/issues/30",
       "about ten runs of inference() without no_grad() fill 8 GB")
def interpolation_without_no_grad():
    model = nn.Sequential(nn.Conv2d(6, 32, 3, padding=1), nn.PReLU(32),
                          nn.Conv2d(32, 3, 3, padding=1)).cuda()
    frames = [torch.rand(1, 3, 128, 128, device="cuda") for _ in range(2)]
    while True:
        frames.append(model(torch.cat(frames[-2:], 1)))
        yield


@grows("Tencent/FaceDetection-DSFD/issues/11",
       "more than one image in a loop is out of memory: volatile is no more")
def volatile_is_no_more():
    model, detections = nn.Conv2d(3, 64, 3).cuda(), []
    while True:
        detections.append(model(torch.rand(1, 3, 160, 160, device="cuda")))
        yield


@grows("muellerzr/fastinference/issues/7",
       "inputs are stored on the GPU until the inference is over; less than "
       "50,000 images of 224 x 224")
def stored_inputs():
    model, inputs = nn.Conv2d(3, 8, 3, 2).cuda(), []
    while True:
        with torch.no_grad():
            x = torch.rand(4, 3, 112, 112, device="cuda")
            inputs.append([x])
            model(x).mean().item()
        yield


@grows("pq-yang/MatAnyone/issues/45",
       "the image feature store leaks entries with many inferences",
       marked=True)
def feature_store():
    encoder, store = nn.Conv2d(3, 64, 3, 4).cuda(), {}
    for video in range(1 << 30):
        with torch.no_grad():
            for frame in range(3):
                store[video, frame] = encoder(
                    torch.rand(1, 3, 128, 128, device="cuda"))
            del store[video, 0], store[video, 1]
        yield


# --- evaluations between two steps -------------------------------------------

CALLS = 10  # of a recorded evaluation


def evaluate(keep, out=None, rows=256):
    """Trains, and evaluates after each three steps. KEEP gets the list that
    lasts for an evaluation, and each batch's outputs. To find out how many
    batches memory lasts, the first evaluation has no end, and yields after
    each."""
    t = Training()
    out = out or t.model
    endless = TRUTH == "calls"
    while True:
        for _ in range(3):
            t.step(256)
            if not endless:
                yield
        kept = []
        for done in range(1 << 30 if endless else CALLS):
            with torch.no_grad():
                x, y = batch(rows)
                keep(kept, x, out(x), y)
            if endless:
                yield
        del kept


def append(kept, _x, out, _y):
    kept.append(out)


def concatenate(kept, _x, out, _y):
    """As Trainer's nested_concat does."""
    kept[:] = [torch.cat([*kept, out])]


def wide(rows=WIDTH):
    head = nn.Linear(WIDTH, rows).cuda()
    return lambda x: head(x)


@evaluation("huggingface/transformers/issues/7232",
            "9,997 classes, 469,530 samples: logits are concatenated on the GPU, "
            "24 GB are full after half of the evaluation")
def trainer_logits():
    yield from evaluate(concatenate, wide(2000))


@evaluation("huggingface/transformers/issues/8476",
            "the Trainer runs out of memory while it computes the score: "
            "nested_concat of the logits")
def trainer_nested_concat():
    head = wide(1000)
    yield from evaluate(concatenate, head)


@evaluation("huggingface/transformers/issues/17089",
            "training is fine, the evaluation loop runs out of memory in "
            "nested_concat")
def trainer_sequence_logits():
    head = wide(1500)
    yield from evaluate(concatenate, head, rows=128)


@evaluation("huggingface/transformers/issues/7158",
            "trainer.evaluate() of BART: preds = torch.cat(...) runs out")
def trainer_preds():
    yield from evaluate(concatenate, wide(3000), rows=64)


@evaluation("huggingface/transformers/issues/11848",
            "token classification runs out of memory in the evaluation")
def token_classification():
    yield from evaluate(concatenate, wide(1024), rows=512)


@evaluation("NVIDIA-Merlin/Transformers4Rec/issues/693",
            "a large catalogue of items: predictions stay on the GPU when "
            "eval_accumulation_steps is None")
def catalogue_predictions():
    yield from evaluate(concatenate, wide(4096))


@evaluation("facebookresearch/SlowFast/issues/411",
            "outputs and labels of an evaluation epoch are appended to lists")
def slowfast_lists():
    def keep(kept, _x, out, y):
        kept.append((out, y))
    yield from evaluate(keep, wide())


@evaluation("Lightning-AI/pytorch-lightning/issues/8453",
            "what validation_step returns is stored on the GPU for "
            "validation_epoch_end")
def lightning_validation():
    yield from evaluate(append, wide())


@evaluation("Lightning-AI/pytorch-lightning/issues/5735",
            "evaluation_loop.outputs has each step's outputs until the next "
            "validation")
def lightning_bounded():
    yield from evaluate(append, wide(256))


@evaluation("Lightning-AI/pytorch-lightning/issues/8583",
            "outputs of validation_step are stored although nobody uses them")
def lightning_unused_outputs():
    def keep(kept, x, out, _y):
        kept.append({"batch": x, "preds": out})
    yield from evaluate(keep)


@evaluation("SPOClab-ca/dn3/issues/38",
            "memory fills during prediction: outputs and labels stay on the GPU")
def dn3_predictions():
    yield from evaluate(append, wide(768))


@evaluation("Lightning-AI/torchmetrics/issues/2492",
            "list states of a metric grow with each update")
def validation_states():
    def keep(kept, _x, out, y):
        kept += [out.softmax(1), y]
    yield from evaluate(keep, wide(300))


# --- samples that are longer or larger ---------------------------------------

SHORT = (128, 192, 160, 256, 224, 144, 240, 176, 208, 250)


class Tokens(nn.Module):
    def __init__(self, vocabulary=1000, width=64, attention=True):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.inner = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary)
        self.attention = attention

    def forward(self, ids):
        h = self.inner(self.embed(ids))
        if self.attention:
            h = torch.softmax(h @ h.transpose(1, 2), -1) @ h
        return self.head(h)


def of_lengths(model, rows, make=None, lengths=SHORT):
    """Trains on samples of LENGTHS; to find out what the longest needs, on that
    as well."""
    optimizer = torch.optim.AdamW(model.parameters())
    last = [8 * max(lengths)] if TRUTH == "longest" else []
    for size in (*lengths, *last):
        inputs = make(size) if make else torch.randint(
            0, 1000, (rows, size), device="cuda")
        model(inputs).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def tokens(rows=2, **options):
    return of_lengths(Tokens(**options).cuda(), rows)


@length("foundation-model-stack/fms-hf-tuning/issues/471",
        "samples longer than max_seq_len: out of memory at step 164")
def longer_than_max_seq_len():
    yield from tokens()


@length("Lightning-AI/litgpt/issues/159",
        "memory is constant, but the sample of 1,079 tokens is out of memory; "
        "all others have at most 650")
def one_sample_of_1079_tokens():
    yield from tokens(rows=1, attention=False, vocabulary=4000)


@length("meta-llama/llama-cookbook/issues/792",
        "jumps in memory with batches of longer sequences, out of memory with "
        "an even longer one")
def buckets_of_lengths():
    yield from tokens(rows=4, attention=False)


@length("huggingface/trl/issues/1626",
        "sequences later in the training are longer: out of memory in DPO")
def preference_pairs():
    yield from tokens(rows=2, vocabulary=2000, attention=False)


@length("huggingface/trl/issues/1189",
        "some batch is out of memory with batches of two samples")
def skip_the_batch():
    yield from tokens(rows=2, width=128)


@length("unslothai/unsloth/issues/1624",
        "out of memory after 120 steps: the 120th sample is long")
def sample_120():
    yield from tokens(rows=1, width=96)


@length("huggingface/transformers/issues/11388",
        "out of memory in the middle of the training when the data is large: "
        "the longest batch comes late")
def in_the_middle_of_the_training():
    yield from tokens(rows=3, vocabulary=1500, attention=False)


@length("k2-fsa/icefall/issues/521",
        "the text of some samples is too long: the joiner of an RNN-T has a "
        "product of frames and tokens")
def transducer_joiner():
    class Joiner(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Embedding(1000, 8), nn.Linear(8, 4)

        def forward(self, ids):
            text = self.embed(ids)
            return self.out(torch.tanh(text[:, :, None] + text[:, None]))
    yield from of_lengths(Joiner().cuda(), 1)


@length("SWivid/F5-TTS/issues/223",
        "9 GB at first, out of memory after 10,000s of steps: attention needs "
        "the square of the frames", n=163840)
def frames_of_speech():
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(80, 80)

        def forward(self, x):
            h = self.inner(x)
            return torch.softmax(h @ h.transpose(1, 2), -1) @ h
    yield from of_lengths(Attends().cuda(), 2, lambda size: torch.randn(
        2, size, 80, device="cuda"))


@length("SeanNaren/deepspeech.pytorch/pull/83",
        "a random out-of-memory error: utterances of 35 seconds among those "
        "of 15", n=329728)
def long_utterances():
    model = nn.Sequential(nn.Conv1d(161, 64, 3), nn.ReLU(),
                          nn.Conv1d(64, 29, 3)).cuda()
    yield from of_lengths(model, 4, lambda size: torch.randn(
        4, 161, size, device="cuda"))


@length("rapidsai/crossfit/pull/18",
        "memory grows as longer sequences come: embeddings of a sorted set")
def sorted_sequences():
    yield from of_lengths(Tokens(width=128).cuda(), 4, lengths=sorted(SHORT))


@length("KaijuML/data-to-text-hierarchical/issues/7",
        "usage increases during training up to that of the largest batch")
def tables_of_text():
    yield from tokens(rows=8, vocabulary=500, attention=False)


SIDES = (64, 96, 80, 112, 72, 104, 88, 120, 68, 100)


def images(rows=2, channels=16):
    model = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(channels, channels, 3, padding=1),
                          nn.ReLU()).cuda()
    return of_lengths(model, rows, lambda side: torch.randn(
        rows, 3, side, side, device="cuda"), SIDES)


@length("marvis/pytorch-yolo2/issues/120",
        "multi-scale training: out of memory after some epochs", n=2764800)
def yolo2_multi_scale():
    yield from images(4)


@length("ultralytics/yolov3/issues/75",
        "out of memory with multi-scale training", n=2764800)
def yolov3_multi_scale():
    yield from images(2, 32)


@length("ultralytics/yolov5/issues/7678",
        "--multi-scale is out of memory", n=2764800)
def yolov5_multi_scale():
    yield from images(8, 8)


@length("YuHengsss/YOLOV/issues/112",
        "usage fluctuates, sometimes out of memory: multi-scale training", n=2764800)
def yolov_multi_scale():
    yield from images(1, 64)


NODES = (400, 900, 650, 1200, 500, 1000, 800, 1100, 450, 950)


def nodes(width=128):
    model = nn.Sequential(nn.Linear(32, width), nn.ReLU(),
                          nn.Linear(width, width)).cuda()
    return of_lengths(model, 1, lambda count: torch.randn(
        count, 32, device="cuda"), NODES)


@length("pyg-team/pytorch_geometric/issues/1113",
        "graphs of 10 to 10,000 nodes: some batches are really large", n=9600)
def graphs_of_many_nodes():
    yield from nodes()


@length("chenzhaiyu/polygnn/issues/26",
        "a part of the data can be trained, all of it is out of memory: the "
        "size of a batch varies", n=9600)
def polyhedra():
    yield from nodes(64)


@length("henryzhao5852/DELFT/issues/1",
        "each graph has another size, so the memory of a batch differs", n=9600)
def evidence_graphs():
    yield from nodes(256)


class Overlaps(nn.Module):
    """The overlaps of anchors and the boxes of an image, a head's loss."""

    def __init__(self, anchors):
        super().__init__()
        self.anchors = nn.Parameter(torch.rand(anchors, 4))

    def forward(self, boxes):
        low = torch.max(self.anchors[:, None, :2], boxes[:, :2])
        high = torch.min(self.anchors[:, None, 2:], boxes[:, 2:])
        inner = (high - low).clamp(min=0)
        return inner[..., 0] * inner[..., 1]


BOXES = (12, 40, 25, 64, 18, 50, 33, 70, 22, 45)


@length("open-mmlab/mmdetection/issues/188",
        "out of memory after several hundred iterations, in bbox_overlaps: "
        "images with many boxes", n=560)
def overlaps_of_many_boxes():
    yield from of_lengths(Overlaps(20000).cuda(), 1, lambda count: torch.rand(
        count, 4, device="cuda"), BOXES)


@length("facebookresearch/detectron2/issues/433",
        "3 GB at first, 5 and 7 GB after some 100 iterations, out of memory "
        "after 3,000 to 10,000: images with many instances", n=560)
def instances_of_an_image():
    yield from of_lengths(Overlaps(8000).cuda(), 1, lambda count: torch.rand(
        count, 4, device="cuda"), BOXES)


if __name__ == "__main__":
    programs.main()
