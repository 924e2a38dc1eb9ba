# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so which module is at work, and what lies where.

PyTorch calls these hooks around every module's forward and every optimizer's
step. They allocate nothing on the card, keep no module or tensor alive, and
change nothing that passes through them.
"""
import atexit
import ctypes
import functools
import gc
import os
import sys
import weakref

import torch
from torch.nn.modules import module as nn_module
from torch.optim import optimizer as optim

# enum trace_category
PARAMETER, BUFFER, GRADIENT, OPTIMIZER, INPUT = range(1, 6)

LEARNS, IDLE = 1, 2  # enum trace_learns

NEWEST = 2, 15  # whose peaks are known to be the same with us and without

SEARCHES = 4  # for modules that were added to a parent
SEARCH_STEPS = 1, 10, 100, 1000  # after which models are looked for

_LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # as sitecustomize.py says
_core = ctypes.PyDLL(_LIBRARY)  # keeps the GIL: its functions are short
_enter = _core.memsim_tag_enter
_leave = _core.memsim_tag_leave
_step = _core.memsim_tag_step
_top = _core.memsim_tag_top
_cut = _core.memsim_tag_cut
_range = _core.memsim_tag_range
_storage = _core.memsim_tag_storage
_storage.argtypes = (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32,
                     ctypes.c_uint32, ctypes.c_uint32)
_batch = _core.memsim_tag_batch
_batch.argtypes = (ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64,
                   ctypes.c_uint32, ctypes.c_uint64)
_input = _core.memsim_tag_input
_output = _core.memsim_tag_output
_input.argtypes = _output.argtypes = ctypes.c_uint64, ctypes.c_uint32
_host_state = _core.memsim_host_state
_host_state.argtypes = ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64
for _function in (_enter, _leave, _step, _cut, _range, _storage, _input,
                  _output, _batch, _host_state):
    _function.restype = None

_CALL = nn_module.Module._call_impl.__code__
_calls = sys.modules[__name__.replace("modules", "places")]
_sizes = sys.modules[__name__.replace("modules", "sizes")]

_is_compiling = (getattr(torch.compiler, "is_dynamo_compiling", None)
                 or getattr(torch.compiler, "is_compiling", None)
                 or torch._utils.is_compiling)  # before PyTorch 2.2


class _Known:
    """A module that has a number."""

    __slots__ = "id", "root", "path", "ref", "searches", "parameters", "listed", \
        "caller", "seen"


_known = {}  # by id() of the module
_replicas = {}  # weak references to DataParallel's copies, by their id()
_graphs = {}  # weak references to compiled graphs, by their id()
_by_number = {}
_retired = {}  # numbers of modules that are gone, by root and path
_owners = {}  # numbers of modules by id() of their parameters, and names
_places = {}  # where two parameters of a root were when all were told
_waiting = None  # a root whose batch is not known yet, and whether it learns
_hosts = weakref.WeakKeyDictionary()  # what an optimizer has on the host
_states = weakref.WeakKeyDictionary()  # how many an optimizer had
_taken = weakref.WeakKeyDictionary()  # steps of an optimizer, for --stop-after
_count = 0
_steps = 0


def _text(name):
    """NAME in C: whatever it is, it is UTF-8 without a NUL."""
    text = str(name).encode("utf-8", "backslashreplace")
    return text.replace(b"\0", b"\\0")


def _forget(known, key):
    if _known.get(key) is not known:
        return
    del _known[key]
    _by_number.pop(known.id, None)
    _places.pop(known.id, None)
    root = 0 if known.root == known.id else known.root
    _retired[root, known.path] = known.id
    for parameter in known.parameters:
        if _owners.get(parameter, (0, 0))[0] == known.id:
            del _owners[parameter]


def _number(module, root, path):
    """Numbers MODULE, at PATH below the module numbered ROOT (0: itself). One
    like it that is gone leaves its number to it, so that a script which makes
    modules all the time does not run out of them."""
    global _count
    key = id(module)
    known = _known.get(key)
    if known is None:
        known = _Known()
        known.id = _retired.pop((root, path), 0)
        if not known.id:
            known.id = _count = _count + 1
        known.searches = known.caller = known.seen = 0
        known.parameters = ()
        known.ref = weakref.ref(module, lambda _: _forget(known, key))
        _known[key] = _by_number[known.id] = known
    known.root = root or known.id
    known.path = path
    known.listed = (path.rpartition(".")[2].isdigit()
                    and bool(module.__dict__.get("_modules")))
    _core.memsim_tag_module(known.id, known.root, _text(path))
    return known


def _children(module):
    """(path, module) for all below MODULE, each once; as named_modules() does
    it, which a subclass may have overridden."""
    seen = {id(module)}
    stack = [("", module)]
    while stack:
        prefix, parent = stack.pop()
        if parent is not module:
            yield prefix, parent
        below = []
        for name, child in list(parent.__dict__.get("_modules", {}).items()):
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                below.append((f"{prefix}.{name}" if prefix else name, child))
        stack += reversed(below)


def _name_root(module):
    """MODULE was called by no other one: it names all below it."""
    root = _number(module, 0, type(module).__name__)
    for path, child in _children(module):
        _number(child, root.id, path)
    return root


def _below(parent, path):
    return path if parent.root == parent.id else f"{parent.path}.{path}"


def _is_graph(module):
    """Whether MODULE, which no other one has, is a graph that was compiled: of
    a module, or of several like it. What is in it is theirs."""
    key = id(module)
    if key not in _graphs and isinstance(module, torch.fx.GraphModule):
        _graphs[key] = weakref.ref(module, lambda _, take=_graphs.pop:
                                   take(key, None))
    return key in _graphs


def _name_below(parent, module):
    """MODULE is new, and was called by PARENT's forward: it was added to it, or
    made on the fly. None: it is a compiled graph."""
    above = parent.ref()
    if parent.searches < SEARCHES and above is not None:
        parent.searches += 1
        for path, child in _children(above):
            if id(child) not in _known:
                known = _number(child, parent.root, _below(parent, path))
                _tell_module(child, known)
        if id(module) in _known:
            return _known[id(module)]
    if _is_graph(module):
        return None
    path = _below(parent, f"({type(module).__name__})")
    known = _number(module, parent.root, path)
    _tell_module(module, known)
    return known


def _addresses(tensor):
    """Where TENSOR's storages begin on the card."""
    try:
        parts = getattr(type(tensor), "__tensor_flatten__", None)
        if parts is not None:
            for name in tensor.__tensor_flatten__()[0]:
                yield from _addresses(getattr(tensor, name))
        elif tensor.is_cuda:
            address = tensor.untyped_storage().data_ptr()
            if address:
                yield address
    except Exception:  # fake tensors, lazy parameters, functorch's wrappers
        return


