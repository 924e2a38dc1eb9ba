# SPDX-License-Identifier: Apache-2.0
"""Segment Anything: a prompt, then masks of the whole image."""
import numpy
from segment_anything import SamAutomaticMaskGenerator, SamPredictor, \
    sam_model_registry

sam = sam_model_registry["vit_b"]().cuda()
image = numpy.random.randint(0, 255, (480, 640, 3), dtype=numpy.uint8)
predictor = SamPredictor(sam)
predictor.set_image(image)
masks, scores, _ = predictor.predict(numpy.array([[320, 240]]),
                                     numpy.array([1]))
assert masks.shape == (3, 480, 640), masks.shape
found = SamAutomaticMaskGenerator(sam, points_per_side=4).generate(image)
print("masks", len(found))
