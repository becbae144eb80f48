# SPDX-License-Identifier: Apache-2.0
"""Runs programs of many kinds under the interceptor and the saved-tensor hooks: the results are the same as without.

usage: test_python_hooks.py LIBRARY [PART OF A CASE'S NAME]
"""
import ctypes
import functools
import gc
import pathlib
import shutil
import sys
import threading
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from cases import Cost  # noqa: E402

warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", category=DeprecationWarning)
warnings.filterwarnings("error", message="ullage")
torch.set_num_threads(2)

CASES = {}
NO_SAVES = set()  # cases in which our hooks see nothing, because of the program's own hooks or torch's rules


def case(function=None, *, saves=True):
    if function is None:
        return functools.partial(case, saves=saves)
    CASES[function.__name__] = function
    if not saves:
        NO_SAVES.add(function.__name__)
    return function


def make_net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True), nn.Dropout(0.25),
                         nn.Conv2d(8, 8, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(8 * 49, 10))


def train(net, x, around=None, steps=2, optimizer=None):
    optimizer = optimizer or torch.optim.Adam(net.parameters(), 1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy((around or net)(x).float(), torch.arange(len(x)))
        loss.backward()
        optimizer.step()
    return ([p.detach() for p in net.parameters()] + [p.grad for p in net.parameters()] + list(net.buffers()) +
            [loss.detach(), torch.randn(3)])


def pictures():
    torch.manual_seed(9)
    return torch.randn(4, 3, 16, 16)


@case(saves=False)
def copies_of_what_has_no_storage():
    """torch.func's wrappers and nested tensors, whose sizes and storages cannot be asked for."""
    x = torch.arange(12.0).reshape(3, 4)
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    into = torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(4, 3)])
    into.copy_(nested)
    return [torch.vmap(lambda a, b: a.clone().copy_(b))(x, x + 1),
            torch.func.grad(lambda p: torch.zeros(4).copy_(p).pow(2).sum())(x[0]),
            *torch.func.jvp(lambda p: torch.zeros(4).copy_(p) * 2, (x[0],), (x[1],)), *into.unbind()]


@case
def plain():
    return train(make_net(), pictures())


@case
def autocast():
    net = make_net()

    def run(x):
        with torch.autocast("cpu", torch.bfloat16):
            return net(x)

    return train(net, pictures(), run)


@case
def optimizers():
    left = []
    for make in (torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad, torch.optim.Adam):
        for how in ({"foreach": True}, {"fused": True}, {"foreach": False}):
            net = make_net()
            try:
                optimizer = make(net.parameters(), lr=1e-2, **how)
            except (TypeError, RuntimeError):
                continue
            left += train(net, pictures(), optimizer=optimizer)
            left += torch.nn.utils.get_total_norm(net.parameters()),
    return left


@case
def transformer():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    x = torch.randn(2, 7, 16, requires_grad=True)
    layer(x).pow(2).sum().backward()
    layer.eval()
    with torch.no_grad():
        y = layer(x)
    return [x.grad, y] + [p.grad for p in layer.parameters()]


@case
def lstm():
    torch.manual_seed(1)
    net = nn.LSTM(5, 6, 2)
    x = torch.randn(3, 2, 5, requires_grad=True)
    net(x)[0].sum().backward()
    return [x.grad] + [p.grad for p in net.parameters()]


@case
def double_backward():
    x = torch.randn(5, requires_grad=True, generator=torch.Generator().manual_seed(1))
    grad, = torch.autograd.grad((x.tanh() ** 2).sum(), x, create_graph=True)
    grad.pow(2).sum().backward(retain_graph=True)
    grad.pow(2).sum().backward()
    return [x.grad]


@case(saves=False)
def dispatch_mode():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(str(function))
            return function(*args, **(kwargs or {}))

    with Count() as count:
        left = train(make_net(), pictures())
    return left + [tuple(count.names)]


@case(saves=False)
def flop_counter():
    from torch.utils.flop_counter import FlopCounterMode
    with FlopCounterMode(display=False) as count:
        left = train(make_net(), pictures())
    return left + [count.get_total_flops()]


@case(saves=False)
def fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode(allow_non_fake_inputs=True):
        net = make_net()
        out = net(torch.randn(4, 3, 16, 16))
        out.sum().backward()
        return [tuple(out.shape), [tuple(p.grad.shape) for p in net.parameters()]]


@case(saves=False)
def meta_device():
    net = nn.Linear(3, 4, device="meta")
    net(torch.ones(2, 3, device="meta")).sum().backward()
    return [tuple(net.weight.grad.shape)]


