# SPDX-License-Identifier: Apache-2.0
# memsim and the CPU-side of PyTorch for jobs in a container:
#   make wheel && docker build -t memsim .
#   docker run --rm -v "$PWD:/work" memsim run --gpu l4 -- python train.py
# The PyTorch is the ordinary one for CUDA without NVIDIA's libraries (1.5 GB);
# --build-arg TORCH= leaves it out, for an image that has its own.
FROM python:3.12-slim-bookworm
ARG TORCH=2.11.0
COPY dist/memsim-*.whl /tmp/
RUN pip install --no-cache-dir --no-deps /tmp/memsim-*.whl && rm /tmp/memsim-*.whl
RUN [ -z "$TORCH" ] || { \
        pip install --no-cache-dir numpy filelock 'typing-extensions>=4.10' \
            sympy networkx jinja2 fsspec setuptools packaging && \
        pip install --no-cache-dir --no-deps "torch==$TORCH"; }
WORKDIR /work
ENTRYPOINT ["memsim"]
CMD ["--help"]
