# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so which module a buffer of a compiled graph belongs to.

Inductor writes a function in Python for each graph. A comment above each kernel
there names the operations that are in it, and Dynamo's graph, which the names
are of, says within which modules each was traced. So a line that allocates a
buffer leads to the module of the last operation in the kernel that follows: the
one that makes the result. Modules are found by their path from the one that was
compiled, for several of a kind may share a graph. Only forward is told apart.
"""
import re
import sys

after_import = None  # sitecustomize.py's

_ALLOCATE = "empty_strided_cuda"
_LINE = re.compile(rf"\s*\w+ = {_ALLOCATE}\(")
_NODES = re.compile(r"\s*# Topologically Sorted Source Nodes: \[([^\]]*)\]")
_MEMBER = re.compile(r"\._modules\[(['\"])([^'\"\]]+)\1\]")
_PATH = re.compile(r"L\['(\w+)'\]\.([\w.]+)")

_modules = None  # modules.py


def _places(graph, scope):
    """Of each operation of GRAPH by its name: the type of the module that was
    compiled, the path from there and the type of the module there; None where
    that is the module itself."""
    found = {}
    for node in graph.nodes:
        found[node.name] = None
        stack = node.meta.get("nn_module_stack")
        if not stack:
            continue
        name, kind = list(stack.values())[-1]
        match = _PATH.fullmatch(_MEMBER.sub(r".\2", name))
        if match and match[1] in scope:
            found[node.name] = type(scope[match[1]]), match[2], kind
    return found


def _lines(text, places):
    """The place of each line of TEXT that allocates, by its number."""
    found, waiting = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        nodes = _NODES.match(line)
        if _LINE.match(line):
            waiting.append(number)
        elif nodes and waiting:
            # Others are autograd's: what backward needs is computed here, too.
            traced = [n for n in nodes[1].split(", ") if n in places]
            place = places[traced[-1]] if traced else None
            if place:
                found.update(dict.fromkeys(waiting, place))
            waiting = []
    return found


def _find(top, place):
    """The number of the module at PLACE of the one numbered TOP; 0: none."""
    root, path, kind = place
    known = _modules._by_number.get(top)
    module = known.ref() if known is not None else None
    module = getattr(module, "_orig_mod", module)
    if type(module) is not root:
        return 0
    for name in path.split("."):
        module = getattr(module, "_modules", {}).get(name)
    known = _modules._known.get(id(module))
    return known.id if type(module) is kind and known is not None else 0


def _named(allocate, lines):
    """ALLOCATE, which says for which module it is called."""
    numbers = {}
    top, within = _modules._top, _modules._core.memsim_tag_within

    def named(*args):
        module = top()
        if not module:
            return allocate(*args)
        key = module, sys._getframe(1).f_lineno
        number = numbers.get(key)
        if number is None:
            place = lines.get(key[1])
            number = numbers[key] = _find(module, place) if place else 0
        if not number:
            return allocate(*args)
        within(number)
        try:
            return allocate(*args)
        finally:
            within(0)

    named.named = True
    return named


def _name(code, places):
    """The buffers of the generated module CODE, once."""
    allocate = getattr(code, _ALLOCATE, None)
    if allocate is None or hasattr(allocate, "named"):
        return
    with open(code.__file__) as file:
        lines = _lines(file.read(), places)
    if lines:
        setattr(code, _ALLOCATE, _named(allocate, lines))


def _loaded():
    """The generated modules, by their id()."""
    cache = sys.modules.get("torch._inductor.codecache")
    cache = getattr(cache, "PyCodeCache", None)
    modules = getattr(cache, "modules", None)
    if modules is None:
        modules = getattr(cache, "cache", {}).values()
    return {id(module): module for module in list(modules)}


def _follow():
    output = sys.modules["torch._dynamo.output_graph"].OutputGraph
    compile_graph = output.call_user_compiler

    def call_user_compiler(self, graph, *args, **kwargs):
        try:
            places = _places(graph.graph, self.local_scope)
            before = _loaded() if places else {}
        except Exception:  # another PyTorch's
            places = {}
        result = compile_graph(self, graph, *args, **kwargs)
        try:
            for key, code in _loaded().items() if places else ():
                if key not in before:
                    _name(code, places)
        except Exception as error:
            _modules._core.memsim_note(
                b"modules under torch.compile are not told apart: %s",
                _modules._text(repr(error)[:200]))
        return result

    output.call_user_compiler = call_user_compiler


def start():
    global _modules
    _modules = sys.modules[__name__.replace("compiled", "modules")]
    _modules._core.memsim_tag_within.restype = None
    after_import("torch._dynamo.output_graph", _follow)
