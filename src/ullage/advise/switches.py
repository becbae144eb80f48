# SPDX-License-Identifier: Apache-2.0
"""Switches remedies on from outside and notes what the program does already. `ullage advise` and `ullage run --allow`
have libullage_preload.so run this text at the end of `import torch`, in every Python of the program; the program itself
is not changed.

environment  ULLAGE_SWITCHES        words of the remedies, with blanks between: "autocast=bfloat16 foreach=0"
             ULLAGE_SWITCHES_FACTS  a folder: PID.json has what process PID does; if empty or unset, nothing is noted

The switch of a remedy has the effect of the lines that docs/advise.md tells a person to write; docs/advise.md has a row
for each remedy. The other words are no remedies:
  own_autocast=TYPE  the program's own autocast around its networks is on, where the program switches it off
  on=DEVICE, evaluation, if_needed, float_outputs  which forward passes `autocast` casts, and what they return
  costs=RATES, time_steps, plain_run=N             measure a step; `plain_run` also ends the process after N steps
"""
import atexit
import contextlib
import ctypes
import functools
import inspect
import json
import os
import sys
import threading
import time
import types

import torch
import torch.nn.attention
import torch.utils._python_dispatch
import torch.utils.checkpoint

STANDARD = os.path.dirname(os.__file__)  # of Python's own modules
FEWEST_LAYERS = 3  # of one class, in one list, that count as repeated


class Facts:
    """Notes what a process does. Each new fact writes the file anew, because a run may end without Python's exit
    handlers."""

    def __init__(self):
        folder = os.environ.get("ULLAGE_SWITCHES_FACTS")
        self.file = folder and f"{folder}/{os.getpid()}.json"
        self.known = {}
        self.lock = threading.Lock()

    def note(self, name, /, **more):
        """Keeps the first of each name, with the line of the program where it was seen."""
        if name not in self.known:
            self.replace(name, **line_of_program(), **more)

    def note_once(self, name, /, **known):
        """As note(), but whoever calls it says which line."""
        if name not in self.known:
            self.replace(name, **known)

    def replace(self, name, /, **more):
        if not self.file:
            return
        with self.lock, contextlib.suppress(FileNotFoundError):  # `ullage` ended, and removed the folder
            self.known[name] = more
            with open(self.file + ".part", "w") as file:
                json.dump(self.known, file)
            os.rename(file.name, self.file)


def line_of_program():
    """Returns the innermost line on the stack that belongs to no library."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if "-packages" not in name and not name.startswith((STANDARD, "<")):
            return {"file": name, "line": frame.f_lineno}
        frame = frame.f_back
    return {"file": "", "line": 0}


class Depth(threading.local):
    """Where this thread is in the program's calls."""
    calls = 0  # of modules, one inside the other
    learned = False  # a network whose call keeps something for a backward pass was called before
    in_checkpoint = False  # a checkpointed layer
    entered = None  # id of a repeated layer that was called, and whose `forward` comes next
    in_function = False  # the forward function of a torch.autograd.Function for which a backward pass will come


SWITCHES = dict(word.partition("=")[::2] for word in os.environ.get("ULLAGE_SWITCHES", "").split())
facts = Facts()
os.register_at_fork(after_in_child=facts.__init__)  # the child notes its own facts, in a file of its own
depth = Depth()
looked_at = set()  # ids of networks whose layers were looked at; a network stays alive as long as it trains
repeated = {}  # of each repeated layer, by its id: its class
followed_layers = set()  # classes of repeated layers whose `forward` is followed
learners = set()  # ids of the repeated layers that keep something for a backward pass
learning = {}  # classes of repeated layers that keep something for a backward pass: do they have BatchNorm?


facts.replace("torch", version=torch.__version__)

# ---- autocast

enter_autocast, exit_autocast = torch.autocast.__enter__, torch.autocast.__exit__


