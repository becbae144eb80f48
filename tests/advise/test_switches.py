# SPDX-License-Identifier: Apache-2.0
"""Tests src/ullage/advise/switches.py on the CPU: a switch does what a person would write, to the bit, and facts are
noted.

usage: test_switches.py SWITCHES_PY [CASE]
Most programs run in a fork of this process, which has imported torch: an import takes 2 s of CPU time. A program whose
memory is measured, or which must import all of torch after the switches, runs `alone`, in a new Python.
"""
import atexit
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import torch
import torch._dynamo  # the first optimizer imports it, 1 s

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

# In place of {forward}, {layer} and {made} stands what a person would write for a remedy.
PROGRAM = """
import torch, torch.nn as nn, torch.utils.checkpoint
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.drop, self.b = nn.Linear(16, 64), nn.Dropout(0.1), nn.Linear(64, 16)
    def forward(self, x):
        return x + self.b(self.drop(torch.relu(self.a(x))))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = {layers}, nn.Linear(16, 3)
    def forward(self, x):
        for layer in self.layers.children():
            x = {layer}
        return self.head(x)
torch.manual_seed(1)
net, criterion = Net(), {loss}
opt = torch.optim.Adam(net.parameters(), lr=0.01{made})
kept = []
for step in range(4):
    x = torch.randn(8, 16)
    {forward}
    loss = criterion(out, torch.ones(8, 3))
    {zero}
    loss.backward()
    kept.append([p.grad.clone() for p in net.parameters()])
    opt.step()
torch.save([list(net.state_dict().values()), kept, opt.state_dict(), torch.get_rng_state()], {file!r})
"""
PLAIN = {"layers": "nn.ModuleList(Layer() for _ in range(4))", "layer": "layer(x)", "forward": "out = net(x)", "made": "", "zero": "opt.zero_grad()", "loss": "nn.MSELoss()"}
RUN = """
import sys, torch
with open(sys.argv[1]) as switches:
    exec(compile(switches.read(), "<ullage>", "exec"), {"__name__": "switches"})
with open(sys.argv[2]) as program:
    exec(compile(program.read(), sys.argv[2], "exec"), {"__name__": "__main__"})
"""