@case(saves=False)
def vmap_of_grad():
    x = pictures().flatten(1)
    return [torch.func.vmap(torch.func.grad(lambda v: (v.tanh() ** 2).sum()))(x),
            torch.func.jacrev(lambda v: v.sin() * v)(x[0, :5]), torch.func.hessian(lambda v: v.pow(3).sum())(x[0, :4])]


@case
def grad_through_vmap():
    w = torch.linspace(0, 1, 5, requires_grad=True)
    torch.vmap(lambda row: (row * w).tanh().sum())(torch.ones(3, 5)).sum().backward()
    return [w.grad]


@case
def forward_mode():
    import torch.autograd.forward_ad as fwd
    x = torch.linspace(0, 1, 5, requires_grad=True)
    with fwd.dual_level():
        dual = fwd.make_dual(x, torch.ones(5))
        out = fwd.unpack_dual((dual * dual).tanh())
    out.tangent.sum().backward()
    return [out.primal.detach(), out.tangent.detach(), x.grad]


@case(saves=False)
def cond():
    x = pictures().requires_grad_()
    left = [torch.cond(torch.tensor(flag), lambda a: a + 1, lambda a: a - 1, (x.detach(),)) for flag in (True, False)]
    return left


@case(saves=False)
def flex():
    from torch.nn.attention.flex_attention import flex_attention
    torch.manual_seed(1)
    q, k, v = (torch.randn(1, 2, 16, 16) for _ in range(3))
    return [flex_attention(q, k, v)]


@case(saves=False)
def higher_order_op_made_later():
    from torch._ops import HigherOrderOperator

    class Later(HigherOrderOperator):
        def __init__(self):
            super().__init__("ullage_test_later")

        def __call__(self, x):
            return super().__call__(x)

    later = Later()
    later.py_impl(torch._C.DispatchKey.Autograd)(lambda x: x + 1)
    return [later(torch.ones(3))]


@case
def checkpoint_reentrant():
    net = make_net()
    return train(net, pictures(), lambda x: checkpoint(net, x.clone().requires_grad_(), use_reentrant=True))


@case(saves=False)
def checkpoint_by_hooks():
    net = make_net()
    return train(net, pictures(), lambda x: checkpoint(net, x, use_reentrant=False))


@case(saves=False)
def checkpoint_selective():
    net = make_net()

    def policy(context, op, *args, **kwargs):
        conv = op == torch.ops.aten.convolution.default
        return CheckpointPolicy.MUST_SAVE if conv else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    return train(net, pictures(), lambda x: checkpoint(net, x, use_reentrant=False, context_fn=contexts))


@case(saves=False)
def the_programs_hooks_win():
    packs = []

    def pack(t):
        packs.append(tuple(t.shape))
        return t

    net = make_net()
    x = pictures()

    def run(x):
        return net(x)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        left = train(net, x, run, steps=1)
    return left + [tuple(packs)]


@case(saves=False)
def save_on_cpu():
    with torch.autograd.graph.save_on_cpu():
        return train(make_net(), pictures(), steps=1)


@case
def custom_function():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            out = a * a
            ctx.save_for_backward(a, out)
            return out

        @staticmethod
        def backward(ctx, grad):
            a, out = ctx.saved_tensors
            return grad * 2 * a * (out / out)

    x = torch.linspace(1, 2, 7, requires_grad=True)
    Twice.apply(x * 1).tanh().sum().backward()
    return [x.grad]


@case
def in_place_change_is_refused():
    texts = []
    for change in (lambda v: v.add_(1), lambda v: v.detach().add_(1), lambda v: v.mul_(v.detach())):
        w = torch.ones(4, requires_grad=True)
        v = w * 1
        s = v * v
        change(v)
        try:
            s.sum().backward()
            texts.append("accepted")
        except RuntimeError as error:
            texts.append(str(error))
    assert all("modified by an inplace operation: [torch.FloatTensor [4]]" in text for text in texts), texts
    return texts


@case(saves=False)  # autograd saves the outer tensor, which has no bytes; its parts have them
def subclass():
    from torch.testing._internal.two_tensor import TwoTensor
    x = TwoTensor(pictures(), pictures() * 2).requires_grad_()
    y = (x * x).tanh()
    y.sum().backward()
    return [type(y).__name__, type(x.grad).__name__, x.grad.a, x.grad.b, y.a.detach(), y.b.detach()]