class Casting(threading.local):
    """Autocast of this thread, as a person would write it around the forward pass and the loss. It begins with the
    first call of a network. It ends when the backward pass or an optimizer's step begins, or when the `no_grad` around
    an evaluation ends. With the switch `float_outputs` it ends with the call. While the program is inside an autocast
    of its own, nothing begins or ends."""

    def __init__(self):
        self.on = None  # the autocast that was switched on
        self.evaluates = False  # it began while no gradients were recorded
        self.versions = {}  # of each network called in it: how often its weights had been written (Tensor._version)
        self.own_off = {}  # of each device: where the program began the outermost autocast, if that is switched off
        self.own = {}  # of each device: how many autocasts of the program's own this thread is inside
        self.ends = False  # it is to end as soon as the program leaves its own autocast

    def is_programs(self, device):
        """Does the program itself say here whether it wants autocast?"""
        return self.own.get(device, 0) > 0 or (self.on is None and torch.is_autocast_enabled(device))

    def begin(self, function, device):
        """`function`: the network that is called, or what a checkpoint calls."""
        if self.on is not None and self.evaluates and torch.is_grad_enabled():
            self.end()
        if self.on is None:
            self.on = allowed_autocast(device)
            enter_autocast(self.on)
            self.evaluates = not records_gradients()
            facts.note("cast", name=getattr(function, "__name__", type(function).__name__), device=device)
        if isinstance(function, torch.nn.Module):
            self.see_weights(function)

    def see_weights(self, network):
        """If the network's weights were written since its last call, drops their cached casts."""
        version = sum(weight._version for weight in network.parameters() if not weight.is_inference())
        if self.versions.setdefault(id(network), version) != version:
            self.versions[id(network)] = version
            torch.clear_autocast_cache()

    def end(self):
        if self.on is None or depth.calls:
            return
        self.ends = any(self.own.values())
        if not self.ends:
            exit_autocast(self.on, None, None, None)
            self.on = None
            self.versions.clear()

    @contextlib.contextmanager
    def off(self):
        """Switches autocast off for one forward pass that must not be cast. It is not ended, because a forward pass
        before this one may still wait for its backward pass, and its loss belongs under autocast."""
        if self.on is None:
            yield
            return
        none = torch.autocast(self.on.device, enabled=False)
        enter_autocast(none)
        try:
            yield
        finally:
            exit_autocast(none, None, None, None)


def records_gradients():
    """Will a backward pass need what is computed now? Inside an autograd function torch switches gradients off,
    although a backward pass follows."""
    return torch.is_grad_enabled() or depth.in_function


def in_backward():
    """Does autograd's engine run on this thread? Then nothing is switched on. A checkpoint that recomputes restores the
    autocast of its forward pass by itself. An adjoint method solves a second equation in its backward pass: autocast
    that a person writes around the forward pass does not reach that one either."""
    return torch._C._current_graph_task_id() != -1


def allowed_autocast(device):
    """Returns the autocast to switch on. If this torch has none of that type on the device, ends the program with a
    message and exit code 2, that of wrong use."""
    kind = SWITCHES["autocast"]
    try:
        made = torch.autocast(device, getattr(torch, kind))
        why = "" if made._enabled else "it switches autocast off"
    except RuntimeError as error:
        why = str(error)
    if not why:
        return made
    short = {"bfloat16": "bf16", "float16": "fp16"}[kind]
    print(f"ullage: --allow {short}: {device} computes no {short} with this torch: {why}", file=sys.stderr, flush=True)
    raise SystemExit(2)


casting = Casting()


@functools.cache
def runtime():
    return ctypes.CDLL("libullage_torch.so", mode=os.RTLD_LAZY | os.RTLD_NOLOAD)


def is_wanted():
    """Is a forward pass that begins now to be cast? `--allow bf16,if-needed` leaves that to the runtime."""
    return "if_needed" not in SWITCHES or runtime().ullage_casts() == 1


def ending(function):
    @functools.wraps(function)
    def ended(*args, **named):
        casting.end()
        return function(*args, **named)

    return ended


