# SPDX-License-Identifier: Apache-2.0
"""Works out values that a program's control flow reads in a dry run. Kernels do nothing there, so nothing on the card
has content.

A value that came from the host, or from a constant, is known. If all inputs of a torch function are known and small, it
is called on the CPU too, in addition to the dry call. So values that the program reads from its result are true: masks,
lengths, loop conditions. All else is unknown and reads as zeros. If a size depends on unknown values, it is taken as
the largest possible, with two exceptions: repeat_interleave repeats each element once, and bincount has one bin. Then
function and line are noted. If an unknown condition decides whether the program raises an error, it is given the value
with which none is raised.

Calls of Python are followed, but not those of the backward pass, because a mode below autograd would change when
gradients are freed. What the backward pass writes is noticed by the version that autograd counts for each tensor.
"""
import ctypes
import dis
import functools
import importlib
import os
import sys

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode

MOST_BYTES = 1 << 16  # of one storage whose values are followed; a tensor of more elements has more bytes too
MOST_PLACES = 100  # of the program at which unknown sizes are noted

# These tables list functions by their names, because a function and the method of that name are treated alike. The
# functions of the first table compute no values, or random ones.
NOT_COMPUTED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "rand", "rand_like",
                "randn", "randn_like", "randint", "randint_like", "randperm", "normal", "normal_", "uniform_", "random_",
                "bernoulli", "bernoulli_", "multinomial", "poisson", "exponential_", "geometric_", "cauchy_", "log_normal_",
                "dropout", "dropout_", "set_", "resize_", "record_stream", "backward", "requires_grad_", "retain_grad",
                "register_hook", "data_ptr", "untyped_storage", "pin_memory", "share_memory_"}
OVERWRITES = {"copy_", "fill_", "zero_"}
# These read the shape of their first argument, and none of its values.
BY_SHAPE = {"zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full"}
# Functions that are called on the CPU with this in place of an unknown input: numbers count as finite, checks as
# passed.
WHERE_UNKNOWN = {"_amp_update_scale_": torch.zeros_like, "isfinite": torch.zeros_like,
                 "_is_all_true": lambda tensor: torch.ones((), dtype=tensor.dtype, device="cpu")}
# In these functions one input alone can decide: the value beside a name is that of an input which decides. "length
# reached or value found" is true once the length is reached, even if the value is unknown. So such a loop ends there.
DECIDED_BY = {"__or__": True, "__ror__": True, "__ior__": True, "bitwise_or": True, "logical_or": True,
              "__and__": False, "__rand__": False, "__iand__": False, "bitwise_and": False, "logical_and": False}
# Functions that write some of their arguments: the places of these arguments, from 0 on.
WRITES_ARGUMENTS = {"batch_norm": (3, 4), "instance_norm": (3, 4)}


def masks_in(index):
    parts = index if isinstance(index, (tuple, list)) else (index,)
    return [one for one in parts if isinstance(one, torch.Tensor) and one.dtype in (torch.bool, torch.uint8)]


# Functions that read from the card how many elements of a tensor are not zero. Each has a function of the arguments
# that returns these tensors, in the order of the reads.
COUNTS = {"nonzero": lambda args: [args[0]], "argwhere": lambda args: [args[0]],
          "where": lambda args: [args[0]] if len(args) == 1 else [],
          "__getitem__": lambda args: masks_in(args[1]), "__setitem__": lambda args: masks_in(args[1]),
          "index_put_": lambda args: masks_in(args[1]), "index_put": lambda args: masks_in(args[1]),
          "masked_select": lambda args: [torch.broadcast_tensors(*args[:2])[1]]}


class Size:
    """For a function that reads the size of its result from the card. Says which values its reads return for a known
    result, and which for unknown inputs."""

    def __init__(self, known, unknown, how="the most", of=lambda args, named: args[0]):
        self.known, self.unknown = known, unknown
        self.how = how  # what is assumed for an unknown size; None: no size is unknown
        self.of = of  # returns the argument that it reads; if that is no tensor, it reads nothing


def first_of(result):
    return result[0] if isinstance(result, tuple) else result


def elements(args, named):
    dim = named.get("dim")
    return [args[0].numel() if dim is None else args[0].shape[dim]]


