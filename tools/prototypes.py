# SPDX-License-Identifier: Apache-2.0
"""Function names and return types out of CUDA headers, by text.

No preprocessor runs: a header declares some functions only under macros that
we would have to guess. The price is reading a few C++ wrappers as well, which
return what the function of the same name returns.
"""
import pathlib
import re

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*$", re.M | re.S)
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
# Which headers can declare a function of the C interfaces.
SKIPPED_FOLDERS = {"cccl", "thrust", "cub", "cuda", "nv", "std"}

# cuda.h and nvml.h rename functions: #define cuMemAlloc cuMemAlloc_v2, and
# #define cuMemcpy __CUDA_API_PTDS(cuMemcpy), which pastes _ptds on.
RENAME = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+"
                    r"(?:__CUDA_API_(PTDS|PTSZ)\()?(\w+)\)?[ \t]*$", re.M)
# The types of cudaTypedefs.h are named for functions: PFN_cuMemAlloc_v3020.
TYPEDEF = re.compile(r"\bPFN_(\w+?)_v\d+(?:_ptds|_ptsz)?\b")


def headers(paths):
    """Every .h file of PATHS (files or directories), less C++ libraries."""
    for path in map(pathlib.Path, paths):
        if path.is_file():
            yield path
        for child in sorted(path.rglob("*.h")):
            if not SKIPPED_FOLDERS & set(child.relative_to(path).parts):
                yield child


def return_types(text, owned):
    """{function: its return type's words} for names that satisfy OWNED."""
    text = DIRECTIVE.sub("", COMMENT.sub(" ", text))
    types = {}
    for found in CALL.finditer(text):
        name, at = found[1], found.start()
        if not owned(name) or name in types:
            continue
        # The type is what stands between the last punctuation and the name.
        before = re.split(r'[^\w\s*"]', text[max(0, at - 300):at])[-1]
        words = before.replace("*", " * ").split()
        if words and "return" not in words:
            types[name] = words
    return types


def renamed(text, functions):
    """The names that a header's macros and typedefs give to FUNCTIONS of it:
    of a macro's two names either may be the declared one."""
    names = set(TYPEDEF.findall(text))
    for old, suffix, new in RENAME.findall(text):
        if old not in functions and new not in functions:
            continue
        names |= {old, new}
        if suffix:
            names.add(f"{new}_{suffix.lower()}")
    return names
