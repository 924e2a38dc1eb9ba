# SPDX-License-Identifier: Apache-2.0
"""openai-whisper's base model on 40 s of noise: whisper_run.py
transcribe|decode"""
import sys

import numpy
import whisper

model = whisper.model.Whisper(whisper.model.ModelDimensions(
    80, 1500, 512, 8, 6, 51865, 448, 512, 8, 6)).cuda().eval()
sound = numpy.random.randn(40 * 16000).astype(numpy.float32) * 0.1
if sys.argv[1] == "transcribe":
    result = whisper.transcribe(model, sound, language="en")
    print("segments", len(result["segments"]))
else:
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(sound)).cuda()
    result = whisper.decode(model, mel, whisper.DecodingOptions(
        language="en", without_timestamps=True))
    print("tokens", len(result.tokens))