def repeats(args, named):
    return named["repeats"] if "repeats" in named else args[1] if len(args) > 1 else args[0]


SIZES = {"unique": Size(lambda result: [first_of(result).shape[0]], elements),
         "unique_consecutive": Size(lambda result: [first_of(result).shape[0]], elements),
         # It reads the sum, then whether all are above zero.
         "repeat_interleave": Size(lambda result: [result.shape[0], 1], lambda args, named: [repeats(args, named).numel(), 1],
                                   "one of each", repeats),
         # In older versions of torch it reads whether all are valid, then whether the sum is zero.
         "multinomial": Size(lambda result: [1, 0], lambda args, named: [1, 0], None),
         # It reads the least, then the largest.
         "bincount": Size(lambda result: [0, result.shape[0] - 1], lambda args, named: [0, 0], "one bin")}

WRITING_OPERATORS = {"__setitem__"} | {f"__i{name}__" for name in (
    "add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")}


class Function:
    """The facts about a function that are known before it is called."""

    def __init__(self, func):
        name = getattr(func, "__name__", "")
        self.name = name
        self.getter = name in ("__get__", "__set__", "__delete__")
        self.computed = name not in NOT_COMPUTED and not self.getter
        self.overwrites, self.by_shape = name in OVERWRITES, name in BY_SHAPE
        self.where_unknown = WHERE_UNKNOWN.get(name)
        self.decided_by = DECIDED_BY.get(name)
        self.is_condition = name == "__bool__"
        self.writes_self = (name.endswith("_") and not name.endswith("__")) or name in WRITING_OPERATORS
        self.writes = WRITES_ARGUMENTS.get(name, ())
        self.counts, self.sizes = COUNTS.get(name), SIZES.get(name)
        # If true, nothing is to be done for a call whose first argument is not known.
        self.by_first = not (self.overwrites or self.by_shape or self.where_unknown or self.writes or self.counts or self.sizes
                             or self.is_condition or self.decided_by is not None)


class Unknown(Exception):
    pass


class Known:
    """The content of one storage of the card, on the host."""

    def __init__(self, storage):
        self.alive = StorageWeakRef(storage)  # while this reference exists, no other storage gets the same key
        self.content = torch.zeros(storage.nbytes(), dtype=torch.uint8, device="cpu")
        self.extent = (0, 0)  # bytes that are known
        self.version = None


