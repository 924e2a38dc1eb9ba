# SPDX-License-Identifier: Apache-2.0
"""Runs configurations of the zoo in batches: one `memsim run` for some
configurations of one library. What a batch did not answer is run again, one
configuration at a time."""
import json
import os
import random
import subprocess
import tempfile
import threading

import table

HERE = os.path.dirname(os.path.abspath(__file__))


class Sweep:
    def __init__(self, args, device, done):
        """DONE(result) is called with each result, one at a time."""
        self.args, self.device, self.done = args, device, done
        self.lock = threading.Lock()

    def batches(self, configs):
        """CONFIGS by library and GPU, --batch at a time. The libraries take
        turns, and a library's lines are mixed, those of models without a result
        first, so that a sweep that is stopped has some of each."""
        known = {tuple(i.split()[:2]) for i in table.results()}
        configs = random.Random(0).sample(configs, len(configs))
        configs.sort(key=lambda c: (c["library"], c["model"]) in known)
        groups = {}
        for config in configs:
            key = config["library"], config.get("gpu", "")
            groups.setdefault(key, []).append(config)
        size = self.args.batch
        turns = [(i, group[i:i + size]) for group in groups.values()
                 for i in range(0, len(group), size)]
        return [batch for _, batch in sorted(turns, key=lambda turn: turn[0])]

    def command(self, batch, scratch):
        gpu = batch[0].get("gpu")
        return [os.path.abspath(self.args.memsim), "run", "-q",
                *(["--gpu", gpu] if gpu else []),
                "-o", f"{scratch}/run", "--", os.path.abspath(self.args.python),
                f"{HERE}/job.py", "--device", self.device, "--timeout",
                str(self.args.timeout), batch[0]["library"],
                f"{scratch}/configs.json", f"{scratch}/results"]

    def answers(self, batch):
        """What one process answered for BATCH, and the end of its output."""
        hidden = {} if self.device == "cuda" else {"CUDA_VISIBLE_DEVICES": ""}
        with tempfile.TemporaryDirectory() as scratch:
            with open(f"{scratch}/configs.json", "w") as file:
                json.dump(batch, file)
            done = subprocess.run(
                self.command(batch, scratch), cwd=scratch, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, errors="replace",
                env={**os.environ, **hidden, "OMP_NUM_THREADS": "1",
                     "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "0",
                     # torch.cuda.is_available() forbids forks without it.
                     "PYTORCH_NVML_BASED_CUDA_CHECK": "1"})
            try:
                with open(f"{scratch}/results") as file:
                    found = [json.loads(line) for line in file]
            except OSError:
                found = []
        return found, done

    def run_batch(self, batch):
        found, done = self.answers(batch)
        for result in found:
            self.tell(result)
        known = {result["id"] for result in found}
        missing = [c for c in batch if c["id"] not in known]
        if len(batch) > 1:
            for config in missing:
                self.run_batch([config])
        elif missing:
            last = " ".join(done.stdout.split())[-300:]
            self.tell({"id": batch[0]["id"], "status": "failed", "error":
                       f"the process ended with {done.returncode}: {last}"})

    def tell(self, result):
        with self.lock:
            self.done(result)

    def worker(self, waiting):
        while True:
            with self.lock:
                if not waiting:
                    return
                batch = waiting.pop(0)
            self.run_batch(batch)

    def run(self, configs):
        waiting = self.batches(configs)
        workers = [threading.Thread(target=self.worker, args=(waiting,))
                   for _ in range(self.args.jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()


def options(parser):
    """The options of commands that sweep."""
    top = os.path.dirname(os.path.dirname(HERE))
    parser.add_argument("--memsim", default=f"{top}/build/bin/memsim")
    parser.add_argument("--python", required=True,
                        help="of an environment that has the libraries")
    parser.add_argument("--jobs", type=int, default=1,
                        help="processes at once; each takes up to 2 GiB")
    parser.add_argument("--batch", type=int, default=12,
                        help="configurations of one process")
    parser.add_argument("--timeout", type=float, default=300,
                        help="seconds for one configuration; six times as "
                        "many for one that compiles")
    parser.add_argument("--match", default="", help="only ids with this in")


LIST = ("import sys, json, importlib; sys.path.insert(0, sys.argv[1]);"
        "m = importlib.import_module(sys.argv[2]);"
        "print(json.dumps(list(eval(sys.argv[3], vars(m)))))")


def ask(args, module, expression):
    """A list that EXPRESSION gives in a module of the zoo, which may need
    PyTorch."""
    done = subprocess.run(
        [args.memsim, "run", "-q", "--", args.python, "-c", LIST, HERE,
         module, expression], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
