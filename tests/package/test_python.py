#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python API and the pytest plugin, with a real pytest and a real torch."""
import os
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
sys.path[:0] = [f"{ROOT}/tests/torch", f"{ROOT}/python"]
BUILD = os.environ.get("MEMSIM_BUILD", f"{ROOT}/build")
VENV = os.environ.get("MEMSIM_VENV", f"{ROOT}/.venv")
PYTHON = f"{ROOT}/.pytest-venv/bin/python"
os.environ["PATH"] = f"{BUILD}/bin:{os.environ['PATH']}"

import memsim  # noqa: E402
from harness import Skip, equal, main, test  # noqa: E402

TORCH_JOB = "import torch; x = torch.empty({}, device='cuda')"
TESTS = """
    import os
    import pytest

    def test_plain():
        assert not os.environ.get("MEMSIM")

    @pytest.fixture
    def torch():
        torch = pytest.importorskip("torch")
        torch.set_default_device("cuda")
        return torch

    @pytest.mark.memsim(gpu="l4", max_used="90%", fail_above=90)
    def test_fits(torch):
        assert os.environ["MEMSIM"] == "1"
        torch.empty(2**30)

    @pytest.mark.memsim(gpu="l4", max_used="1GiB")
    def test_over(torch):
        torch.empty(2**30)

    @pytest.mark.memsim(gpu="l4")
    def test_out_of_memory(torch):
        torch.empty(2**34)

    @pytest.mark.memsim(gpu="l4")
    def test_fails(torch):
        assert torch.zeros(1).item() == 3

    @pytest.mark.memsim(gpu="l4", max_used="much")
    def test_bad_limit(torch):
        pass

    @pytest.mark.memsim(gpu="no-such-gpu")
    def test_bad_gpu(torch):
        pass

    @pytest.mark.memsim(gpu="l4")
    def test_no_gpu():
        pass

    @pytest.mark.memsim(gpu="l4", max_allocated=1 << 20)
    @pytest.mark.parametrize("n", [1, 2])
    def test_parameter(torch, n):
        torch.empty(n)

    @pytest.mark.memsim(gpu="l4")
    def test_ends_the_process(torch):
        torch.empty(1)
        os._exit(0)

    @pytest.mark.memsim("l4")
    def test_positional(torch):
        torch.empty(1)

    @pytest.mark.memsim(gpu="l4", max_used=float("inf"))
    def test_infinite(torch):
        torch.empty(1)

    @pytest.mark.memsim(gpu="l4")
    def test_prints(torch):
        torch.empty(1)
        os.write(1, b"\\n3 skipped\\n")

    @pytest.mark.xfail(reason="not yet")
    @pytest.mark.memsim(gpu="l4")
    def test_expected(torch):
        torch.empty(1)
        assert 0

    @pytest.mark.memsim(gpu="l4")
    @pytest.mark.skipif(True, reason="always")
    def test_skipped(torch):
        pass
"""


HANGS = """
    import os, time, pytest

    @pytest.mark.timeout(8)
    @pytest.mark.memsim(gpu="l4")
    def test_hangs():
        open(os.environ["PID_FILE"], "w").write(str(os.getpid()))
        time.sleep(300)

    def test_after():
        pass
"""


def need_torch():
    if not os.path.exists(f"{VENV}/bin/python"):
        raise Skip(f"{VENV}: no PyTorch")


@test
def a_run_returns_the_report():
    need_torch()
    command = [f"{VENV}/bin/python", "-c", TORCH_JOB.format(2**30)]
    result = memsim.run(command, gpu="l4")
    equal((result.verdict, result.status, result.fits, result.no_steps),
          ("unknown", 0, False, True))
    result = memsim.run(command, gpu="l4", whole_job=True)
    equal((result.verdict, result.status, result.fits), ("fits", 0, True))
    equal(result.peak_allocated_bytes, 2**32)
    assert result.peak_used_bytes > 2**32
    equal(result.gpu["name"], "l4")
    equal(result.ranks[0]["devices"][0]["peak_allocated_bytes"], 2**32)
    assert "memsim: fits" in result.stderr, result.stderr


@test
def a_job_that_does_not_fit_is_a_result():
    need_torch()
    result = memsim.run([f"{VENV}/bin/python", "-c", TORCH_JOB.format(2**34)],
                        gpu="l4", no_modules=True)
    equal((result.status, result.fits), (120, False))


@test
def a_kept_run_is_loaded():
    need_torch()
    with tempfile.TemporaryDirectory() as folder:
        kept = f"{folder}/kept"
        memsim.run([f"{VENV}/bin/python", "-c", TORCH_JOB.format(1024)],
                   output=kept)
        equal(memsim.load(kept).peak_allocated_bytes, 4096)


@test
def what_memsim_refuses_is_an_error():
    for options, text in (({"gpu": "no-such-gpu"}, "no GPU of that name"),
                          ({"no_such_option": 1}, "--no-such-option")):
        try:
            memsim.run(["true"], **options)
        except memsim.MemsimError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{options}: no error")
    try:
        memsim.run("true")
    except TypeError as error:
        assert "list" in str(error)
    else:
        raise AssertionError("a string was taken")


