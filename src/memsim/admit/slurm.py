# SPDX-License-Identifier: Apache-2.0
"""Slurm's own commands: submitting a job, and what became of jobs."""
import os
import re
import subprocess

from . import AdmitError

ADMITTED = "MEMSIM_ADMITTED"  # tells the filter that a job was predicted
FINAL = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED",
         "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"}
FORMAT = "JobID,JobIDRaw,State,ExitCode,ElapsedRaw,TRESUsageInMax"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def ask(words):
    """What the command WORDS prints; None: it failed, or is not there."""
    try:
        done = subprocess.run(words, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def submit(words, comment, script):
    """Submits a job as `sbatch WORDS' does, with COMMENT beside the user's;
    SCRIPT: the text of its standard input, or None. Returns (status, number of
    the job or None); what sbatch says is passed on."""
    words = ["sbatch", *(["--comment", comment] if comment else []), *words]
    try:
        done = subprocess.run(
            words, input=script, stdout=subprocess.PIPE, text=True, check=False,
            errors="surrogateescape", env={**os.environ, ADMITTED: "1"})
    except OSError as error:
        raise AdmitError(f"sbatch: {error.strerror}; is Slurm installed "
                         "here?") from None
    print(done.stdout, end="")
    found = re.search(r"^(?:Submitted batch job )?(\d+)", done.stdout, re.M)
    return done.returncode, found[1] if found and done.returncode == 0 else None


def size(text):
    found = re.fullmatch(r"([0-9.]+)([KMGT]?)", text)
    return int(float(found[1]) * UNITS[found[2]]) if found else None


def gpu_memory(usage):
    """The memory of a GPU in TRESUsageInMax, in bytes; None."""
    for part in usage.split(","):
        name, _, value = part.partition("=")
        if name == "gres/gpumem":
            return size(value)
    return None


def task(number, raw, state, code, seconds):
    return {"job": number, "raw": raw, "state": state.split(" ")[0],
            "exit": code, "elapsed_s": int(seconds or 0), "gpu_bytes": None}


def from_sacct(text):
    """{number: task} of what sacct prints: jobs, array tasks and their
    steps."""
    found = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != 6:
            continue
        number, _, step = fields[0].partition(".")
        if not step:
            found[number] = task(number, *fields[1:5])
        elif number in found:
            used = gpu_memory(fields[5])
            most = found[number]["gpu_bytes"]
            found[number]["gpu_bytes"] = used if most is None else \
                max(most, used or 0)
    return found


def seconds_of(text):
    """[D-]HH:MM:SS in seconds."""
    days, _, clock = text.rpartition("-")
    parts = [int(part) for part in clock.split(":") if part.isdecimal()]
    total = 0
    for part in parts:
        total = total * 60 + part
    return total + 86400 * int(days or 0)


def from_scontrol(text):
    """The same of what scontrol prints."""
    found = {}
    for line in text.splitlines():
        told = dict(re.findall(r"(\w+)=(\S*)", line))
        if "JobId" not in told:
            continue
        number = told["JobId"]
        if "ArrayJobId" in told:
            if not told.get("ArrayTaskId", "").isdecimal():
                continue  # tasks that wait
            number = f"{told['ArrayJobId']}_{told['ArrayTaskId']}"
        found[number] = task(number, told["JobId"], told["JobState"],
                             told["ExitCode"], seconds_of(told["RunTime"]))
    return found


def tasks_of(jobs):
    """{number: task} of JOBS, from the accounting, or of those that Slurm still
    remembers. Array tasks have numbers of their own."""
    told = ask(["sacct", "--parsable2", "--noheader",
                f"--jobs={','.join(jobs)}", f"--format={FORMAT}"])
    if told:
        return from_sacct(told)
    found = {}
    for job in jobs:
        found.update(from_scontrol(
            ask(["scontrol", "show", "job", "-o", job]) or ""))
    return found