@functools.lru_cache(maxsize=4096)
def _name(text):
    """The number of a name that is written to the trace once."""
    return _core.memsim_name(_text(text)) if text else 0


def _tell(tensor, number, category, name=0):
    for address in _addresses(tensor):
        size = tensor.element_size() if tensor.is_floating_point() else 0
        _storage(address, number, category, size, name)


def _tell_module(module, known, owned=frozenset()):
    """Says where the tensors of MODULE lie, but for the parameters OWNED."""
    attributes = module.__dict__
    parameters = [(name, p)
                  for name, p in list(attributes.get("_parameters", {}).items())
                  if p is not None and id(p) not in owned]
    known.parameters = [id(p) for _, p in parameters]
    for name, parameter in parameters:
        _owners[id(parameter)] = known.id, name
        _tell(parameter, known.id, PARAMETER, _name(name))
    for name, buffer in list(attributes.get("_buffers", {}).items()):
        if isinstance(buffer, torch.Tensor):
            _tell(buffer, known.id, BUFFER, _name(name))


def _tell_root(root):
    """Says where the parameters and buffers of ROOT's modules lie. What two of
    them share is the first one's."""
    module = root.ref()
    owned = set()
    for part in (module, *(child for _, child in _children(module))):
        known = _known.get(id(part))
        if known is not None:
            _tell_module(part, known, owned)
            owned.update(known.parameters)