@test
def the_version_is_the_programs():
    done = subprocess.run([f"{BUILD}/bin/memsim", "--version"], check=True,
                          capture_output=True, text=True)
    equal(f"memsim {memsim.version()}\n", done.stdout)


def lives(pid):
    """Whether process PID is there, and not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid):
    end = time.monotonic() + 10
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not lives(pid)


@test
def a_time_out_ends_the_job():
    """A child of the job's, too, which ignores SIGTERM."""
    with tempfile.TemporaryDirectory() as folder:
        job = (f"cd {folder}; trap '' TERM; sleep 300 & echo $! >child; "
               "echo $$ >job; wait")
        try:
            memsim.run(["sh", "-c", job], timeout=3)
            raise AssertionError("no TimeoutExpired")
        except subprocess.TimeoutExpired:
            pass
        for name in "child", "job":
            with open(f"{folder}/{name}") as file:
                assert gone(int(file.read())), name


def install(folder):
    """What of an installed wheel pytest finds the plugin by."""
    info = f"{folder}/site/memsim-0.0.dist-info"
    os.makedirs(info)
    with open(f"{info}/METADATA", "w") as file:
        file.write("Metadata-Version: 2.1\nName: memsim\nVersion: 0.0\n")
    with open(f"{info}/entry_points.txt", "w") as file:
        file.write("[pytest11]\nmemsim = memsim.pytest_plugin\n")
    return f"{folder}/site"


def pytest_lines(*arguments, installed=False):
    """The outcome of each test of TESTS, and all that pytest printed."""
    need_torch()
    if not os.path.exists(PYTHON):
        raise Skip("no .pytest-venv: tools/setup pytest .venv")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/test_jobs.py", "w") as file:
            file.write(textwrap.dedent(TESTS))
        with open(f"{folder}/pytest.ini", "w") as file:
            file.write("[pytest]\naddopts = --strict-markers\n")
        # TESTS imports torch in a fixture: this venv's PyTorch lacks NVIDIA's
        # libraries and cannot be imported outside memsim, where pytest
        # collects the tests.
        path = [f"{ROOT}/python"]
        plugin = ["-p", "memsim.pytest_plugin"]
        if installed:
            path.append(install(folder))
            plugin = []
        done = subprocess.run(
            [PYTHON, "-m", "pytest", *plugin, "-rA", "--tb=short",
             "--junitxml=out.xml", *arguments],
            cwd=folder, capture_output=True, text=True,
            env=dict(os.environ, PYTHONPATH=":".join(path)))
        with open(f"{folder}/out.xml") as file:
            xml = file.read()
    outcomes = {}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("PASSED", "FAILED", "ERROR", "XFAIL") and "::" in rest:
            outcomes[rest.split("::")[1].split(" ")[0]] = word
    return outcomes, done.stdout + done.stderr, xml


@test
def a_marked_test_runs_under_memsim():
    outcomes, text, xml = pytest_lines()
    want = {"test_plain": "PASSED", "test_fits": "PASSED",
            "test_over": "FAILED", "test_out_of_memory": "FAILED",
            "test_fails": "FAILED", "test_bad_limit": "FAILED",
            "test_bad_gpu": "FAILED", "test_no_gpu": "FAILED",
            "test_ends_the_process": "FAILED", "test_positional": "FAILED",
            "test_infinite": "FAILED", "test_prints": "PASSED",
            "test_expected": "XFAIL",
            "test_parameter[1]": "PASSED", "test_parameter[2]": "PASSED"}
    if outcomes != want:
        raise AssertionError(f"{outcomes}\n{text}")
    for said in ("past max_used='1GiB'", "out of memory on NVIDIA L4",
                 "assert 0.0 == 3", "'much': a limit is",
                 "no GPU of that name", "the test used no GPU", "1 skipped",
                 "the test ended its process", "write memsim(gpu='l4')",
                 "inf: a limit is"):
        assert said in text, f"no {said!r} in\n{text}"
    assert 'name="memsim_peak_used_bytes"' in xml, xml


@test
def an_installed_plugin_is_not_loaded_twice():
    outcomes, text, _ = pytest_lines("-k", "test_fits", installed=True)
    if outcomes != {"test_fits": "PASSED"}:
        raise AssertionError(f"{outcomes}\n{text}")


@test
def a_time_out_of_pytest_ends_one_test_and_its_job():
    if subprocess.run([PYTHON, "-c", "import pytest_timeout"],
                      capture_output=True).returncode:
        raise Skip("no pytest-timeout in .pytest-venv")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/test_hangs.py", "w") as file:
            file.write(textwrap.dedent(HANGS))
        done = subprocess.run(
            [PYTHON, "-m", "pytest", "-p", "memsim.pytest_plugin", "-rA"],
            cwd=folder, capture_output=True, text=True,
            env=dict(os.environ, PID_FILE=f"{folder}/pid",
                     PYTHONPATH=":".join([f"{ROOT}/python", os.environ.get(
                         "PYTHONPATH", "")])))
        assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
        with open(f"{folder}/pid") as file:
            assert gone(int(file.read()))


if __name__ == "__main__":
    main()
