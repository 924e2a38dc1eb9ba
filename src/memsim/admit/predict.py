# SPDX-License-Identifier: Apache-2.0
"""The prediction of a job: its script under memsim run, for a few steps."""
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from search.measure import FITS, measure

from . import AdmitError, standin

PROGRAM = os.path.dirname(os.path.abspath(__file__))
GRACE_S = 20
PRINTED = 4000
# Verdicts by how bad they are. That of a job is the worst of its runs.
RANK = {verdict: place for place, verdict in enumerate(
    ("none", FITS, "unknown", "failed", "grows", "input", "host-memory",
     "over-limit", "oom"))}
REFUSED = ("oom", "over-limit", "host-memory", "grows", "input")
MIB = 1 << 20


class Prediction:
    """What memsim says of a job. VERDICT: a run's, or "unknown", with WHY."""

    def __init__(self, verdict, why="", figures=None, seconds=0.0):
        self.verdict, self.why, self.seconds = verdict, why, seconds
        self.figures = figures or {}

    @property
    def is_refused(self):
        return self.verdict in REFUSED

    def declared_mib(self):
        """GPU memory of the fullest GPU, as schedulers take it; None."""
        used = self.figures.get("peak_used_bytes")
        return None if used is None else -(-used // MIB)

    def comment(self):
        """The words for the job's comment: NAME=VALUE."""
        told = [f"memsim={self.verdict}"]
        if self.declared_mib() is not None:
            told.append(f"gpumem={self.declared_mib()}M")
        if self.figures.get("step_ns"):
            told.append(f"step={self.figures['step_ns'] / 1e6:.1f}ms")
        return " ".join(told)


def slurm_variables(request):
    """The job's variables, as far as a script asks for them."""
    hosts = "localhost" if request.nodes == 1 else \
        f"memsim[0-{request.nodes - 1}]"
    told = {"JOB_ID": 0, "JOBID": 0, "JOB_NAME": request.name,
            "SUBMIT_DIR": os.getcwd(), "SUBMIT_HOST": "localhost",
            "NNODES": request.nodes, "JOB_NUM_NODES": request.nodes,
            "NTASKS": request.tasks, "NPROCS": request.tasks,
            "NTASKS_PER_NODE": request.per_node, "NODELIST": hosts,
            "JOB_NODELIST": hosts, "NODEID": 0, "PROCID": 0, "LOCALID": 0,
            "GPUS_ON_NODE": request.gpus, "JOB_PARTITION": "memsim",
            "CPUS_PER_TASK": request.option("cpus-per-task"),
            "CPUS_ON_NODE": request.option("cpus-per-task") or 1}
    if request.first_task() is not None:
        told.update(ARRAY_TASK_ID=request.first_task(), ARRAY_JOB_ID=0,
                    ARRAY_TASK_COUNT=1, ARRAY_TASK_MIN=request.first_task(),
                    ARRAY_TASK_MAX=request.first_task())
    return {f"SLURM_{name}": str(value) for name, value in told.items()
            if value is not None}


class Predictor:
    """Predicts jobs with MEMSIM run and RUN_OPTIONS, for STEPS steps and at
    most TIMEOUT_S seconds; SRUN: options of srun for a short job that does it,
    None: it is done here."""

    def __init__(self, memsim, run_options, steps, timeout_s, srun=None):
        self.memsim, self.run_options = memsim, run_options
        self.steps, self.timeout_s, self.srun = steps, timeout_s, srun

    def gpu_option(self, request):
        """--gpu for the type that the job asks for, if memsim knows it."""
        named = any(word.startswith("--gpu=") for word in self.run_options)
        if named or not request.gpu_type:
            return []
        known = subprocess.run([self.memsim, "gpus", request.gpu_type],
                               capture_output=True, check=False)
        return [] if known.returncode else [f"--gpu={request.gpu_type}"]

    def run_words(self, request):
        """`memsim run' and its options, without --json and the command."""
        words = [self.memsim, "run", "-q", "--kill-with-memsim",
                 f"--stop-after={self.steps}", *self.gpu_option(request)]
        many = any(word.startswith("--gpus=") for word in self.run_options)
        if not many and not request.uses_srun and request.gpus > 1:
            words.append(f"--gpus={request.gpus}")
        return words + self.run_options

    def _prepare(self, request, scratch):
        """Writes what the run needs. Returns (its words, its variables)."""
        script = os.path.join(scratch, "slurm_script")
        with open(script, "w", encoding="utf-8",
                  errors="surrogateescape") as file:
            file.write(request.text)
        os.chmod(script, 0o700)
        places = os.path.join(scratch, "bin")
        standin.install(places, sys.executable, PROGRAM)
        run = self.run_words(request)
        plan = os.path.join(scratch, "plan.json")
        with open(plan, "w", encoding="utf-8") as file:
            json.dump({"run": run, "reports": scratch, "nodes": request.nodes,
                       "tasks": request.tasks}, file)
        words = [script, *request.arguments]
        if not request.uses_srun:
            report = os.path.join(scratch, "report-0.json")
            words = [*run, f"--json={report}", "--", *words]
        path = os.environ.get("PATH", os.defpath)
        return words, {**slurm_variables(request), standin.PLAN: plan,
                       "PATH": f"{places}{os.pathsep}{path}"}

    def _start(self, words, variables, request, out):
        environment = dict(os.environ)
        if self.srun is None:
            environment.update(variables)
        else:
            place = ["env", *(f"{k}={v}" for k, v in variables.items())]
            words = ["srun", "--ntasks=1", "--quiet",
                     *shlex.split(self.srun), *place, *words]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out,
                                stderr=subprocess.STDOUT, env=environment,
                                cwd=request.directory, start_new_session=True)

    def _wait(self, process):
        """Returns (status, whether the time was over)."""
        try:
            return process.wait(self.timeout_s), False
        except subprocess.TimeoutExpired:
            pass
        finally:
            if process.poll() is None:
                end(process)
        return process.returncode, True

    def predict(self, request):
        why = request.refused()
        if why:
            return Prediction("unknown", why)
        began = time.monotonic()
        # Where another machine makes the run, both have to see the files.
        scratch = tempfile.mkdtemp(prefix="memsim-admit-", dir=None
                                   if self.srun is None else os.getcwd())
        try:
            words, variables = self._prepare(request, scratch)
            printed = os.path.join(scratch, "printed")
            with open(printed, "wb") as out:
                status, late = self._wait(
                    self._start(words, variables, request, out))
            found = judge(read_reports(scratch), status, late,
                          last_line(printed))
        except OSError as error:
            raise AdmitError(f"{error.filename or scratch}: "
                             f"{error.strerror}") from None
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        found.seconds = time.monotonic() - began
        return found


def end(process):
    """Ends PROCESS and what it started; memsim then still reports."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
            return
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def last_line(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - PRINTED))
        lines = file.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def read_reports(scratch):
    """What the runs tell, in figures."""
    found = []
    for path in sorted(glob.glob(glob.escape(scratch) + "/report-*.json")):
        try:
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
        except (OSError, ValueError):
            continue
        told = measure(report)
        told["steps"] = max((len(rank.get("steps", []))
                             for rank in report.get("ranks", [])), default=0)
        found.append(told)
    return found


def judge(runs, status, late, printed):
    """The Prediction of RUNS. LATE: they were ended, and what took a step
    fitted so far."""
    for told in runs:
        if late and told["outcome"] == "failed" and told["steps"]:
            told["outcome"] = FITS
    worst = max(runs, default=None, key=lambda told: (
        RANK[told["outcome"]], told.get("peak_used_bytes", 0)))
    if worst is None or worst["outcome"] == "failed":
        why = "the time is over before a step" if late else \
            f"the script ended with status {status}"
        return Prediction("unknown", why + (f": {printed}" if printed else ""),
                          worst)
    return Prediction(worst["outcome"], "", worst)