@case
def plain_subclass():
    class Named(torch.Tensor):
        pass

    x = torch.linspace(0, 1, 5).as_subclass(Named).requires_grad_()
    (x * x).exp().sum().backward()
    return [type(x.grad).__name__, x.grad.as_subclass(torch.Tensor)]


@case(saves=False)
def make_fx():
    from torch.fx.experimental.proxy_tensor import make_fx as trace
    graph = trace(lambda a: a.sin().cos())(pictures())
    return [[str(node.target) for node in graph.graph.nodes], graph(pictures())]


@case(saves=False)
def functionalize():
    return [torch.func.functionalize(lambda a: a.clone().add_(1).view(-1).mul_(2))(pictures())]


@case(saves=False)
def custom_op():
    @torch.library.custom_op("ullage_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    return [twice(pictures())]


@case(saves=False)
def threads():
    left = [None] * 3
    drawn = pictures()  # here: the threads share one generator
    drawn.exp()  # so that the first call of exp is not made by several threads at once (runtime/ops/vector_math.h)

    def work(i):
        ARM()
        left[i] = drawn.mul(i).exp().sum()

    running = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return left


@case(saves=False)
def sparse_and_nested():
    eye = torch.eye(4).to_sparse()
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
    return [torch.sparse.mm(eye, torch.ones(4, 2)), (nested * 2).to_padded_tensor(0)]


def compiled(backend, **options):
    torch._dynamo.reset()
    net = make_net()
    net[3] = nn.Identity()  # inductor's dropout draws other numbers than eager mode (the same in each run)
    return train(net, pictures(), torch.compile(net, backend=backend, **options))


@case
def compile_aot_eager():
    return compiled("aot_eager")


@case
def compile_inductor():
    return compiled("inductor")


@case
def compile_inductor_cpp_wrapper():
    return compiled("inductor", options={"cpp_wrapper": True})


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def check(library, name, function, expected, record, slices):
    before = library.test_ops(), library.test_saved()
    how = ("by RecordFunction" if record else "by key") + (", in slices" if slices else "")
    assert library.test_on(record, slices) == 0
    try:
        got = function()
    finally:
        library.test_off()
    gc.collect()
    assert same(expected, got), f"{name} {how}: {expected} is not {got}"
    assert library.test_open() == 0, (name, how)
    ops, saved = library.test_ops() - before[0], library.test_saved() - before[1]
    assert ops > 0, f"{name} {how}: no op was seen"
    if name in ("dispatch_mode", "flop_counter"):
        assert ops > 250, f"{name} {how}: the interceptor was off under the mode, {ops} ops were seen"
    if name not in NO_SAVES:
        assert saved > 0, f"{name} {how}: nothing was saved"
    print(f"{name:28} {how:30} {ops:5} ops, {saved:4} saved", flush=True)


def main():
    global ARM
    library = ctypes.CDLL(sys.argv[1])
    for counter in ("ops", "open", "inputs", "saved", "unpacked", "released", "touched"):
        getattr(library, f"test_{counter}").restype = ctypes.c_long
    ARM = library.test_arm
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    failed = []
    for name, function in CASES.items():
        if wanted not in name:
            continue
        if name.startswith("compile_inductor") and shutil.which("g++") is None:
            print(f"{name}: skipped: there is no g++")
            continue
        cost = Cost()
        try:
            expected = function()
        except Exception as error:
            print(f"{name}: skipped: plain torch fails: {' '.join(str(error).split())[:200]}")
            continue
        allocations = library.test_allocations()
        for record, slices in ((0, 0), (0, 1), (1, 0)):
            try:
                check(library, name, function, expected, record, slices)
            except Exception as error:
                failed.append(name)
                print(f"FAILED {name} {record} {slices}: {type(error).__name__}: {str(error)[:1500]}", flush=True)
        print(f"{name} ({cost})", flush=True)
        if name == "compile_inductor":
            assert library.test_kernels() > 0, "no compiled kernel ran as an op"
            forward, kernels = library.test_forward_kernels(), library.test_kernels()
            assert 0 < forward < kernels, f"of {kernels} kernels {forward} were seen as a forward pass"
            assert library.test_allocations() > allocations, "no compiled region allocated by an op"
            print(f"compiled kernels ran as {kernels} ops, {forward} of them in forward passes")
        if name == "compile_inductor_cpp_wrapper":
            assert library.test_touched() > 0, "no compiled region announced its inputs"
            print(f"compiled regions announced {library.test_touched()} inputs")
    print("failed:", sorted(set(failed)) if failed else "nothing")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
