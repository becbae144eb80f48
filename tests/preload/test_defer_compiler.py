# SPDX-License-Identifier: Apache-2.0
"""Tests that torch's compiler is imported when a program asks for it, and not by its optimizers.

usage: test_defer_compiler.py ULLAGE DEFER_COMPILER_TEXT [CASE]
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

TRAIN = """
import sys, torch
torch.set_num_threads(1)
torch.manual_seed(1)
net = torch.nn.Linear(4, 4)
opt = torch.optim.Adam(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, 1)
def step(forward=net):
    loss = forward(torch.rand(2, 4)).square().sum()
    loss.backward()
    opt.step(); schedule.step(); opt.zero_grad()
    return loss.item()
step()
opt.load_state_dict(opt.state_dict())
def is_real():
    return getattr(sys.modules['torch._dynamo'], '__file__', None) is not None
def waits():
    return any(getattr(one, '__name__', '') == 'Finder' for one in sys.meta_path)
"""
# What a program may do then, each in a process of its own. `real`: it has asked for the compiler.
WAYS = {
    "nothing": ("", False),
    "a checkpoint that needs no compiler": ("""
        x = torch.rand(2, 4, requires_grad=True)
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=True).sum().backward()
        """, False),
    "a checkpoint that asks for settings": ("""
        x = torch.rand(2, 4, requires_grad=True)
        torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
        """, False),
    "settings": ("""
        torch._dynamo.config.recompile_limit = 3
        import torch._dynamo.config as settings
        assert not is_real() and settings is torch._dynamo.config and settings.recompile_limit == 3
        torch.compile(net, backend='eager')(torch.ones(1, 4))
        assert torch._dynamo.config is settings and settings.recompile_limit == 3
        """, True),
    "what accelerate asks": ("""
        assert hasattr(torch, '_dynamo') and not isinstance(net, torch._dynamo.eval_frame.OptimizedModule)
        kept = torch._dynamo.eval_frame.OptimizedModule
        assert not is_real()
        compiled = torch.compile(net, backend='eager')
        assert isinstance(compiled, torch._dynamo.eval_frame.OptimizedModule) and isinstance(compiled, kept)
        assert not isinstance(net, kept) and kept is not torch._dynamo.eval_frame.OptimizedModule
        """, True),
    "what transformers asks": ("""
        from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
        assert not is_real()
        import torch._dynamo._trace_wrapped_higher_order_op as one
        assert one.TransformGetItemToIndex is TransformGetItemToIndex and torch._dynamo.optimize
        assert torch._dynamo._trace_wrapped_higher_order_op is one
        """, True),
    "what torchvision asks": ("""
        from torch._dynamo.utils import is_compile_supported
        assert not is_real()
        assert type(is_compile_supported('cpu')) is bool
        """, True),
    "a decorator": ("""
        @torch.compiler.disable
        def kept(x): return x.sin()
        @torch.compiler.disable(recursive=False)
        def shallow(x): return x.cos()
        assert kept.__name__ == 'kept' and not is_real()
        assert torch.equal(kept(torch.ones(2)), torch.ones(2).sin()) and torch.equal(shallow(torch.ones(2)), torch.ones(2).cos())
        assert not is_real()
        seen = []
        def backend(graph, inputs):
            seen.extend(node.target for node in graph.graph.nodes if node.op == 'call_function')
            return graph.forward
        out = torch.compile(lambda x: shallow(kept(x + 1) * 2), backend=backend)(torch.ones(2))
        assert torch.equal(out, ((torch.ones(2) + 1).sin() * 2).cos())
        assert 'sin' not in str(seen) and 'mul' in str(seen), seen
        """, True),
    "marks": ("""
        @torch._dynamo.allow_in_graph
        def kept(x): return x.sin()
        @torch._dynamo.assume_constant_result
        def constant(): return 3
        assert not is_real() and constant() == 3
        seen = []
        def backend(graph, inputs):
            seen.extend(node.target for node in graph.graph.nodes if node.op == 'call_function')
            return graph.forward
        torch.compile(lambda x: kept(x) * constant(), backend=backend, fullgraph=True)(torch.ones(2))
        assert kept in seen and constant._dynamo_marked_constant, seen
        """, True),
    "decorators that are called": ("""
        @torch.compiler.disable(reason='x')
        class Net(torch.nn.Module):
            def forward(self, x): return x + 1
        class Own(Net): pass
        assert isinstance(Own(), Net) and Own()(torch.ones(1)) == 2
        wrapped = torch.compiler.disable(reason='x')(torch.nn.Linear(2, 2))
        assert len(list(wrapped.parameters())) == 2
        """, True),
    "functions that die": ("""
        import gc, weakref
        gc.disable()
        def kept():
            big = torch.ones(3)
            @torch.compiler.disable
            def inner(): return big.sum()
            @torch._dynamo.allow_in_graph
            def marked(): return big.sum()
            assert inner() == 3 and marked() == 3
            return weakref.ref(big)
        assert kept()() is None
        """, False),
    "a mark that comes late": ("""
        from torch._dynamo import allow_in_graph
        torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1))
        @allow_in_graph
        def late(x): print(end=''); return x + 1
        torch.compile(lambda x: late(x), backend='eager', fullgraph=True)(torch.ones(1))
        """, True),
    "a name that a test replaces": ("""
        import unittest.mock
        with unittest.mock.patch('torch._dynamo.explain', 3): assert torch._dynamo.explain == 3
        assert callable(torch._dynamo.explain)
        """, True),
    "a decorator of a module": ("""
        other = torch.compiler.disable(torch.nn.Linear(2, 2))
        assert is_real() and other(torch.ones(1, 2)).shape == (1, 2)
        """, True),
    "the import alone": ("import torch._dynamo", False),
    "a name of a module": ("from torch._dynamo.utils import counters; assert counters is torch._dynamo.utils.counters", True),
    "a look through all modules": ("import inspect; assert inspect.getmodule(torch.nn.Linear) is torch.nn.modules.linear",
                                   False),
    "torch.compile": ("""
        seen = []
        def backend(graph, inputs):
            seen.append([node.target for node in graph.graph.nodes if node.op == 'call_function'])
            return graph.forward
        step(torch.compile(net, backend=backend))
        assert len(seen) == 1 and len(seen[0]) == 1, seen
        """, True),
    "a compiled step of the optimizer": ("""
        # It must not look into add_param_group(), which torch forbids to it.
        calls = torch.compile(lambda: opt.add_param_group({'params': [torch.ones(1, requires_grad=True)]}), backend='eager')
        calls()
        assert len(opt.param_groups) == 2
        compiled = torch.optim.Optimizer.add_param_group.__wrapped__.__dict__['__dynamo_disable']
        assert compiled is not torch.optim.Optimizer.add_param_group.__wrapped__
        """, True),
    "import as": ("import torch._dynamo as d; assert d.explain.__module__ == 'torch._dynamo.eval_frame'", True),
    "a module of it": ("""
        import torch._dynamo.exc as one
        assert one is sys.modules['torch._dynamo'].exc and one.__spec__.loader.path == one.__file__
        """, True),
    "a module that it does not import": ("""
        import torch._dynamo.testing
        assert torch._dynamo.testing.__spec__.loader.path == torch._dynamo.testing.__file__
        """, True),
    "from": ("""
        from torch._dynamo import config, disable, graph_break
        assert disable.__module__ == graph_break.__module__ == 'torch._dynamo.decorators'
        """, True),
    "all of it": ("exec('from torch._dynamo import *', globals()); assert optimize and explain", True),
    "a value that is set": ("sys.modules['torch._dynamo'].mine = 1; assert torch._dynamo.mine == 1", True),
    "a function that it may not look into": ("""
        plain = lambda x: x.sin()
        disable = torch._dynamo.disable(plain)
        assert disable is not plain
        """, True),
    "a name that is not there": ("""
        try: torch._dynamo.no_such_name
        except AttributeError: pass
        else: assert False
        """, True),
    "two threads": ("""
        import threading
        def ask(): assert torch._dynamo.exc.__name__ == 'torch._dynamo.exc'
        def train():
            x = torch.ones(1, requires_grad=True)
            own = torch.optim.SGD([x])
            x.sum().backward()
            own.step()
        threads = [threading.Thread(target=f) for f in (ask, train, ask, train)]
        for one in threads: one.start()
        for one in threads: one.join()
        """, True),
}


class Runs:
    def __init__(self, ullage: str, text: str, folder: str):
        self.ullage, self.text, self.folder = ullage, pathlib.Path(text).read_text(), folder

    def python(self, code: str, *before: str) -> str:
        done = subprocess.run([*before, sys.executable, "-c", code], capture_output=True, text=True, cwd=self.folder,
                              timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


def test_whoever_asks_gets_the_compiler(runs: Runs) -> None:
    code = f"import torch, os\nexec(compile({runs.text!r}, '<ullage>', 'exec'), {{'__name__': 'defer'}})\n" + TRAIN
    code += "assert type(sys.modules['torch._dynamo']).__name__ == 'StandIn'\nfailed = []\n"
    for name, (way, real) in WAYS.items():
        code += f"""
