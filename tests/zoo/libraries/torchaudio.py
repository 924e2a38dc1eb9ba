# SPDX-License-Identifier: Apache-2.0
"""torchaudio's models."""
import torch

import torchaudio
from . import common


class Loss(torch.nn.Module):
    """MODEL with what it returns reduced to its first tensor of numbers."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *args):
        return self.model(*args)


def _wave(*shape):
    return lambda d: [torch.randn(*shape, device=d)]


def _features(d):
    return [torch.randn(2, 80, 40, device=d),
            torch.tensor([80, 60], device=d)]


def _emformer(d):
    return [torch.randn(2, 36, 40, device=d), torch.tensor([36, 36], device=d)]


def _tacotron(d):
    return [torch.randint(0, 148, (2, 20), device=d),
            torch.tensor([20, 15], device=d),
            torch.randn(2, 80, 30, device=d), torch.tensor([30, 20], device=d)]


def _rnnt(d):
    return [torch.randn(2, 80, 80, device=d),
            torch.tensor([80, 80], dtype=torch.int32, device=d),
            torch.randint(0, 1000, (2, 10), device=d),
            torch.tensor([10, 8], dtype=torch.int32, device=d)]


def _wavernn(d):
    return [torch.randn(2, 1, (10 - 4) * 200, device=d),
            torch.randn(2, 1, 128, 10, device=d)]


M = torchaudio.models
MODELS = {
    "wav2vec2_base": (lambda: M.wav2vec2_base(aux_num_out=32),
                      _wave(2, 8000)),
    "wav2vec2_large": (lambda: M.wav2vec2_large(aux_num_out=32),
                       _wave(2, 8000)),
    "hubert_base": (lambda: M.hubert_base(aux_num_out=32), _wave(2, 8000)),
    "wavlm_base": (lambda: M.wavlm_base(aux_num_out=32), _wave(2, 8000)),
    "conformer": (lambda: M.Conformer(40, 4, 128, 2, 31), _features),
    "emformer": (lambda: M.Emformer(40, 4, 128, 2, 32,
                                    right_context_length=4), _emformer),
    "conv_tasnet": (lambda: M.ConvTasNet(num_sources=2), _wave(2, 1, 8000)),
    "deepspeech": (lambda: M.DeepSpeech(40), _wave(2, 1, 60, 40)),
    "wav2letter": (lambda: M.Wav2Letter(num_classes=40), _wave(2, 1, 4000)),
    "tacotron2": (lambda: M.Tacotron2(), _tacotron),
    "wavernn": (lambda: M.WaveRNN([5, 5, 8], 512, 200), _wavernn),
    "hdemucs": (lambda: M.hdemucs_low(["a", "b"]), _wave(1, 2, 44100)),
    "rnnt": (lambda: M.emformer_rnnt_base(1000), _rnnt),
    "squim_objective": (lambda: M.squim_objective_base(), _wave(2, 16000)),
}


def build(config):
    make, inputs = MODELS[config["model"]]
    with common.device(config):
        model = make()
    return model, lambda: (inputs(common.device(config)), {})


def families():
    yield from MODELS
