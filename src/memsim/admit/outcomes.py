# SPDX-License-Identifier: Apache-2.0
"""memsim outcomes: what became of the jobs that were predicted, and how the
predictions compare with it."""
import argparse
import glob
import json
import os
import re
import statistics
import sys

from search.output import clean, clean_lines, size_words

from . import AdmitError, slurm
from .database import Database, usual_path
from .predict import REFUSED

FAILED = 1
ENDED_TAIL, FAILED_TAIL = 4096, 1 << 20  # bytes of output that are read
# What PyTorch, CUDA and JAX print where a GPU's memory runs out.
OUT_OF_MEMORY = re.compile(
    rb"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|"
    rb"cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|"
    rb"RESOURCE_EXHAUSTED: Out of memory|CUBLAS_STATUS_ALLOC_FAILED")
RAN, OOM, HOST, OTHER = "ran", "oom", "host-memory", "failed"
LOST = "lost"  # it says nothing of the prediction
STATES = {"COMPLETED": RAN, "TIMEOUT": RAN, "DEADLINE": RAN,
          "OUT_OF_MEMORY": HOST, "FAILED": OTHER}
SHARES = (0, 50, 80, 90, 95, 100)  # of a GPU's memory, in percent
SCHEMA = 1


# --- what became of a job ---------------------------------------------------

def expand(pattern, number, raw, name):
    """The files that sbatch's PATTERN stands for."""
    job, _, task = number.partition("_")
    known = {"%": "%", "j": raw, "J": raw, "A": job, "a": task, "x": name}
    path = re.sub(r"%\d*([%jJAaxuNnts])",
                  lambda found: glob.escape(known[found[1]])
                  if found[1] in known else "*", glob.escape(pattern))
    return glob.glob(path)


def says_oom(paths, most):
    """Whether the last MOST bytes of a file say that a GPU ran out."""
    for path in paths:
        try:
            with open(path, "rb") as file:
                file.seek(max(0, os.path.getsize(path) - most))
                if OUT_OF_MEMORY.search(file.read(most)):
                    return True
        except OSError:
            continue
    return False


def outcome_of(task, outputs, name):
    """What the state of TASK, and its output, say."""
    found = STATES.get(task["state"], LOST)
    if found not in (RAN, OTHER):
        return found
    paths = [path for pattern in outputs
             for path in expand(pattern, task["job"], task["raw"], name)]
    most = FAILED_TAIL if found == OTHER else ENDED_TAIL
    return OOM if says_oom(paths, most) else found


def is_of(number, job):
    return number == job or number.startswith(f"{job}_")


def update(database):
    """Asks Slurm for jobs without an outcome. Returns how many it knows no end
    of."""
    known = {(row["prediction"], row["job"]) for row in database.outcomes()}
    # Array tasks end one after the other: a job with outcomes may have more.
    open_jobs = [row for row in database.submitted()
                 if (row["id"], row["job"]) not in known]
    if not open_jobs:
        return 0
    tasks = slurm.tasks_of(sorted({row["job"] for row in open_jobs}))
    waiting = 0
    for row in open_jobs:
        mine = {k: t for k, t in tasks.items() if is_of(k, row["job"])}
        for number, task in mine.items():
            if task["state"] in slurm.FINAL:
                add(database, row, number, task)
        had = any(prediction == row["id"] for prediction, _ in known)
        waiting += not (had and not mine) and not (mine and all(
            t["state"] in slurm.FINAL for t in mine.values()))
    return waiting


def add(database, row, number, task):
    database.add_outcome({
        "prediction": row["id"], "job": number, "state": task["state"],
        "exit": task["exit"], "gpu_bytes": task["gpu_bytes"],
        "elapsed_s": task["elapsed_s"],
        "outcome": outcome_of(task, json.loads(row["outputs"]),
                              row["name"])})


# --- what they say ----------------------------------------------------------

def predicted(row):
    """fits, oom (any verdict that refuses), or unknown."""
    if row["verdict"] == "fits":
        return "fits"
    return "oom" if row["verdict"] in REFUSED else "unknown"


def is_wrong(row, verdict, outcomes):
    return predicted(row) == verdict and row["outcome"] in outcomes


def shares(rows):
    """Jobs by the part of a GPU that was predicted, and how many ran out."""
    found = []
    for low, high in zip(SHARES, (*SHARES[1:], None)):
        mine = [row for row in rows if row["peak_bytes"] is not None and
                low <= 100 * row["peak_bytes"] / row["capacity_bytes"] and
                (high is None or
                 100 * row["peak_bytes"] / row["capacity_bytes"] < high)]
        if mine:
            found.append({"from_percent": low, "to_percent": high,
                          "jobs": len(mine), "out_of_memory": sum(
                              row["outcome"] == OOM for row in mine)})
    return found