def follow_autocast():
    """Notes the program's own autocast. If the program names no type for it, it gets the type that torch had set before
    an autocast was switched on from here."""
    plain = torch.autocast.__init__

    @functools.wraps(plain)
    def made(self, device_type, dtype=None, *args, **named):
        if dtype is None and casting.on is not None and casting.on.device == device_type and not casting.own.get(device_type):
            dtype = casting.on.prev_fastdtype
        plain(self, device_type, dtype, *args, **named)

    @functools.wraps(enter_autocast)
    def entered(self):
        if self._enabled:
            facts.note("autocast")
        # A backward pass that runs checkpointed layers again switches autocast as it was in the forward pass.
        elif not (depth.calls or in_backward() or casting.own.get(self.device) or torch.is_autocast_enabled(self.device)):
            casting.own_off[self.device] = line_of_program()
            if "own_autocast" in SWITCHES:
                self._enabled, self.fast_dtype = True, getattr(torch, SWITCHES["own_autocast"])
                facts.note("cast", name="autocast", device=self.device)
        casting.own[self.device] = casting.own.get(self.device, 0) + 1
        return enter_autocast(self)

    @functools.wraps(exit_autocast)
    def left(self, *error):
        result = exit_autocast(self, *error)
        # A block may end on another thread than it began on, which is then inside of none.
        casting.own[self.device] = max(0, casting.own.get(self.device, 0) - 1)
        if not casting.own[self.device]:
            casting.own_off.pop(self.device, None)
        if casting.ends:
            casting.end()
        return result

    torch.autocast.__init__, torch.autocast.__enter__, torch.autocast.__exit__ = made, entered, left


def follow_gradients(of):
    """Makes the end of a `with` block of this kind end the autocast of an evaluation, if gradients are recorded from
    then on."""
    plain = of.__exit__

    @functools.wraps(plain)
    def left(self, *error):
        result = plain(self, *error)
        if casting.evaluates and torch.is_grad_enabled():
            casting.end()
        return result

    of.__exit__ = left


def follow_functions():
    """Sets depth.in_function during the forward pass of an autograd function, if a backward pass will come. Adjoint
    methods call networks there."""
    plain = torch.autograd.Function.apply.__func__

    @functools.wraps(plain)
    def apply(cls, *args, **named):
        if torch.compiler.is_compiling() or not torch.is_grad_enabled() or not any(
                isinstance(one, torch.Tensor) and one.requires_grad for one in args):
            return plain(cls, *args, **named)
        was, depth.in_function = depth.in_function, True
        try:
            return plain(cls, *args, **named)
        finally:
            depth.in_function = was

    torch.autograd.Function.apply = classmethod(apply)


def weight_data():
    """Returns a property in place of `Tensor.data` that also drops the cached casts: a write through `data` does not
    change the weight's version, so it would not be noticed."""
    plain = torch.Tensor.data

    def get(self):
        if casting.on is not None:
            torch.clear_autocast_cache()
        return plain.__get__(self)

    def set(self, value):
        if casting.on is not None:
            torch.clear_autocast_cache()
        plain.__set__(self, value)

    return property(get, set)


def follow_numpy():
    """NumPy has no bf16. A program that knows of no bf16 gets float32, which holds the same values."""
    plain = torch.Tensor.numpy

    @functools.wraps(plain)
    def numpy(self, **named):
        return plain(self.float() if self.dtype is torch.bfloat16 else self, **named)

    torch.Tensor.numpy = numpy


follow_autocast()
if "autocast" in SWITCHES:
    follow_numpy()
    follow_functions()
    torch.autograd.backward, torch.autograd.grad = ending(torch.autograd.backward), ending(torch.autograd.grad)
    for followed in (torch.no_grad, torch.inference_mode, torch.set_grad_enabled):
        follow_gradients(followed)
    torch.nn.Parameter.data = weight_data()
    of_steps = sys.modules["torch.optim.optimizer"]
    of_steps.register_optimizer_step_pre_hook(lambda *_: casting.end())
    of_steps.register_optimizer_step_post_hook(lambda *_: casting.end())


# ---- calls of networks: autocast, checkpoints

def tensors_in(values):
    for one in values:
        if isinstance(one, torch.Tensor):
            yield one
        elif isinstance(one, (list, tuple)):
            yield from tensors_in(one)
        elif isinstance(one, dict):
            yield from tensors_in(one.values())


def look_at(network):
    """Finds what a network is made of, at its first call."""
    if id(network) in looked_at:
        return
    looked_at.add(id(network))
    inside = set()  # ids of what is below a repeated layer; modules() gives a list before what is in it
    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            facts.note("batch_norm", name=type(module).__name__)
        if id(module) in inside or not isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict,
                                                                     torch.nn.Sequential)):
            continue
        by_class = {}
        for child in module.children():
            if len(list(child.children())) and next(child.parameters(), None) is not None:
                by_class.setdefault(type(child), []).append(child)
        for kind, layers in by_class.items():
            if len(layers) >= FEWEST_LAYERS:
                repeated.update((id(layer), kind) for layer in layers)
                follow_layer(kind)
                inside.update(id(below) for layer in layers for below in layer.modules())
    weight = next(network.parameters(), None)
    if weight is not None and weight.dtype in (torch.bfloat16, torch.float16):
        facts.note("half_weights", name=str(weight.dtype))
    if torch.backends.cudnn.benchmark:
        facts.note("cudnn_benchmark")