def _sample(module):
    """Changes when MODULE's parameters move: where two of them are."""
    found = []
    stack = [module]
    while stack and len(found) < 2:
        top = stack.pop()
        found += [p for p in top.__dict__.get("_parameters", {}).values()
                  if p is not None][:1]
        stack += [m for m in top.__dict__.get("_modules", {}).values()
                  if m is not None]
    return [a for p in found for a in _addresses(p)]


def _keywords():
    """A hook for all modules does not get the keyword arguments; the caller of
    _guarded has them."""
    kwargs = sys._getframe(3).f_locals.get("kwargs")
    return kwargs if isinstance(kwargs, dict) else {}


def _tell_batch(root, args, keywords, learns):
    """ROOT's module, which has parameters on the card, was called with ARGS and
    KEYWORDS; it has been entered. LEARNS: enum trace_learns. Where they do not
    say how large the batch is, the images that the first module inside gets may."""
    global _waiting
    batch = _sizes.batch(args, keywords)
    if batch.samples:
        _put_batch(root, batch, learns)
        _waiting = None
    else:
        _waiting = root, learns


def _put_batch(root, batch, learns):
    _batch(root.id, batch.samples, batch.tokens, learns, batch.values)
    if _sizes.called is not None and learns == LEARNS:
        _sizes.called(batch)


def _tell_inner(args):
    """A module inside the one that _tell_batch waits for was called."""
    global _waiting
    images = _sizes.images(args)
    if images.samples:
        root, learns = _waiting
        _waiting = None
        _put_batch(root, images, learns)


def _begin(module):
    """MODULE is called, and is inside no other one."""
    known = _known.get(id(module)) or _name_root(module)
    place = _sample(module)
    if _places.get(known.id) != place:
        _places[known.id] = place
        _tell_root(known)
    return known


def _pass(tell, values, known):
    """What goes from one of a row of blocks to the next."""
    for tensor in _sizes.tensors([values]):
        for address in _addresses(tensor):
            tell(address, known.id)


def _depth():
    """How many modules' forwards this thread is in."""
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        depth += frame.f_code is _CALL
        frame = frame.f_back
    return depth


def _before(module, args):
    known = _known.get(id(module))
    top = _top()
    if top and (known is None or known.caller != top):
        if id(module) in _graphs:
            return
        # A KeyboardInterrupt, say, may have left TOP: PyTorch calls no hook.
        _cut(_depth() - 1)
        top = _top()
    if not top:
        known = _begin(module)
        keywords = _keywords()
        for tensor in _sizes.tensors([*args, *keywords.values()]):
            _tell(tensor, known.id, INPUT)
    elif known is None:
        parent = _by_number.get(top)
        known = (_name_below(parent, module) if parent is not None
                 else _name_root(module))
        if known is None:
            return
    known.caller = top
    if top and _waiting:
        _tell_inner(args)
    if known.listed:
        _pass(_input, args, known)
        if not known.seen:
            known.seen = 1
            _calls.see_member(sys._getframe(), module, known)
    _enter(known.id)
    if not top:
        learns = torch.is_grad_enabled()
        if learns:
            _calls.see_model(sys._getframe(), module)
        _calls.look(sys._getframe(), learns and module.training)
        if _places[known.id]:
            _tell_batch(known, args, keywords,
                        learns and (LEARNS if module.training else IDLE))


def _after(module, args, result):
    known = _known.get(id(module))
    if known is not None:
        if known.listed:
            _pass(_output, result, known)
        _leave(known.id)


def _before_step(optimizer, args, kwargs):
    if _top():
        _cut(_depth())
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            owner = _owners.get(id(parameter))
            if owner is None:  # no module's that was called
                owner = _owners[id(parameter)] = 0, ""
                _tell(parameter, 0, PARAMETER)
            gradient = parameter.grad
            if gradient is not None:
                _tell(gradient, owner[0], GRADIENT, _name(owner[1]))
    _step(1)


def _tell_state(optimizer):
    for parameter, state in list(optimizer.state.items()):
        if not isinstance(state, dict):
            continue
        owner, name = _owners.get(id(parameter), (0, ""))
        for key, value in list(state.items()):
            for tensor in _sizes.tensors([value]):
                _tell(tensor, owner, OPTIMIZER,
                      _name(f"{key} of {name}" if name else key))