def ratios(rows):
    """Predicted by measured memory of GPUs, where the accounting has it."""
    return sorted(row["peak_bytes"] / row["gpu_bytes"] for row in rows
                  if row["gpu_bytes"] and row["peak_bytes"] and
                  row["outcome"] == RAN)


def summary(rows, predictions, waiting):
    """All that is known, as the JSON has it."""
    counted = [row for row in rows if row["outcome"] != LOST]
    table = {verdict: {outcome: sum(
        predicted(row) == verdict and row["outcome"] == outcome
        for row in counted) for outcome in (RAN, OOM, HOST, OTHER)}
        for verdict in ("fits", "oom", "unknown")}
    found = ratios(counted)
    told = {"outcomes_schema": SCHEMA, "predictions": len(predictions),
            "refused": sum(row["refused"] for row in predictions),
            "without_an_end": waiting, "jobs": len(counted),
            "lost": len(rows) - len(counted), "table": table,
            "misses": table["fits"][OOM], "false_refusals": table["oom"][RAN],
            "by_share": shares(counted)}
    if found:
        told["predicted_by_measured"] = {
            "jobs": len(found), "median": statistics.median(found),
            "least": found[0], "most": found[-1]}
    told["rows"] = rows
    return told


def number_of(count, one, many):
    return f"{count} {one if count == 1 else many}"


def table_lines(table):
    head = ["", "ran", "out of memory", "out of host memory", "failed"]
    names = {"fits": "predicted to fit", "oom": "predicted not to fit",
             "unknown": "not predicted"}
    lines = [head] + [[names[verdict]] + [str(n) for n in counts.values()]
                      for verdict, counts in table.items()]
    return ["  " + line[0].ljust(22) + "".join(
        cell.rjust(len(title) + 3) for cell, title in zip(line[1:], head[1:]))
        for line in lines]


def wrong_lines(rows):
    """The jobs that were predicted wrongly."""
    kinds = [(row, "a miss") for row in rows if is_wrong(row, "fits", (OOM,))]
    kinds += [(row, "a false refusal")
              for row in rows if is_wrong(row, "oom", (RAN,))]
    return [f"  job {row['job']} {clean(row['name'])}: {kind}: predicted "
            f"{row['verdict']}, {size_words(row['peak_bytes'])} of "
            f"{size_words(row['capacity_bytes'])}" for row, kind in kinds]


def text(told):
    """The same as lines."""
    lines = [f"{number_of(told['predictions'], 'job was', 'jobs were')} "
             f"predicted, {told['refused']} of them refused; "
             f"{number_of(told['jobs'], 'has', 'have')} an outcome, "
             f"{told['without_an_end']} not yet, {told['lost']} cancelled or "
             "lost"]
    if not told["jobs"]:
        return lines
    lines += ["", *table_lines(told["table"]), "",
              f"misses: {told['misses']}; false refusals: "
              f"{told['false_refusals']} (known where --policy annotate "
              "submitted them)", *wrong_lines(told["rows"])]
    if told["by_share"]:
        lines += ["", "predicted peak of the GPU's memory:"]
    for share in told["by_share"]:
        to = f"to {share['to_percent']}%" if share["to_percent"] else "or more"
        lines.append(f"  {share['from_percent']}% {to}: "
                     f"{number_of(share['jobs'], 'job', 'jobs')}, "
                     f"{share['out_of_memory']} out of memory")
    found = told.get("predicted_by_measured")
    if found:
        lines += ["", f"predicted by measured memory (gres/gpumem) of "
                  f"{number_of(found['jobs'], 'job', 'jobs')}: median "
                  f"{found['median']:.3f} ({found['least']:.3f} to "
                  f"{found['most']:.3f})"]
    return lines


def parse(words):
    parser = argparse.ArgumentParser(prog="memsim outcomes",
                                     allow_abbrev=False)
    parser.add_argument("--database")
    parser.add_argument("--json")
    parser.add_argument("--no-update", action="store_true")
    return parser.parse_args(words[:words.index("--")])


def start(words):
    options = parse(words)
    database = Database(options.database or usual_path(), only_read=True)
    waiting = 0 if options.no_update else update(database)
    told = summary(database.outcomes(), database.predictions(), waiting)
    if options.json:
        written = json.dumps(told, indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(written)
            return 0
        try:
            with open(options.json, "w", encoding="utf-8") as file:
                file.write(written)
        except OSError as error:
            raise AdmitError(f"{options.json}: {error.strerror}") from None
    print("\n".join(text(told)))
    return 0


def main(_memsim, words):
    try:
        return start(words)
    except AdmitError as error:
        print(f"memsim: outcomes: {clean_lines(str(error))}", file=sys.stderr)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