def in_fork(program, words, variables, output):
    """Runs the text of a program in a fork of this process. Returns its exit code and what it said."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with open(output, "w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.environ.update(variables)
            sys.argv = words
            atexit._clear()  # what this process would do at its end
            code = exit_code_of(lambda: exec(compile(program, words[0], "exec"), {"__name__": "__main__"}))
            atexit._run_exitfuncs()
            sys.stdout.flush()
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended, output.read_text()


def exit_code_of(program):
    """Returns the exit code that Python would end with."""
    try:
        program()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


class Switches:
    def __init__(self, script, folder):
        self.script, self.folder = pathlib.Path(script).resolve(), pathlib.Path(folder)
        (self.folder / "run.py").write_text(RUN)
        self.runs = 0

    def run(self, switches="", code=0, alone=False, **parts):
        """Returns what the program saved, what was noted, and its stderr."""
        self.runs += 1
        file, program = self.folder / f"{self.runs}.pt", self.folder / f"program{self.runs}.py"
        facts = self.folder / f"facts{self.runs}"
        facts.mkdir()
        program.write_text(PROGRAM.format(**{**PLAIN, **parts}, file=str(file)))
        words = [str(self.folder / "run.py"), str(self.script), str(program)]
        variables = {"ULLAGE_SWITCHES": switches, "ULLAGE_SWITCHES_FACTS": str(facts)}
        if alone:
            done = subprocess.run([sys.executable, *words], capture_output=True, text=True, env={**os.environ, **variables})
            ended, said = done.returncode, done.stderr
        else:
            ended, said = in_fork(RUN, words, variables, self.folder / f"said{self.runs}")
        assert ended == code, said[-2000:]
        noted = {}
        for one in facts.glob("*.json"):
            noted.update(json.loads(one.read_text()))
        return file, noted, said

    def equal(self, one, other):
        one, other = torch.load(one), torch.load(other)

        def same(a, b):
            if isinstance(a, torch.Tensor):
                return a.dtype == b.dtype and torch.equal(a, b)
            if isinstance(a, dict):
                return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
            if isinstance(a, (list, tuple)):
                return len(a) == len(b) and all(map(same, a, b))
            return a == b
        return same(one, other)


def test_nothing_switched_on_changes_no_bit(switches: Switches) -> None:
    plain, _, _ = switches.run(alone=True)
    again, noted, _ = switches.run(layer="layer(x)  # the same")
    assert switches.equal(plain, again)
    assert noted["forward"]["name"] == "Net" and noted["optimizer"]["name"] == "Adam", noted
    assert noted["repeated_layers"]["name"] == "Layer" and noted["repeated_layers"]["count"] == 4, noted
    text = (switches.folder / f"program{switches.runs}.py").read_text().splitlines()
    assert text[noted["forward"]["line"] - 1].strip() == "out = net(x)", noted
    assert text[noted["optimizer"]["line"] - 1].startswith("opt ="), noted
    assert text[noted["layer_call"]["line"] - 1].strip() == "x = layer(x)  # the same", noted
    assert not {"autocast", "checkpoint", "half_weights", "batch_norm"} & set(noted), noted


def test_autocast_is_that_of_the_person(switches: Switches) -> None:
    outside, _, _ = switches.run("autocast=bfloat16", alone=True)
    by_hand, noted, _ = switches.run(forward="with torch.autocast('cpu', torch.bfloat16): out = net(x)")
    plain, _, _ = switches.run()
    assert switches.equal(outside, by_hand) and not switches.equal(outside, plain)
    assert "autocast" in noted, noted


CROSS = {"loss": "lambda out, to: nn.functional.cross_entropy(out, to)"}  # computes in the type of `out`, unless under autocast


def test_the_loss_is_part_of_the_forward_pass(switches: Switches) -> None:
    outside, noted, _ = switches.run("autocast=bfloat16 on=cpu", **CROSS)
    by_hand, _, _ = switches.run(forward="\n    with torch.autocast('cpu', torch.bfloat16):\n        out = net(x)\n        loss = criterion(out, torch.ones(8, 3))"
                                 "\n    keep, criterion = criterion, lambda *_: loss", zero="opt.zero_grad(); criterion = keep", **CROSS)
    assert switches.equal(outside, by_hand)
    assert noted["cast"]["name"] == "Net" and noted["cast"]["line"] == noted["forward"]["line"], noted


def test_evaluations_only_if_asked(switches: Switches) -> None:
    look = "\n    with torch.no_grad(): print(net(x).dtype, file=sys.stderr)\n    print(torch.is_autocast_enabled('cpu'), file=sys.stderr)\n    net.eval()"
    look = "import sys" + look + "; print(net(x).dtype, file=sys.stderr); net.train(); out = net(x)"
    _, noted, said = switches.run("autocast=bfloat16", forward=look)
    assert said.split() == ["torch.float32", "False", "torch.float32"] * 4 and "evaluation" in noted, (said, noted)
    _, noted, said = switches.run("autocast=bfloat16 evaluation", forward=look)
    assert said.split() == ["torch.bfloat16", "False", "torch.bfloat16"] * 4 and "evaluation" not in noted, (said, noted)


def test_forward_called_in_place_of_the_module(switches: Switches) -> None:
    outside, noted, _ = switches.run("autocast=bfloat16", forward="out = net.forward(x)")
    by_hand, _, _ = switches.run(forward="with torch.autocast('cpu', torch.bfloat16): out = net(x)")
    assert switches.equal(outside, by_hand) and noted["cast"]["name"] == "Net", noted
    # torch.jit reads the text of `forward`, and its names among the program's globals; a trace is no forward pass.
    more = """out = net(x)
    class Scripted(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(16, 3)
        def forward(self, x, k: float = 2.0):
            return nn.functional.relu(self.a(x)) * k
    import inspect, sys
    for made in (torch.jit.script(Scripted()), torch.jit.trace(Scripted(), x, check_trace=False)):
        torch.autograd.grad(made(x).float().sum(), list(made.parameters()))
    print(inspect.signature(Scripted.forward), Scripted.forward.__qualname__, str(made.graph).count("autocast"), file=sys.stderr)
    out = net(x)"""
    _, _, said = switches.run("autocast=bfloat16", forward=more)
    lines = [line for line in said.splitlines() if line.startswith("(")]
    assert lines == ["(self, x, k: float = 2.0) Scripted.forward 0"] * 4, said


def test_casts_of_a_weight_that_was_written_are_made_anew(switches: Switches) -> None:
    """Checks a forward pass that nothing ends between the two calls."""
    for write in ("with torch.no_grad(): net.head.weight.mul_(2)", "net.head.weight.data.mul_(2)"):
        twice = f"out = net(x); before = net.head.weight.clone()\n    {write}\n    again = net(x)"
        twice += "; import sys; print(torch.equal(out, again), file=sys.stderr); out = again"
        _, _, said = switches.run("autocast=bfloat16", forward="net.layers.eval(); " + twice)
        assert said.split() == ["False"] * 4, (write, said)


def test_the_programs_own_autocast_is_left_alone(switches: Switches) -> None:
    for own in ("enabled=False", "dtype=torch.float16"):
        forward = f"\n    with torch.autocast('cpu', {own}): out = net(x)\n    import sys; print(out.dtype, file=sys.stderr)\n    out = out.float()"
        outside, _, said = switches.run("autocast=bfloat16", forward=forward)
        plain, _, plain_said = switches.run(forward=forward)
        assert switches.equal(outside, plain) and said == plain_said, (said, plain_said)
    # Inside a forward pass that was begun, the program's own autocast counts. The backward pass is outside of both.
    inner = "out = net(x)\n    with torch.autocast('cpu', enabled=False): out.float().sum().backward(); opt.zero_grad()"
    _, _, said = switches.run("autocast=bfloat16", forward=inner + "\n    import sys; print(torch.is_autocast_enabled('cpu'), file=sys.stderr); out = net(x)")
    assert said.split() == ["False"] * 4, said


def test_the_programs_own_autocast_that_is_off(switches: Switches) -> None:
    off = {"forward": "with torch.autocast('cpu', enabled=False): out = net(x)"}
    _, noted, _ = switches.run(**off)
    assert noted["autocast_off"]["line"] == PROGRAM.splitlines().index("    {forward}") + 1, noted
    by_hand, _, _ = switches.run(forward="with torch.autocast('cpu', torch.bfloat16): out = net(x)")
    outside, noted, _ = switches.run("own_autocast=bfloat16", **off)
    assert switches.equal(by_hand, outside) and "cast" in noted, noted
    inside = {"layer": "(torch.autocast('cpu', enabled=False)(layer))(x)"}  # a part of the network stays in float32
    plain, noted, _ = switches.run(**inside)
    outside, _, _ = switches.run("own_autocast=bfloat16", **inside)
    assert "autocast_off" not in noted and switches.equal(plain, outside), noted


def test_a_checkpoint_switches_no_autocast_of_the_program(switches: Switches) -> None:
    for reentrant in (False, True):
        call = f"out = torch.utils.checkpoint.checkpoint(net, x.requires_grad_(), use_reentrant={reentrant})"
        _, noted, _ = switches.run(forward=call)
        assert "autocast_off" not in noted, noted


def test_an_autocast_may_be_left_on_another_thread(switches: Switches) -> None:
    leave = ("import threading; own = torch.autocast('cpu', torch.bfloat16); own.__enter__(); out = net(x)\n"
             "    other = threading.Thread(target=own.__exit__, args=(None,) * 3); other.start(); other.join()\n"
             "    torch.set_autocast_enabled('cpu', False)")
    for words in ("", "autocast=bfloat16"):
        _, _, said = switches.run(words, forward=leave)
        assert said == "", said


def test_off_in_backward_passes_and_optimizers(switches: Switches) -> None:
    look = "out = net(x)\n    import sys; print(torch.is_autocast_enabled('cpu'), file=sys.stderr)"
    look += "\n    out.register_hook(lambda _: print('backward', torch.is_autocast_enabled('cpu'), file=sys.stderr))"
    _, _, said = switches.run("autocast=bfloat16", forward=look)
    assert said.split() == ["True", "backward", "False"] * 4, said
    step = "out = net(x); opt.register_step_pre_hook(lambda *_: print(torch.is_autocast_enabled('cpu'), file=__import__('sys').stderr))"
    _, _, said = switches.run("autocast=bfloat16", forward=step + "; opt.step(); out = net(x)")
    assert set(said.split()) == {"False"}, said


ADJOINT = """
    class Adjoint(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, *weights):
            ctx.save_for_backward(x)
            with torch.no_grad(): return net(x)
        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad(): y = net(ctx.saved_tensors[0])
            return None, *torch.autograd.grad(y, list(net.parameters()), gradient.to(y.dtype))
    import sys
    with torch.no_grad(): print(Adjoint.apply(x, *net.parameters()).dtype, file=sys.stderr)
    CAST: out = Adjoint.apply(x, *net.parameters())
    print(out.dtype, file=sys.stderr)"""


def test_a_forward_pass_inside_an_autograd_function(switches: Switches) -> None:
    """Works like adjoint methods: gradients are off in its forward pass, and its backward pass calls the network in float32."""
    outside, _, said = switches.run("autocast=bfloat16", forward=ADJOINT.replace("CAST", "if True"))
    by_hand, _, by_hand_said = switches.run(forward=ADJOINT.replace("CAST", "with torch.autocast('cpu', torch.bfloat16)"))
    plain, _, _ = switches.run(forward=ADJOINT.replace("CAST", "if True"))
    assert said == by_hand_said and said.split() == ["torch.float32", "torch.bfloat16"] * 4, (said, by_hand_said)
    assert switches.equal(outside, by_hand) and not switches.equal(outside, plain)


def test_checkpoints_that_no_network_is_around(switches: Switches) -> None:
    """Checks that what checkpoints recompute has the type that it had in the forward pass."""
    for call in ("(net, x, use_reentrant=False)", "(net, x.requires_grad_(), use_reentrant=True)",
                 "(lambda x: net(x) * 2, x, use_reentrant=False)"):
        call = "out = torch.utils.checkpoint.checkpoint" + call
        for more in ("", " float_outputs"):
            outside, noted, _ = switches.run("autocast=bfloat16" + more, forward=call)
            by_hand, _, _ = switches.run(forward=f"\n    with torch.autocast('cpu', torch.bfloat16): {call}" + ("\n    out = out.float()" if more else ""))
            assert switches.equal(outside, by_hand) and "cast" in noted, (call, more)
    own = "\n    with torch.autocast('cpu', enabled=False): out = torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False)"
    outside, _, _ = switches.run("autocast=bfloat16", forward=own)
    assert switches.equal(outside, switches.run()[0])
    _, noted, said = switches.run("autocast=bfloat16", forward="import sys; net.eval(); print(torch.utils.checkpoint.checkpoint(net, x, "
                                  "use_reentrant=False).dtype, file=sys.stderr); net.train(); out = net(x)")
    assert said.split() == ["torch.float32"] * 4 and "evaluation" in noted, said


def test_other_devices_are_left_alone(switches: Switches) -> None:
    outside, noted, _ = switches.run("autocast=bfloat16 on=cuda")
    plain, _, _ = switches.run()
    assert switches.equal(outside, plain) and noted["other_device"]["device"] == "cpu" and "cast" not in noted, noted


def test_numpy_gets_float32(switches: Switches) -> None:
    _, _, said = switches.run("autocast=bfloat16", forward="out = net(x); import sys; print(out.dtype, out.detach().numpy().dtype, file=sys.stderr)")
    assert said.split() == ["torch.bfloat16", "float32"] * 4, said


def test_outputs_in_float32_if_a_loss_wants_them(switches: Switches) -> None:
    outside, _, _ = switches.run("autocast=bfloat16 float_outputs")
    by_hand, _, _ = switches.run(forward="\n    with torch.autocast('cpu', torch.bfloat16): out = net(x)\n    out = out.float()")
    assert switches.equal(outside, by_hand)


def test_named_outputs_in_float32_keep_their_type(switches: Switches) -> None:
    kinds = ("__import__('collections').namedtuple('Pair', 'of again')", "torch.nn.utils.rnn.PackedSequence")
    for kind in kinds:
        forward = (f"Kind = {kind}; wrapped = type('Wrapped', (nn.Module,), dict(__init__=lambda self: (nn.Module.__init__(self), "
                   "setattr(self, 'net', net))[1], forward=lambda self, x: Kind(*[self.net(x)] * 2)))()\n"
                   "    result = wrapped(x); out = result[0]\n"
                   "    import sys; print(type(result) is Kind, out.dtype, file=sys.stderr)")
        if "Packed" in kind:
            forward = forward.replace("Kind(*[self.net(x)] * 2)", "Kind(self.net(x), torch.ones(8, dtype=torch.int64))")
        _, _, said = switches.run("autocast=bfloat16 float_outputs", forward=forward)
        assert said.splitlines() == ["True torch.float32"] * 4, said


def test_checkpoints_change_no_bit(switches: Switches) -> None:
    """Checks that the dropout of a layer is drawn again with the same generator."""
    outside, noted, _ = switches.run("checkpoint", alone=True)
    by_hand, by_hand_noted, _ = switches.run(layer="torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)")
    plain, _, _ = switches.run()
    assert switches.equal(outside, by_hand) and switches.equal(outside, plain)
    assert "checkpoint" in by_hand_noted and "checkpoint" not in noted


def test_a_checkpointed_layer_keeps_less(switches: Switches) -> None:
    count = "\n    packed = []\n    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t): out = net(x)\n"
    count += "    import sys; print(len(packed), file=sys.stderr)"
    _, _, plain = switches.run(forward=count)
    _, _, fewer = switches.run("checkpoint", forward=count)
    assert int(fewer.split()[0]) < int(plain.split()[0]), (plain, fewer)


def test_a_layer_whose_forward_is_called(switches: Switches) -> None:
    direct = {"layer": "layer.forward(x)"}
    plain, noted, _ = switches.run(**direct)
    assert noted["repeated_layers"]["count"] == 4, noted
    runs = "nn.MSELoss()\nimport sys\nplain = Layer.forward\ndef seen(*all): print('runs', file=sys.stderr); return plain(*all)\nLayer.forward = seen"
    outside, _, said = switches.run("checkpoint", loss=runs, **direct)
    assert switches.equal(plain, outside) and said.split() == ["runs"] * 4 * 4 * 2, said  # in the backward pass again
    _, _, said = switches.run("checkpoint", loss=runs)
    assert said.split() == ["runs"] * 4 * 4 * 2, said


def test_several_at_once(switches: Switches) -> None:
    outside, _, _ = switches.run("checkpoint autocast=bfloat16")
    by_hand, _, _ = switches.run(layer="torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)",
                               forward="with torch.autocast('cpu', torch.bfloat16): out = net(x)")
    assert switches.equal(outside, by_hand)


def test_programs_that_look_at_names_and_arguments_see_torchs(switches: Switches) -> None:
    looks = """
import inspect, json, torch
seen = [torch.optim.AdamW.__init__, torch.optim.Adam.__init__, torch.optim.Optimizer.zero_grad, torch.nn.Module.zero_grad,
        torch.nn.Module.__call__, torch.nn.parallel.DistributedDataParallel.__init__, torch.utils.checkpoint.checkpoint,
        torch.autocast.__init__, torch.autocast.__enter__, torch.no_grad.__exit__, torch.Tensor.numpy,
        torch.autograd.backward, torch.autograd.Function.apply]
def arguments(one):
    try:
        return list(inspect.signature(one).parameters)
    except ValueError:
        return []
print(json.dumps([[one.__name__, one.__qualname__, arguments(one)] for one in seen]))
"""
    words = [str(switches.folder / one) for one in ("run.py", "looks.py", "looks.txt")]
    pathlib.Path(words[1]).write_text(looks)
    ended, plain = in_fork(looks, words[1:2], {}, pathlib.Path(words[2]))
    variables = {"ULLAGE_SWITCHES": "autocast=bfloat16 foreach=0 set_to_none bucket_views"}
    switched_ended, switched = in_fork(RUN, [words[0], str(switches.script), words[1]], variables, pathlib.Path(words[2]))
    assert (ended, switched_ended) == (0, 0), (plain, switched)
    for torchs, ours in zip(json.loads(plain), json.loads(switched), strict=True):
        assert torchs == ours, (torchs, ours)


def test_layers_in_a_dictionary_are_repeated_layers(switches: Switches) -> None:
    _, noted, _ = switches.run(layers="nn.ModuleDict({str(i): Layer() for i in range(4)})")
    assert noted["repeated_layers"]["name"] == "Layer" and noted["repeated_layers"]["count"] == 4, noted


def test_only_layers_and_networks_that_learn_are_named(switches: Switches) -> None:
    # A frozen network is called first, as the encoder of a diffusion model is; it has repeated layers too.
    layers = ("(lambda Other: nn.ModuleList([Layer() for _ in range(3)] + [Other() for _ in range(3)]))"
              "(type('Other', (Layer,), {}))")
    encoder = "nn.MSELoss()\nclass Frozen(Layer): pass\nencoder = nn.Sequential(*[Frozen() for _ in range(5)]).requires_grad_(False)"
    _, noted, _ = switches.run(layers=layers, loss=encoder, forward="out = net(encoder(x))")
    assert noted["repeated_layers"]["name"] == "Layer and Other" and noted["repeated_layers"]["count"] == 6, noted
    assert noted["forward"]["name"] == "Net", noted
    # A frozen teacher of the same class does not count.
    teacher = "nn.MSELoss()\nteacher = Net().requires_grad_(False)"
    _, noted, _ = switches.run(loss=teacher, forward="teacher(x); out = net(x)")
    assert noted["repeated_layers"]["count"] == 4, noted


def test_optimizers(switches: Switches) -> None:
    for switch, word in (("foreach=0", ", foreach=False"), ("foreach=1", ", foreach=True"), ("fused=1", ", fused=True")):
        outside, _, _ = switches.run(switch)
        by_hand, noted, _ = switches.run(made=word)
        assert switches.equal(outside, by_hand), switch
        assert noted["optimizer"][switch[:-2]] is (switch[-1] == "1"), noted
    _, noted, _ = switches.run("fused=1", made=", foreach=True")  # the program's own choice stays
    assert noted["optimizer"]["foreach"] is True and noted["optimizer"]["fused"] is None, noted


def test_an_optimizer_derived_from_torchs(switches: Switches) -> None:
    own = {"loss": "nn.MSELoss()\ntorch.optim.Adam = type('Own', (torch.optim.Adam,), {})"}
    _, noted, _ = switches.run("foreach=0", **own)
    assert noted["optimizer"]["name"] == "Adam" and noted["optimizer"]["foreach"] is False, noted
    _, noted, _ = switches.run(loss=own["loss"].replace("Adam", "AdamW").replace("torch.optim.AdamW =", "torch.optim.Adam ="))
    assert noted["optimizer"]["name"] == "AdamW", noted


def test_weights_that_move_after_the_optimizer_was_made(switches: Switches) -> None:
    """Which remedies an optimizer has depends on where its weights are when it steps."""
    moved = 'opt.param_groups[0]["params"].insert(0, nn.Parameter(torch.ones(1, device="meta")))'
    _, noted, _ = switches.run(forward=f"out = net(x)\n    if step == 0: {moved}")
    assert noted["optimizer"]["device"] == "meta" and noted["optimizer"]["line"] > 0, noted
    _, noted, _ = switches.run()
    assert noted["optimizer"]["device"] == "cpu", noted


def test_gradients_are_freed_between_steps(switches: Switches) -> None:
    asks = "opt.zero_grad(set_to_none=False); import sys; print(any(p.grad is not None for p in net.parameters()), file=sys.stderr)"
    plain, noted, said = switches.run(zero=asks)
    assert said.split() == ["False", "True", "True", "True"] and "keeps_zeroed_gradients" in noted, (said, noted)
    freed, _, said = switches.run("set_to_none", zero=asks)
    assert said.split() == ["False"] * 4 and switches.equal(plain, freed), said


def test_a_plain_run_ends_after_its_steps(switches: Switches) -> None:
    look = "import sys; print(step, file=sys.stderr); held = torch.ones(2**24 if step == 0 else 1); del held; out = net(x)"
    file, noted, said = switches.run("plain_run=3", alone=True, forward=look)
    assert said.split() == ["0", "1", "2"] and not file.exists(), said
    assert 64 * 2**20 < noted["process"]["peak"] < 2**30 and 0 < noted["process"]["seconds"] < 10, noted
    # it has fewer steps than that: its peak until its end counts, not that of its last step
    _, fewer, said = switches.run("plain_run=9", alone=True, forward=look + "; step == 3 and (torch.ones(2**27), sys.exit())")
    assert said.split() == ["0", "1", "2", "3"] and fewer["process"]["peak"] > noted["process"]["peak"], (said, fewer)
    _, none, _ = switches.run(forward=look)
    assert "process" not in none, none


def test_a_plain_run_counts_what_its_children_hold(switches: Switches) -> None:
    child = "import sys; held = bytearray(2**26); print(1, flush=True); sys.stdin.read()"  # ends with its parent
    starts = ("import subprocess, sys; out = net(x); p = 'PIPE' and subprocess.PIPE; "
              f"step == 0 and globals().update(child=subprocess.Popen([sys.executable, '-c', {child!r}], stdin=p, stdout=p)) "
              "or step == 0 and child.stdout.readline()")
    _, noted, _ = switches.run("plain_run=3", alone=True, forward=starts)
    assert 64 * 2**20 <= noted["process"]["others"] < 96 * 2**20, noted
    _, alone, _ = switches.run("plain_run=3", alone=True)
    assert alone["process"]["others"] == 0, alone


def test_steps_are_timed_while_the_program_runs_on(switches: Switches) -> None:
    # The runtime ends a recorded run in the middle, so what is known must be on disk after each step.
    at_step = "out = net(x); step == {} and __import__('os')._exit(0)"
    _, noted, _ = switches.run("time_steps", forward=at_step.format(2))
    assert 0 < noted["process"]["seconds"] < 10, noted
    _, noted, _ = switches.run("time_steps", forward=at_step.format(1))  # one step ended: nothing is between two ends
    assert "process" not in noted, noted
    plain, _, _ = switches.run()
    timed, noted, _ = switches.run("time_steps")
    assert switches.equal(plain, timed) and noted["process"]["peak"] > 0, noted


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Switches(sys.argv[1], folder), only="".join(sys.argv[2:3]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