def _on_host(tensor):
    """(address, bytes) of TENSOR's storages on the host."""
    try:
        parts = getattr(type(tensor), "__tensor_flatten__", None)
        if parts is not None:
            for name in tensor.__tensor_flatten__()[0]:
                yield from _on_host(getattr(tensor, name))
        elif tensor.device.type == "cpu":
            storage = tensor.untyped_storage()
            yield storage.data_ptr(), storage.nbytes()
    except Exception:  # as in _addresses
        return


def _host_parts(tensors):
    """Bytes on the host by address."""
    return dict(part for tensor in tensors for part in _on_host(tensor))


def _host_bytes(tensors):
    return sum(_host_parts(tensors).values())


def _model_parameters():
    """Of the models that were called. DeepSpeed's ZeRO-3 has what is left of a
    parameter beside it."""
    for known in list(_known.values()):
        module = known.ref() if known.root == known.id else None
        for parameter in module.parameters() if module is not None else ():
            yield getattr(parameter, "ds_tensor", parameter)


def _tell_host(optimizer):
    """Says what of OPTIMIZER's tensors and of the models lies on the host. An
    optimizer may have copies of the parameters."""
    parameters = [p for group in optimizer.param_groups
                  for p in group["params"]]
    states = [s for s in optimizer.state.values() if isinstance(s, dict)]
    _hosts[optimizer] = (
        _host_parts(parameters),
        _host_bytes(p.grad for p in parameters if p.grad is not None),
        _host_bytes(_sizes.tensors([list(s.values()) for s in states])))
    held = _host_parts(_model_parameters())
    for parts, _, _ in _hosts.values():
        held.update(parts)
    if held:
        _host_state(sum(held.values()),
                    *(sum(part) for part in list(zip(*_hosts.values()))[1:]))


def _after_step(optimizer, args, kwargs):
    global _steps
    _step(0)
    if _states.get(optimizer) != len(optimizer.state):
        _states[optimizer] = len(optimizer.state)
        _tell_state(optimizer)
    _steps += 1
    _calls.see_step()
    if optimizer not in _hosts:
        _tell_host(optimizer)
    if _steps in SEARCH_STEPS:
        _find_models()


def _stop_when_enough(optimizer, args, kwargs):
    """--stop-after: the program ends with the last step that is wanted."""
    wanted = os.environ.get("MEMSIM_STOP_AFTER")
    if not wanted:
        return
    _taken[optimizer] = _taken.get(optimizer, 0) + 1
    if _taken[optimizer] >= int(wanted):
        raise SystemExit(0)


def _is_on_card(module):
    parts = [module, *(child for _, child in _children(module))]
    return any(isinstance(tensor, torch.Tensor) and any(_addresses(tensor))
               for part in parts for name in ("_parameters", "_buffers")
               for tensor in list(part.__dict__.get(name, {}).values()))


def _parameters(module):
    """Name and parameter of MODULE, which may be gone, and None."""
    return list(getattr(module, "__dict__", {}).get("_parameters", {}).items())


def _named_parameters():
    """Number of the module, and parameter, by the name in named_parameters();
    of models that share a name the last one."""
    found = {}
    for known in list(_known.values()):
        prefix = "" if known.root == known.id else known.path + "."
        for name, parameter in _parameters(known.ref()):
            if parameter is not None:
                found[prefix + name] = known.id, parameter
    return found


def _tell_copies(dicts):
    """Averages of weights that lie in a plain dict are parameters, too: those
    with a parameter's name and shape that are neither it nor its gradient."""
    named = _named_parameters()
    taken = {address for _, parameter in named.values()
             for tensor in (parameter, parameter.grad) if tensor is not None
             for address in _addresses(tensor)}
    for copies in dicts:
        for name, tensor in list(copies.items()):
            owner, parameter = named.get(name, (0, None))
            if (owner and isinstance(tensor, torch.Tensor)
                    and tensor.shape == parameter.shape
                    and taken.isdisjoint(_addresses(tensor))):
                _tell(tensor, owner, PARAMETER,
                      _name(name.rpartition(".")[2]))