class Values(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.is_on = False  # before the first use of a card there is nothing to follow
        self.functions = {}
        self.known = {}  # by the storage
        self.purge_at = 4096
        self.bounds = {}  # (function, how, file, line) -> how often its size was not known
        card = ctypes.CDLL(None)
        self.answer, self.last_copy = card.ullage_drycard_answer_reads, card.ullage_drycard_last_copy
        self.last_copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        function = self.functions.get(func)
        if function is None:
            function = self.functions[func] = Function(func)
        if function.by_first and self.is_on and (function.getter or args and not kwargs and self.is_unknown(args[0])):
            return func(*args)  # most calls
        kwargs = kwargs or {}
        if not self.is_on:
            result = func(*args, **kwargs)
            if self.is_on:  # the first call that used a card
                self.learn_constant(result)
            return result
        inputs_known = function.computed
        try:
            host = self.on_host(function, args, kwargs) if inputs_known else None
        except Unknown:
            host, inputs_known = None, False
            if function.is_condition:
                return self.decided(func, args, sys._getframe(1))
        if function.counts or function.sizes and isinstance(function.sizes.of(args, kwargs), torch.Tensor):
            return self.sized(func, function, args, kwargs, host)
        if host:
            return self.followed(func, function, args, kwargs, host)
        return self.unfollowed(func, function, args, kwargs, inputs_known)

    def aside(self, func):
        """Returns a function that calls the compiled `func` and follows no values meanwhile. The compiler passes over its
        frame, as over torch's own around a compiled function. Otherwise a caller that is compiled too, but does not
        reach into this function, would have it compiled."""
        @functools.wraps(func)
        def call(*args, **kwargs):
            if torch.overrides._get_current_function_mode() is not self:
                return func(*args, **kwargs)
            with torch.overrides._pop_mode_temporarily():
                return func(*args, **kwargs)

        importlib.import_module("torch._dynamo.eval_frame").skip_code(call.__code__)
        return call

    # ---- what is known

    def is_unknown(self, one):
        return (isinstance(one, torch.Tensor) and one.is_cuda
                and (one.numel() > MOST_BYTES or key_of(one) not in self.known))

    def find(self, tensor):
        """Returns the known values of the tensor's storage, if nothing was written there since."""
        key = key_of(tensor)
        found = self.known.get(key)
        if found is not None and found.version != version_of(tensor):
            del self.known[key]
            return None
        return found

    def shadow(self, tensor):
        """Returns the tensor's values on the host. Raises Unknown if the values are unknown, or too many."""
        kind = tensor.device.type
        if kind == "cuda":
            found = self.find(tensor)
            if found is not None and is_within(extent_of(tensor), found.extent):
                return view_of(found.content, tensor)
        elif kind == "cpu" and tensor.numel() * tensor.element_size() <= MOST_BYTES and key_of(tensor) is not None:
            return tensor.detach()
        raise Unknown

    def is_decided(self, args, by):
        """For two tensors of which one is unknown: returns whether the other is `by` in each element. A tensor of
        integers decides an "and" if all its elements are zero, and never an "or"."""
        if len(args) != 2 or not all(isinstance(one, torch.Tensor) and one.is_cuda for one in args):
            return False
        for one in args:
            try:
                value = self.shadow(one)
            except Unknown:
                continue
            if one.dtype == torch.bool and bool(value.all() if by else not value.any()) or not by and not bool(value.any()):
                return True
        return False

    def shape_of(self, tensor):
        """Returns zeros on the host in the tensor's shape, in place of values that are unknown or not read. Raises
        Unknown if they would be too many bytes."""
        if tensor.numel() * tensor.element_size() > MOST_BYTES:
            raise Unknown
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")

    def on_host(self, function, args, kwargs):
        """Returns the arguments for a call on the CPU. None: the call has nothing to do with the card. Raises Unknown
        if an input is unknown."""
        self.of_card = False
        self.where_unknown = function.where_unknown
        if function.decided_by is not None and self.is_decided(args, function.decided_by):
            self.where_unknown = torch.zeros_like
        made = [self.argument(function, at, one) for at, one in enumerate(args)]
        if function.name == "to" and len(args) > 1 and isinstance(args[1], torch.Tensor):
            raise Unknown  # to the type and device of another tensor
        named = {name: self.argument(function, name, one) for name, one in kwargs.items()}
        if function.name == "cuda":
            return [made[0].clone()], {}
        return (made, named) if self.of_card else None

    def argument(self, function, at, one):
        if isinstance(one, torch.Tensor):
            if not one.is_cuda:
                return self.shadow(one)
            self.of_card = True
            if at == 0 and (function.by_shape or function.overwrites and is_whole(one)):
                return self.shape_of(one)
            try:
                return self.shadow(one)
            except Unknown:
                if self.where_unknown is None:
                    raise
                return self.where_unknown(self.shape_of(one))
        if isinstance(one, (list, tuple)):
            return type(one)(self.argument(function, None, each) for each in one) if type(one) in (list, tuple) else one
        if isinstance(one, torch.device):
            self.of_card |= one.type == "cuda"
            return torch.device("cpu") if one.type == "cuda" else one
        if isinstance(one, str) and one.startswith("cuda"):
            self.of_card = True
            return "cpu"
        return False if at == "pin_memory" else one

    def keep(self, tensor, value):
        """Notes `value` as the tensor's content from now on."""
        if not tensor.is_cuda or key_of(tensor) is None:
            return
        storage = tensor.untyped_storage()
        if storage.nbytes() > MOST_BYTES or tensor.is_conj() or tensor.is_neg():
            return
        found = self.known.get(storage._cdata)
        if found is None:
            extent = extent_of(tensor)
            if tensor.numel() * tensor.element_size() < extent[1] - extent[0]:
                return  # its elements leave gaps in the storage
            if len(self.known) >= self.purge_at:
                self.known = {key: one for key, one in self.known.items() if not one.alive.expired()}
                self.purge_at = max(4096, 2 * len(self.known))
            found = self.known[storage._cdata] = Known(storage)
            found.extent = extent
        elif not is_within(extent_of(tensor), found.extent):
            del self.known[storage._cdata]
            return
        view = view_of(found.content, tensor)
        if view.data_ptr() != value.data_ptr():
            view.copy_(value)
        found.version = version_of(tensor)

    def learn_constant(self, tensor):
        """For the result of torch.tensor(..., device="cuda"): notes the bytes that were copied last as its content."""
        if isinstance(tensor, torch.Tensor) and tensor.is_cuda and is_whole(tensor):
            content = torch.empty(tensor.untyped_storage().nbytes(), dtype=torch.uint8, device="cpu")
            if self.last_copy(tensor.data_ptr(), content.data_ptr(), content.numel()):
                self.keep(tensor, view_of(content, tensor))

    def forget(self, one):
        for each in one if isinstance(one, (list, tuple)) else (one,):
            if isinstance(each, torch.Tensor) and each.is_cuda:
                self.known.pop(key_of(each), None)

    def forget_written(self, function, args, kwargs):
        if function.writes_self and args:
            self.forget(args[0])
        for at in function.writes:
            if at < len(args):
                self.forget(args[at])
        if "out" in kwargs:
            self.forget(kwargs["out"])

    # ---- calls

    def unfollowed(self, func, function, args, kwargs, inputs_known=False):
        result = func(*args, **kwargs)
        if function.writes_self or function.writes or "out" in kwargs:
            self.forget_written(function, args, kwargs)
        elif inputs_known and isinstance(result, torch.Tensor) and result.is_cuda and result.numel() <= MOST_BYTES:
            with torch.device("cpu"):  # the program's default device may be the card
                self.keep_or_tell(result, self.compute(func, (args, kwargs)))
        elif function.name in ("tensor", "as_tensor", "asarray"):
            self.learn_constant(result)
        return result

    def compute(self, func, host):
        """Returns the result of the call on the CPU. None: the CPU has no such kernel, or not for this type."""
        try:
            with torch.inference_mode(False), torch.no_grad():
                return func(*host[0], **host[1]) if func is not torch.Tensor.cuda else host[0][0]
        except Exception:
            return None

    def followed(self, func, function, args, kwargs, host):
        with Answer(self, [0], known=True) as answer:
            result = func(*args, **kwargs)
        return self.note_result(function, args, kwargs, host, result, self.compute(func, host), answer.reads)

    def note_result(self, function, args, kwargs, host, result, value, reads):
        """Keeps the result of the call on the CPU. If the call read from the card, the program gets the CPU's result.
        A call that read nothing (one that asks for a type or a device) has the right result already."""
        if value is None and function.name != "__setitem__":
            self.forget_written(function, args, kwargs)
            return result
        with torch.inference_mode(False), torch.no_grad():
            if function.writes_self and args:
                if args[0] is not result and isinstance(args[0], torch.Tensor):
                    self.keep_or_tell(args[0], host[0][0])
            if "out" in kwargs:
                self.forget(kwargs["out"])
            return self.keep_or_tell(result, value, reads)

    def keep_or_tell(self, result, value, reads=0):
        if isinstance(result, torch.Tensor):
            if not isinstance(value, torch.Tensor) or value.shape != result.shape:
                self.forget(result)
            elif result.is_cuda:
                self.keep(result, value)
            elif result.data_ptr() != value.data_ptr():
                result.detach().copy_(value)
            return result
        if isinstance(result, (list, tuple)) and any(isinstance(one, torch.Tensor) for one in result):
            for one, its in zip(result, value):
                self.keep_or_tell(one, its)
            return result
        return result if result is None or reads == 0 else value

    def sized(self, func, function, args, kwargs, host):
        value = None
        if function.counts:
            counted = [one for one in function.counts(args) if one.is_cuda]
            numbers, known = self.counts_of(counted)
        else:
            counted = [one for one in args if isinstance(one, torch.Tensor) and one.is_cuda]
            value = self.compute(func, host) if host else None
            known = value is not None
            numbers = function.sizes.known(value) if known else function.sizes.unknown(args, kwargs)
        if not counted:
            return self.followed(func, function, args, kwargs, host) if host else self.unfollowed(func, function, args, kwargs)
        how = function.sizes.how if function.sizes else "the most"
        if not known and how:
            self.note_bound(function.name, how)
        with Answer(self, numbers, known) as answer:
            result = func(*args, **kwargs)
        if host:
            value = self.compute(func, host) if value is None else value
            return self.note_result(function, args, kwargs, host, result, value, answer.reads)
        self.forget_written(function, args, kwargs)
        return result

    def counts_of(self, masks):
        numbers, known = [], True
        for mask in masks:
            try:
                numbers.append(int(self.shadow(mask).count_nonzero()))
            except Unknown:
                numbers.append(mask.numel())
                known = False
        return numbers, known

    def decided(self, func, args, frame):
        """Answers for an unknown condition that the program's `frame` reads: with the value that raises no error."""
        passes = passing_condition(frame.f_code, frame.f_lasti)
        if passes is None:
            return func(*args)
        with Answer(self, [int(passes)], known=False):
            return func(*args)

    def note_bound(self, name, how):
        key = (name, how, *line_of_program())
        if key in self.bounds or len(self.bounds) < MOST_PLACES:
            self.bounds[key] = self.bounds.get(key, 0) + 1


class Answer:
    """While it is entered, this thread's reads from the card give these numbers one after the other, then the last one
    again and again."""

    def __init__(self, values, numbers, known):
        self.values, self.known = values, known
        self.numbers = (ctypes.c_int64 * len(numbers))(*numbers)

    def __enter__(self):
        self.values.answer(self.numbers, len(self.numbers), int(self.known))
        return self

    def __exit__(self, *_):
        self.reads = self.values.answer(None, 0, 0)


def key_of(tensor):
    """Returns the key of the tensor's storage. None: the tensor has no storage of its own, because it is sparse, nested
    or a wrapper of torch.func."""
    try:
        return tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


def version_of(tensor):
    return -1 if tensor.is_inference() else tensor._version


def extent_of(tensor):
    """Returns the tensor's first byte in its storage, and the byte after its last one."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) if tensor.numel() else -1
    begin = tensor.storage_offset() * tensor.element_size()
    return begin, begin + (last + 1) * tensor.element_size()


def is_within(inner, outer):
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def is_whole(tensor):
    if key_of(tensor) is None:
        return False
    size = tensor.untyped_storage().nbytes()
    return size <= MOST_BYTES and tensor.numel() * tensor.element_size() == size and tensor.is_contiguous()


def view_of(content, tensor):
    whole = torch.empty(0, dtype=tensor.dtype, device="cpu")
    return whole.set_(content.untyped_storage(), tensor.storage_offset(), tensor.shape, tensor.stride())


@functools.lru_cache(4096)
def passing_condition(code, at):
    """The condition read by the instruction at offset `at` decides between two places to go on. Returns the value that
    leads to the place which raises no error. None: neither place raises one, or both do, or nothing is decided."""
    steps = [one for one in dis.get_instructions(code) if one.opname != "CACHE"]
    places = {one.offset: place for place, one in enumerate(steps)}
    here = places.get(at)
    # The branch itself reads the condition, or a call of bool() does, which is the instruction before the branch.
    for place in () if here is None else range(here, min(here + 2, len(steps))):
        name = steps[place].opname
        if "JUMP" in name and ("IF_TRUE" in name or "IF_FALSE" in name):
            raises_there = raises(steps, places.get(steps[place].argval))
            if raises_there == raises(steps, place + 1):
                return None
            return raises_there != ("IF_TRUE" in name)
    return None


def raises(steps, place):
    """Returns whether the instructions from `place` on raise an error, with no other branch before it."""
    while place is not None and place < len(steps):
        name = steps[place].opname
        if name in ("RAISE_VARARGS", "LOAD_ASSERTION_ERROR") or steps[place].argrepr == "AssertionError":
            return True
        if "JUMP" in name or name.startswith(("RETURN", "FOR_ITER", "YIELD", "RERAISE")):
            return False
        place += 1
    return False


def line_of_program():
    """Returns the innermost line that is not a library's, as file and number."""
    standard = os.path.dirname(os.__file__)
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if "-packages" not in name and not name.startswith((standard, "<")):
            return name, frame.f_lineno
        frame = frame.f_back
    return "", 0
