# SPDX-License-Identifier: Apache-2.0
"""A kernel of numba's documentation."""
import numpy
from numba import cuda


@cuda.jit
def increment(array):
    at = cuda.grid(1)
    if at < array.size:
        array[at] += 1


array = cuda.to_device(numpy.zeros(1000, dtype=numpy.float32))
increment[4, 256](array)
cuda.synchronize()
print("ran", array.copy_to_host().shape)