def _find_models():
    """Names the models on the card that nobody has called: teachers, averages
    of weights, Lightning's modules."""
    objects = gc.get_objects()
    _tell_copies([o for o in objects if type(o) is dict and o
                  and issubclass(type(next(iter(o.values()))), torch.Tensor)
                  and type(next(iter(o))) is str])
    found = [o for o in objects
             if issubclass(type(o), nn_module.Module)
             and "_modules" in o.__dict__ and id(o) not in _known]
    del objects
    below = {id(child) for o in found for child in o._modules.values()}
    for module in found:
        if id(module) not in below and _is_on_card(module):
            _tell_root(_name_root(module))


def _finish():
    """The script is over, maybe for lack of memory in the middle of a step."""
    _find_models()
    for known in list(_known.values()):
        for name, parameter in _parameters(known.ref()):
            gradient = None if parameter is None else parameter.grad
            if gradient is not None:
                _tell(gradient, known.id, GRADIENT, _name(name))
        known.ref = _gone  # whose call would find nothing of ours any more
    _core.memsim_tag_end()


def _at_exit():
    try:
        _guarded(_finish)()
    except KeyboardInterrupt:
        pass  # the user's second: what is left to tell goes untold


def _gone():
    return None


def _guarded(hook):
    """HOOK, whose failure the script does not notice."""
    def guarded(*args):
        if _is_compiling():
            return
        try:
            hook(*args)
        except Exception as error:
            _core.memsim_note(b"modules may be told apart wrongly: %s in "
                              b"memsim's %s", _text(repr(error)[:200]),
                              _text(hook.__name__))
    return guarded


def _name_buckets():
    """DDP's reducer takes its buckets when it is made and once again, and no
    other call says where they lie."""
    reducer = getattr(torch.distributed, "Reducer", None)

    def within(function):
        @functools.wraps(function)
        def ranged(*args, **kwargs):
            _range(b"c10d::Reducer")
            try:
                return function(*args, **kwargs)
            finally:
                _range(None)
        return ranged

    for name in ("__init__", "_rebuild_buckets"):
        if hasattr(reducer, name):
            setattr(reducer, name, within(getattr(reducer, name)))


def _name_replicas():
    """DataParallel copies its module to each GPU, at each call. A copy is what it
    is a copy of."""
    replicate = getattr(nn_module.Module, "_replicate_for_data_parallel", None)
    if replicate is None:
        return

    @functools.wraps(replicate)
    def named(module):
        replica = replicate(module)
        _guarded(_name_replica)(module, replica)
        return replica

    nn_module.Module._replicate_for_data_parallel = named


def _name_replica(module, replica):
    known, key = _known.get(id(module)), id(replica)
    if known is None:
        return

    def gone(reference):
        if _replicas.get(key) is reference:
            del _replicas[key]
            if _known.get(key) is known:
                del _known[key]
    _replicas[key] = weakref.ref(replica, gone)
    _known[key] = known


def _hide(*handles):
    """torch.compile warns a script that has global hooks. Ours, which HANDLES
    are of, do not count: the question is whether there are any of its own."""
    ours = {handle.id for handle in handles}

    def _has_any_global_hook():
        return any(not ours.issuperset(hooks) for hooks in (
            nn_module._global_backward_pre_hooks,
            nn_module._global_backward_hooks,
            nn_module._global_forward_pre_hooks,
            nn_module._global_forward_hooks))

    if hasattr(nn_module, "_has_any_global_hook"):  # not in 2.5
        nn_module._has_any_global_hook = _has_any_global_hook


def start():
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    if version > NEWEST:
        _core.memsim_note(b"that modules are told apart may change the peaks "
                          b"of PyTorch later than %d.%d: see --no-modules",
                          *NEWEST)
    _core.memsim_tag_start()
    _name_buckets()
    _name_replicas()
    _hide(nn_module.register_module_forward_pre_hook(_guarded(_before)),
          nn_module.register_module_forward_hook(_guarded(_after),
                                                 always_call=True))
    optim.register_optimizer_step_pre_hook(_guarded(_before_step))
    optim.register_optimizer_step_post_hook(_guarded(_after_step))
    optim.register_optimizer_step_post_hook(_stop_when_enough)
    atexit.register(_at_exit)