child = os.fork()
if child == 0:
    try:
{textwrap.indent(textwrap.dedent(way), " " * 8) or "        pass"}
        assert is_real() == {real}, 'the real module: ' + str(is_real())
        assert (sys.modules['torch._dynamo'] is torch._dynamo) and step() >= 0
        assert waits() != is_real()
        children = [sys.modules.get('torch._dynamo.' + name) for name in ('utils', 'eval_frame')]
        assert all(one is None or hasattr(one, '__file__') == is_real() for one in children), children
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
if os.waitpid(child, 0)[1]: failed.append({name!r})
"""
    runs.python(code + "assert not failed, failed")


def test_a_program_that_asked_first_is_left_alone(runs: Runs) -> None:
    code = f"import torch, torch._dynamo\nexec(compile({runs.text!r}, '<ullage>', 'exec'), {{'__name__': 'defer'}})\n" + TRAIN
    runs.python(code + "assert is_real() and not waits()")


def test_the_compiler_of_an_older_torch_is_left_alone(runs: Runs) -> None:
    for version, deferred in (("2.6.0+cu124", False), ("2.12.1", False), ("unknown", False), ("2.13.0+cpu", True)):
        code = f"import sys, torch\ntorch.__version__ = {version!r}\n"
        code += f"exec(compile({runs.text!r}, '<ullage>', 'exec'), {{'__name__': 'defer'}})\nimport torch._dynamo.config\n"
        runs.python(code + f"assert (type(sys.modules['torch._dynamo']).__name__ == 'StandIn') == {deferred}")


def test_a_run_under_a_budget_has_the_same_bits_and_no_compiler(runs: Runs) -> None:
    code = TRAIN + "for _ in range(3): step()\nprint(net.state_dict(), opt.state_dict(), torch.get_rng_state().sum(), {})"
    under = runs.python(code.format("is_real()"), runs.ullage, "run", "--quiet", "--memory", "2GiB", "--record", "small.trace",
                        "--")
    assert under == runs.python(code.format("False")) and under.endswith("False\n"), under
    recorded = runs.python(code.format("is_real()"), runs.ullage, "run", "--quiet", "--record", "one.trace", "--")
    assert recorded.endswith("True\n"), recorded  # a recording has the memory of the program as it is


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Runs(sys.argv[1], sys.argv[2], folder), *sys.argv[3:])


if __name__ == "__main__":
    main()
