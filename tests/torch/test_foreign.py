# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside libraries that are not ours to choose: NVIDIA's packages
installed, an extension built for the other CUDA major, one newer than memsim.
Starts its own runs, so it is not itself to be started under one: MEMSIM_BUILD
says with what."""
import glob
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile

from harness import Skip, equal, main, test

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.environ.get("MEMSIM_BUILD", os.path.join(ROOT, "build"))
LIBRARIES = os.path.join(BUILD, "lib", "memsim")

# What PyTorch's wheels of CUDA 12 and 13 look for, below site-packages/nvidia.
PACKAGES = ("cu13", "cublas", "cuda_cupti", "cuda_nvrtc", "cuda_runtime",
            "cudnn", "cufft", "cufile", "curand", "cusolver", "cusparse",
            "cusparselt", "nccl", "nvjitlink", "nvshmem", "nvtx")

WORK = """
import torch
x = torch.randn(64, 64, device="cuda", requires_grad=True)
y = torch.nn.functional.conv2d(x[None, None], torch.ones(1, 1, 3, 3).cuda())
(x @ x).sum().backward()
torch.fft.fft(x)
torch.linalg.qr(x)
print(torch.arange(5, device="cuda").tolist())
"""


def compile_library(path, source, *options):
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-x", "c", "-o", path,
                    "-", "-x", "none", *options], input=source, text=True, check=True)


def run(code, *paths):
    """What CODE prints, run with PATHS before all others."""
    env = {**os.environ, "PYTHONPATH": ":".join(paths)}
    done = subprocess.run([os.path.join(BUILD, "bin", "memsim"), "run", "-q",
                           "--", sys.executable, "-c", code], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=env)
    equal((done.returncode, done.stdout), (0, done.stdout))
    return done.stdout.strip()


def link_torch(folder):
    """A site-packages in FOLDER with a torch of links: its libraries' $ORIGIN
    is there, and so is what they look for beside it."""
    real = os.path.join(sysconfig.get_path("purelib"), "torch")
    for part in ("", "lib"):
        os.mkdir(os.path.join(folder, "torch", part))
        for name in os.listdir(os.path.join(real, part)):
            if (part, name) != ("", "lib"):
                os.symlink(os.path.join(real, part, name),
                           os.path.join(folder, "torch", part, name))


@test
def installed_packages_are_left_alone():
    with tempfile.TemporaryDirectory() as folder:
        link_torch(folder)
        trap = os.path.join(folder, "trap.so")
        compile_library(trap, "#include <stdlib.h>\n__attribute__((constructor"
                        ")) static void loaded(void) { abort(); }")
        for package in PACKAGES:
            lib = os.path.join(folder, "nvidia", package, "lib")
            os.makedirs(lib)
            for ours in glob.glob(f"{LIBRARIES}/lib*.so.*"):
                os.symlink(trap, os.path.join(lib, os.path.basename(ours)))
        env = {**os.environ, "PYTHONPATH": folder}
        alone = subprocess.run([sys.executable, "-c", "import torch"], env=env,
                               stderr=subprocess.DEVNULL, check=False)
        equal(alone.returncode, -signal.SIGABRT)  # the trap is set
        where = run("import torch; print(torch.__file__)", folder)
        equal(where, os.path.join(folder, "torch", "__init__.py"))
        equal(run(WORK, folder), "[0, 1, 2, 3, 4]")


# Real packages of NVIDIA's, put there by tools/test-torch: the small ones.
REAL = os.environ.get("MEMSIM_TEST_NVIDIA", os.path.join(sys.prefix, "nvidia"))

LOADED = """
import os
print(*sorted({os.path.realpath(line.split()[-1])
               for line in open("/proc/self/maps") if ".so" in line}))
"""


def names_of(paths):
    """Base names up to their major version: libcudart.so.13."""
    return {".".join(os.path.basename(path).split(".")[:3]) for path in paths}


@test
def real_packages_are_left_alone():
    libraries = [os.path.realpath(path) for path in
                 glob.glob(f"{REAL}/nvidia/*/lib/lib*.so.*")]
    if not libraries:
        raise Skip("no packages of NVIDIA's (tools/test-torch installs some)")
    wanted = names_of(libraries) & set(os.listdir(LIBRARIES))
    assert any(name.startswith("libcudart.so") for name in wanted), wanted
    with tempfile.TemporaryDirectory() as folder:
        link_torch(folder)
        os.symlink(f"{REAL}/nvidia", os.path.join(folder, "nvidia"))
        alone = subprocess.run(
            [sys.executable, "-c", f"import ctypes; ctypes.CDLL("
             f"'{folder}/torch/lib/libc10_cuda.so')" + LOADED],
            stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        assert set(alone) & set(libraries), alone  # they would be found
        loaded = run(WORK + LOADED, folder).split("\n")[-1].split()
    equal(set(loaded) & set(libraries), set())
    ours = names_of(path for path in loaded if path.startswith(
        os.path.realpath(LIBRARIES)))
    assert wanted <= ours, wanted - ours


# A tensor of PyTorch's, written by a library that links the other runtime.
OTHER = """
int cudaMemset(void *p, int value, unsigned long bytes);
int cudaRuntimeGetVersion(int *version);
int version(void)
{
    int version;
    return cudaRuntimeGetVersion(&version) ? -1 : version / 1000;
}
int clear(void *p, unsigned long bytes)
{
    return cudaMemset(p, 0, bytes);
}
"""


@test
def an_extension_of_the_other_major():
    with tempfile.TemporaryDirectory() as folder:
        for major in (12, 13):
            path = os.path.join(folder, f"extension{major}.so")
            compile_library(path, OTHER, f"-L{LIBRARIES}",
                            f"-l:libcudart.so.{major}")
            equal(run(f"""
import ctypes, torch
extension = ctypes.CDLL({path!r})
x = torch.arange(1, 5, device="cuda")
print(extension.version(), extension.clear(ctypes.c_void_p(x.data_ptr()),
      ctypes.c_ulong(16)), x.tolist(), torch.cuda.memory_allocated())
"""), f"{major} 0 [0, 0, 3, 4] 512")


@test
def a_module_newer_than_memsim():
    with tempfile.TemporaryDirectory() as folder:
        future = os.path.join(folder, "libcudart.so.13")
        versions = os.path.join(folder, "versions")
        with open(versions, "w") as file:
            file.write("libcudart.so.13 { cudaFutureCall; };")
        compile_library(future, "int cudaFutureCall(void) { return 0; }",
                        "-Wl,-soname,libcudart.so.13",
                        f"-Wl,--version-script={versions}")
        compile_library(os.path.join(folder, "newer.so"), """
#include <Python.h>
int cudaFutureCall(void);
static PyObject *call(PyObject *self, PyObject *arguments)
{
    return PyLong_FromLong(cudaFutureCall());
}
static PyMethodDef methods[] = {{"call", call, METH_NOARGS, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "newer", "", -1,
                                    methods};
PyMODINIT_FUNC PyInit_newer(void) { return PyModule_Create(&module); }
""", "-I" + sysconfig.get_path("include"), future)
        os.unlink(future)
        equal(run("import newer, torch; print(torch.zeros(2).cuda().tolist())",
                  folder), "[0.0, 0.0]")


if __name__ == "__main__":
    main()