def note_layer(layer, args, named):
    """Notes a repeated layer at its first call that keeps something for a backward pass: a checkpoint around the others,
    such as those of a frozen teacher, saves nothing."""
    if id(layer) in learners or not torch.is_grad_enabled() or not learns(layer, args, named):
        return
    learners.add(id(layer))
    facts.note("layer_call")
    kind = repeated[id(layer)]
    if kind not in learning:
        learning[kind] = any(isinstance(one, torch.nn.modules.batchnorm._BatchNorm) for one in layer.modules())
    facts.replace("repeated_layers", **line_of_program(), name=" and ".join(one.__name__ for one in learning),
                  count=len(learners), has_batch_norm=any(learning.values()))


def learns(module, args, named):
    """Does a call of the module keep something for a backward pass, if gradients are recorded?"""
    return any(one.requires_grad for one in module.parameters()) or any(one.requires_grad for one in tensors_in((args, named)))


def is_network(module):
    return not isinstance(module, torch.nn.modules.loss._Loss) and next(module.parameters(), None) is not None


def device_of(module):
    return next(module.parameters()).device.type


def as_float(value):
    """What autocast returned in half precision, in float32: some losses take nothing else."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, dict):
        for name in list(value):
            value[name] = as_float(value[name])
        return value
    if type(value) in (list, tuple):
        return type(value)(as_float(one) for one in value)
    if isinstance(value, tuple) and hasattr(value, "_make"):  # a named one
        return value._make(as_float(one) for one in value)
    return value


def call_inside(call, module, args, named):
    """Runs a call of a module, and counts it in depth.calls: modules that it calls are not the outermost."""
    depth.calls += 1
    try:
        return call(module, *args, **named)
    finally:
        depth.calls -= 1


def call_repeated(call, layer, args, named):
    """Runs a repeated layer, in a checkpoint if that is switched on. `call`: `Module.__call__`, or the class's own
    `forward`."""
    note_layer(layer, args, named)
    if "checkpoint" not in SWITCHES or depth.in_checkpoint or not torch.is_grad_enabled():
        return call_layer(call, layer, args, named)
    return checkpoint_of_torch(lambda *args, **named: call_checkpointed(call, layer, args, named), *args,
                               use_reentrant=False, **named)


def call_layer(call, layer, args, named):
    if call is plain_call:
        depth.entered = id(layer)
    return call_inside(call, layer, args, named)


def call_checkpointed(call, layer, args, named):
    """Runs a checkpointed layer: in the forward pass, and again in the backward pass, on autograd's own thread. So the
    mark is set here, on the thread that runs the layer."""
    was, depth.in_checkpoint = depth.in_checkpoint, True
    try:
        return call_layer(call, layer, args, named)
    finally:
        depth.in_checkpoint = was


def is_evaluation(network, args, named):
    """Will no backward pass follow?"""
    if not records_gradients() or torch.jit.is_tracing():
        return True
    return not network.training and not any(one.requires_grad for one in tensors_in((args, named)))


def call_network(call, module, args, named):
    """Runs the outermost call of a network. `call`: `Module.__call__`, or the class's own `forward`."""
    look_at(module)
    device = device_of(module)
    if records_gradients():
        facts.note("forward", name=type(module).__name__, device=device)
        if not depth.learned and learns(module, args, named):  # a frozen network may be called before it
            depth.learned = True
            facts.replace("forward", **line_of_program(), name=type(module).__name__, device=device)
    if device in casting.own_off and records_gradients():
        facts.note_once("autocast_off", **casting.own_off[device])
    if "autocast" not in SWITCHES:
        return call_inside(call, module, args, named)
    return call_pass(call, module, args, named, device, is_evaluation(module, args, named))


