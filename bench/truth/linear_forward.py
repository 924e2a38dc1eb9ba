# SPDX-License-Identifier: Apache-2.0
"""One linear layer, forward, from PyTorch's issues 95668 and 104604: what is
allocated when the layer is there, the peak, and what is left at the end."""
import argparse
import json
import os

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--length", type=int, default=1)
    parser.add_argument("--bias", action="store_true")
    parser.add_argument("--no-workspace", action="store_true",
                        help="cuBLAS has its own, as before PyTorch 1.12")
    args = parser.parse_args()
    if args.no_workspace:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":0:0"
    layer = torch.nn.Linear(args.width, args.width, bias=args.bias).to("cuda")
    found = {"torch": torch.__version__,
             "init_bytes": torch.cuda.memory_allocated()}
    x = torch.randn(1, args.length, args.width, device="cuda")
    y = layer(x)
    found["peak_allocated_bytes"] = torch.cuda.max_memory_allocated()
    del x, y, layer
    found["left_bytes"] = torch.cuda.memory_allocated()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
