# SPDX-License-Identifier: Apache-2.0
"""Starts memsim and returns what it wrote as JSON."""
import json
import os
import shutil
import signal
import subprocess
import tempfile

# Of memsim run (man memsim, EXIT STATUS).
OUT_OF_MEMORY, OVER_LIMIT, FAILED = 120, 121, 125


class MemsimError(Exception):
    """memsim itself failed, or was not found. The message says why."""


class Result:
    """The report of a run. Attributes are the members of the JSON
    (memsim-json(5)): result.verdict, result.ranks[0]["devices"]."""

    def __init__(self, json, status, stdout="", stderr=""):
        self.json = json
        self.status = status  # of memsim run; see man memsim, EXIT STATUS
        self.stdout = stdout  # of the command
        self.stderr = stderr  # of the command, and memsim's summary

    def __getattr__(self, name):
        try:
            return self.__dict__["json"][name]
        except KeyError:
            raise AttributeError(f"the report has no member {name!r}") from None

    def __repr__(self):
        return (f"<memsim.Result {self.verdict}: {self.peak_used_bytes} of "
                f"{self.capacity_bytes} bytes>")

    @property
    def devices(self):
        """The figures of each GPU of each rank, one after the other."""
        return [d for rank in self.ranks for d in rank["devices"]]

    @property
    def fits(self):
        """Whether it fits. False, too, where no GPU was used ("none")."""
        return self.verdict == "fits"

    def _most(self, name):
        return max((d.get(name, 0) for d in self.devices), default=0)

    @property
    def peak_used_bytes(self):
        """On the fullest GPU, as nvidia-smi counts. 0: no GPU was used."""
        return self._most("peak_used_bytes")

    @property
    def peak_reserved_bytes(self):
        return self._most("peak_reserved_bytes")

    @property
    def peak_allocated_bytes(self):
        return self._most("peak_allocated_bytes")

    @property
    def capacity_bytes(self):
        """Of each GPU."""
        return self._most("capacity_bytes") or self.gpu["memory_bytes"]

    @property
    def step_ns(self):
        """The predicted time of a step, or None."""
        return (self.json.get("time") or {}).get("step_ns")


def program(name="memsim"):
    """The path of memsim: of this wheel, else of PATH."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prefix",
                       "bin", name)
    path = own if os.access(own, os.X_OK) else _other_than_launcher(name)
    if not path:
        raise MemsimError(f"{name}: not in this package and not in PATH; "
                          "install memsim, or add its bin to PATH")
    return path


def _other_than_launcher(name):
    """Of PATH, but no script: that may be this package's launcher."""
    for directory in os.get_exec_path():
        path = shutil.which(name, path=directory)
        if path:
            with open(path, "rb") as file:
                if file.read(4) == b"\x7fELF":
                    return path
    return None


def version():
    """The release and the commit, as memsim --version prints them."""
    done = subprocess.run([program(), "--version"], capture_output=True,
                          text=True, check=True)
    return done.stdout.split(" ", 1)[1].strip()


def load(path):
    """The result in a file of --json, or of a directory of `memsim run -o`."""
    if not os.path.isdir(path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return Result(data, data.get("exit_status", 0))
    with tempfile.TemporaryDirectory(prefix="memsim-") as scratch:
        out = os.path.join(scratch, "report.json")
        done = subprocess.run([program(), "report", path, "--json", out],
                              capture_output=True, text=True)
        if not os.path.exists(out):
            raise MemsimError(done.stderr.strip() or f"{path}: no report")
        return load(out)


def _option(name, value):
    """gpu="l4" as --gpu l4, force=True as --force."""
    flag = "--" + name.replace("_", "-")
    if value is True:
        return [flag]
    if value is None or value is False:
        return []
    if isinstance(value, (list, tuple)):
        return [word for each in value for word in (flag, str(each))]
    return [flag, str(value)]


# A job that is to end gets so long to do so by itself.
GRACE_S = 5


def _job_end(job):
    """Ends JOB and what it started: memsim passes the signal on."""
    for number in signal.SIGTERM, signal.SIGKILL:
        try:
            os.killpg(job.pid, number)
        except ProcessLookupError:
            break
        try:
            job.communicate(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            pass


def _job_run(words, timeout, **how):
    """(status, stdout, stderr) of WORDS, in a process group of its own. Where
    anything is raised meanwhile, also by a signal's handler, no process is
    left."""
    job = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           text=True, errors="replace", start_new_session=True,
                           **how)
    try:
        out, err = job.communicate(timeout=timeout)
    except BaseException:
        _job_end(job)
        raise
    return job.returncode, out, err


def run(command, *, cwd=None, env=None, timeout=None, **options):
    """Runs COMMAND (a list of words) as `memsim run OPTIONS -- COMMAND` and
    returns a Result. An option's name is a keyword, with _ for -:
    run(cmd, gpu="l4", alloc_conf="expandable_segments:True", advice=True).
    A job that does not fit, or that fails, is a Result too: see .verdict and
    .status. Raises MemsimError where memsim made no report, and
    subprocess.TimeoutExpired after TIMEOUT seconds, when the job has been ended.
    The job ends with this process, too."""
    if isinstance(command, str):
        raise TypeError("command: a list of words, such as "
                        "['python', 'train.py'], not a string")
    with tempfile.TemporaryDirectory(prefix="memsim-") as scratch:
        out = os.path.join(scratch, "report.json")
        words = [program(), "run", "--kill-with-memsim", "--json", out]
        for name, value in options.items():
            words += _option(name, value)
        status, told, err = _job_run(
            words + ["--"] + [os.fspath(w) for w in command], timeout, cwd=cwd,
            env=env)
        if not os.path.exists(out):
            raise MemsimError(err.strip() or f"memsim run: status {status}")
        with open(out, encoding="utf-8") as file:
            return Result(json.load(file), status, told, err)