def call_pass(call, function, args, named, device, evaluates):
    """Runs a forward pass, under autocast if it is to be cast."""
    if casting.is_programs(device) or in_backward():
        return call_inside(call, function, args, named)
    if SWITCHES.get("on", device) != device:
        facts.note("other_device", device=device)
        return call_inside(call, function, args, named)
    if "evaluation" not in SWITCHES and evaluates:
        facts.note("evaluation")
        with casting.off():
            return call_inside(call, function, args, named)
    if casting.on is None and not is_wanted():
        return call_inside(call, function, args, named)
    casting.begin(function, device)
    try:
        result = call_inside(call, function, args, named)
    except BaseException:
        casting.end()
        raise
    if "float_outputs" not in SWITCHES:
        return result
    casting.end()
    return as_float(result)


plain_call = torch.nn.Module.__call__


@functools.wraps(plain_call)
def called(module, *args, **named):
    if torch.compiler.is_compiling():
        return plain_call(module, *args, **named)
    if depth.calls == 0:
        return called_outermost(plain_call, module, args, named)
    if id(module) in repeated:
        return call_repeated(plain_call, module, args, named)
    return call_inside(plain_call, module, args, named)


def called_outermost(call, module, args, named):
    return call_network(call, module, args, named) if is_network(module) else call(module, *args, **named)


def in_place_of(plain, forward):
    """Returns a function that does what `forward` does and has the globals of the program's `plain`. torch.jit compiles a
    `forward` from the program's text (by __wrapped__) and looks that text's names up among the function's globals. So
    the names of this module that `forward` uses cannot be globals; they come in by its closure."""
    made = types.FunctionType(forward.__code__, plain.__globals__, plain.__name__, None, forward.__closure__)
    return functools.update_wrapper(made, plain)


def follow_layer(of):
    """Makes a call of the `forward` of a class of repeated layers count as a call of the layer, because a program may call
    it directly."""
    plain = of.forward
    if of in followed_layers or not isinstance(plain, types.FunctionType):
        return
    followed_layers.add(of)
    compiling, inside, layers, repeat = torch.compiler.is_compiling, depth, repeated, call_repeated

    def forward(self, *args, **named):
        if compiling():
            return plain(self, *args, **named)
        entered, inside.entered = inside.entered, None
        if entered == id(self) or not inside.calls or id(self) not in layers:
            return plain(self, *args, **named)
        return repeat(plain, self, args, named)

    of.forward = in_place_of(plain, forward)


def follow_forward(of, **named):
    """Makes a call of a class's own `forward` count as a call of the module, because a program may call it directly."""
    super(torch.nn.Module, of).__init_subclass__(**named)
    plain = vars(of).get("forward")
    if not isinstance(plain, types.FunctionType):
        return
    compiling, inside, outermost = torch.compiler.is_compiling, depth, called_outermost

    def forward(self, *args, **named):
        return plain(self, *args, **named) if compiling() or inside.calls else outermost(plain, self, args, named)

    of.forward = in_place_of(plain, forward)


torch.nn.Module.__call__ = called
if "autocast" in SWITCHES:
    torch.nn.Module.__init_subclass__ = classmethod(follow_forward)


# ---- what the program does already

checkpoint_of_torch = torch.utils.checkpoint.checkpoint


@functools.wraps(checkpoint_of_torch)
def checkpointed(function, *args, **named):
    """Replaces torch's checkpoint(), which notes at its call whether autocast is on and restores that when it
    recomputes. So a checkpoint outside any network's call begins autocast as a network's call does."""
    facts.note("checkpoint")
    network = function if isinstance(function, torch.nn.Module) and is_network(function) else None
    tensor = next(tensors_in((args, named)), None)
    if "autocast" not in SWITCHES or torch.compiler.is_compiling() or depth.calls or (network is None and tensor is None):
        return checkpoint_of_torch(function, *args, **named)
    device = tensor.device.type if network is None else device_of(network)
    evaluates = not records_gradients() if network is None else is_evaluation(network, args, named)
    return call_pass(checkpoint_of_torch, function, args, named, device, evaluates)


torch.utils.checkpoint.checkpoint = checkpointed


def follow_attention():
    """Notes attention on a card that keeps its whole matrix of scores, because the program switched off both kinds of
    kernels that do not (flash and memory-efficient). The switch `attention` allows them again."""
    plain = torch.nn.functional.scaled_dot_product_attention
    backends, kinds = torch.backends.cuda, torch.nn.attention.SDPBackend

    @functools.wraps(plain)
    def attention(*args, **named):
        if torch.compiler.is_compiling() or backends.flash_sdp_enabled() or backends.mem_efficient_sdp_enabled() or not next(
                tensors_in((args, named)), torch.empty(0)).is_cuda:
            return plain(*args, **named)
        facts.note("math_attention")
        if "attention" not in SWITCHES:
            return plain(*args, **named)
        with torch.nn.attention.sdpa_kernel([kinds.FLASH_ATTENTION, kinds.EFFICIENT_ATTENTION, kinds.MATH]):
            return plain(*args, **named)

    torch.nn.functional.scaled_dot_product_attention = attention


follow_attention()


# ---- optimizers

def optimizer_classes():
    return [one for one in vars(torch.optim).values()
            if isinstance(one, type) and issubclass(one, torch.optim.Optimizer) and one is not torch.optim.Optimizer]


def follow(optimizer):
    """Notes how the optimizer is made, and makes it with the switch's arguments."""
    plain = optimizer.__init__
    takes = inspect.signature(plain).parameters

    @functools.wraps(plain)
    def made(self, *args, **named):
        for word in ("foreach", "fused"):
            if word in takes and word in SWITCHES and not chosen(takes, args, named):
                named[word] = SWITCHES[word] == "1"
        plain(self, *args, **named)
        if next(one for one in type(self).__mro__ if one in of_torch) is optimizer:  # else it is the base class of that one
            of = self.defaults
            facts.note("optimizer", name=optimizer.__name__, foreach=of.get("foreach"), fused=of.get("fused"),
                       has_foreach="foreach" in takes, has_fused="fused" in takes, device=device_of_weights(self))

    optimizer.__init__ = made


def device_of_weights(optimizer):
    return next((weight.device.type for group in optimizer.param_groups for weight in group["params"]), "")


def note_device(optimizer, *_):
    """A program may move its network to a card after it has made the optimizer."""
    noted, device = facts.known.get("optimizer"), device_of_weights(optimizer)
    if noted and noted["name"] == type(optimizer).__name__ and noted["device"] != device:
        facts.replace("optimizer", **(noted | {"device": device}))


sys.modules["torch.optim.optimizer"].register_optimizer_step_pre_hook(note_device)


def chosen(takes, args, named):
    """Does the program itself say which kind of step it wants?"""
    given = dict(zip(list(takes)[1:], args)) | named
    return any(given.get(word) is not None for word in ("foreach", "fused"))


of_torch = optimizer_classes()
for one in of_torch:
    follow(one)


def zero_grad(of, plain):
    @functools.wraps(plain)
    def zeroed(self, set_to_none=True):
        if not set_to_none:
            facts.note("keeps_zeroed_gradients")
        return plain(self, set_to_none or "set_to_none" in SWITCHES)

    of.zero_grad = zeroed


zero_grad(torch.optim.Optimizer, torch.optim.Optimizer.zero_grad)
zero_grad(torch.nn.Module, torch.nn.Module.zero_grad)


# ---- several cards, cuDNN

def follow_replicas():
    of = torch.nn.parallel.DistributedDataParallel
    plain = of.__init__

    @functools.wraps(plain)
    def made(self, *args, **named):
        facts.note("replicas", bucket_views=bool(named.get("gradient_as_bucket_view")))
        if "bucket_views" in SWITCHES:
            named.setdefault("gradient_as_bucket_view", True)
        plain(self, *args, **named)

    of.__init__ = made


follow_replicas()

if SWITCHES.get("benchmark") == "0":
    torch.backends.cudnn.benchmark = False
    of_flags = type(torch.backends.cudnn)
    of_flags.benchmark = torch.backends.ContextProp(torch._C._get_cudnn_benchmark, lambda _: None)


# ---- how long a card would take

class Costs(torch.utils._python_dispatch.TorchDispatchMode):
    """Adds up the time that the ops of a step would take on a card whose rates are known. An op takes the longer of two
    times: its floating-point operations at the card's rate, or its bytes at the memory's rate. The time of one launch
    is added to each op. A TorchDispatchMode runs below autograd and keeps gradients alive a little longer, so no peak
    is taken from such a run."""

    FREE = {"empty", "empty_strided", "empty_like", "detach", "resize_", "set_", "_local_scalar_dense"}

    def __init__(self, rates):
        super().__init__()
        self.rates = {name: float(value) for name, _, value in (one.partition(":") for one in rates.split(","))}
        self.flops = torch.utils.flop_counter.flop_registry
        self.seconds = 0.0
        self.at_call = {}  # of each optimizer: `seconds` at its last call

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if not func.is_view and func._schema.name.removeprefix("aten::") not in self.FREE:
            tensors = [*tensors_in(args), *tensors_in((kwargs or {}).values()), *tensors_in((result,))]
            if any(one.is_cuda for one in tensors):
                self.seconds += max(self.compute(func, args, kwargs or {}, result, tensors),
                                    sum(map(bytes_of, tensors)) / self.rates["bytes"]) + self.rates["launch"]
        return result

    def compute(self, func, args, kwargs, result, tensors):
        count = self.flops.get(func._overloadpacket)
        if count is None:
            return 0.0
        kind = next((one.dtype for one in tensors if one.is_floating_point()), None)
        if kind in (torch.bfloat16, torch.float16):
            rate = self.rates["half"]
        else:
            of = torch.backends.cudnn if "conv" in func._schema.name else torch.backends.cuda.matmul
            rate = self.rates["tf32"] if of.allow_tf32 else self.rates["fp32"]
        return count(*args, **kwargs, out_val=result) / rate

    def stepped(self, optimizer, *_):
        """Notes the cost of the last whole step: from one call of the first optimizer to its next."""
        before = self.at_call.get(id(optimizer))
        self.at_call[id(optimizer)] = self.seconds
        if before is not None and id(optimizer) == next(iter(self.at_call)):
            facts.replace("costs", seconds=self.seconds - before)


def bytes_of(tensor):
    size = tensor.numel() * tensor.element_size()
    return min(size, tensor.untyped_storage().nbytes()) if tensor.layout is torch.strided else size


if "costs" in SWITCHES:
    import torch.utils.flop_counter
    costs = Costs(SWITCHES["costs"])
    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(costs.stepped)
    costs.__enter__()


# ---- the process's steps

class Steps:
    """Times the steps of the first optimizer. With `plain_run=N` it ends the process after N of them, because a run
    without Ullage's runtime has nothing else that ends it."""

    def __init__(self, most=None):
        self.left = most  # steps to go. None: Ullage's runtime ends the run, maybe inside an optimizer's step
        self.first = None  # id of the first optimizer
        self.began = None  # the CPU time at which its last step() began; a step lasts from one begin to the next
        self.step = None  # CPU time of the shortest step, on which other work has little effect; None: no step yet
        self.others = 0  # bytes of the processes that this one started, the most at a border of steps

    def is_first(self, optimizer):
        self.first = self.first or id(optimizer)
        return id(optimizer) == self.first

    def begins(self, optimizer, *_):
        if not self.is_first(optimizer):
            return
        now = time.process_time()
        if self.began is not None:
            self.step = min(now - self.began, self.step or now)
        if self.left is None:
            self.note()
        else:
            self.others = max(self.others, held_by_descendants())
        self.began = time.process_time()

    def ends(self, optimizer, *_):
        if self.left is None or not self.is_first(optimizer):
            return
        self.left -= 1
        if self.left == 0:
            self.others = max(self.others, held_by_descendants())
            self.note()
            os._exit(0)

    def note(self):
        if self.step is not None:
            facts.replace("process", peak=most_resident(), others=self.others, seconds=self.step)


def held_by_descendants():
    """Returns the private bytes of the processes that this one started, and of those that they started. Pages that they
    share with this one count in this one's peak already."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as stat:
                parents[int(entry)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass  # it has ended
    tree = [os.getpid()]
    for one in tree:
        tree += [child for child, parent in parents.items() if parent == one]
    return sum(map(private_bytes, tree[1:]))


def private_bytes(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as pages:
            return sum(int(line.split()[1]) for line in pages if line.startswith("Private_")) * 1024
    except OSError:
        return 0  # it has ended


def most_resident():
    """Returns the most bytes that this process has held, VmHWM."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) * 1024


if "plain_run" in SWITCHES or "time_steps" in SWITCHES:
    steps = Steps(int(SWITCHES["plain_run"]) if "plain_run" in SWITCHES else None)
    of_optimizers = sys.modules["torch.optim.optimizer"]
    of_optimizers.register_optimizer_step_pre_hook(steps.begins)
    of_optimizers.register_optimizer_step_post_hook(steps.ends)
    if steps.left is not None:
        atexit.register(steps.note)
