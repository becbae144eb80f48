# SPDX-License-Identifier: Apache-2.0
"""Runs planned programs in unusual situations. They fork within a step, catch a refused request, or write to tensors
that others are recomputed from. Some are recorded meanwhile, or begin with a plan for more memory than there is. The
bits must be the plain program's.

usage: test_planned.py ULLAGE LIBULLAGE_TORCH [NAME...]
"""
import json
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS), str(TESTS / "nets")]
import quick_runs  # noqa: E402
from cases import Cost  # noqa: E402
from runs import least_to_start  # noqa: E402

MIB = 1 << 20
MARGIN = 8 * MIB  # store::Budget::kMargin
STEPS = 10

# `meanwhile(step, part)` is what a case does, at four places of each step.
PROGRAM = """
import ctypes, hashlib, os, sys, threading
import torch
library = ctypes.CDLL(sys.argv[1]) if len(sys.argv) > 1 else None
ROWS, COLUMNS = 4096, 128                                           # 2 MiB a layer; a weight is in no slab (slabs.h)
torch.manual_seed(1)
torch.set_num_threads(2)
# Two threads' first call of these may differ in bits in the plain program too (runtime/ops/vector_math.h).
for first_call in (torch.tanh, torch.sqrt): first_call(torch.ones(8))
linear = torch.nn.ModuleList([torch.nn.Linear(COLUMNS, COLUMNS) for _ in range(10)])
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1, momentum=0.9, foreach=False)
said, more_steps = [], 0

def meanwhile(step, part): pass

def forward(x):
    global inputs, between, outputs
    inputs, between, outputs = [], [], []
    for i, layer in enumerate(linear):
        if i == 5: meanwhile(STEP, "in forward")
        inputs.append(x)
        x = layer(x)
        between.append(x)                                           # what autograd does not save
        x = torch.tanh(x)
        outputs.append(x)
        x = torch.nn.functional.dropout(x, 0.1)
    return x
CASE

for STEP in range(STEPS + more_steps):
    optimizer.zero_grad()
    loss = forward(torch.randn(ROWS, COLUMNS)).pow(2).mean()
    meanwhile(STEP, "forward done")
    loss.backward()
    meanwhile(STEP, "backward done")
    optimizer.step()
    meanwhile(STEP, "step done")

digest = hashlib.sha256(torch.get_rng_state().numpy().tobytes())
for p in linear.parameters():
    digest.update(p.detach().numpy().tobytes())
print(digest.hexdigest(), *said)
""".replace("STEPS", str(STEPS))

CASES = {}


def case(**expected):
    """`deviations`, `rescues`: how many there may be at most; nothing: any. `least_steps`: at least so many steps run
    as planned. `least_plans`: at least so many were adopted. `all_planned`: the step of the adoption and all later ones
    run as planned. `most_unused`: so much of the budget the plan leaves to nobody. What the function returns comes
    before its text."""
    def add(function):
        CASES[function.__name__] = ((function() or "") + (function.__doc__ or ""), expected)
        return function
    return add


@case(deviations=0, rescues=0, least_steps=STEPS - 4, all_planned=True)
def nothing():
    """"""


@case()
def a_fork_within_a_step():
    """
def meanwhile(step, part):
    if step not in (6, 7) or part in ("backward done", "step done"): return
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)                                    # GNU's OpenMP has no threads in a forked child
        right = all(torch.equal(y, torch.tanh(layer(x))) for x, y, layer in zip(inputs, outputs, linear))
        small = torch.nn.Linear(64, 64)
        small(torch.ones(8, 64)).sum().backward()
        os._exit(0 if right and bool((small.bias.grad == 8).all()) else 9)
    said.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@case()
def a_fork_on_another_thread():
    """
def child():
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)
        os._exit(0 if all(bool(torch.isfinite(y).all()) for y in kept) else 9)
    said.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
def meanwhile(step, part):
    global kept, forks
    if step in (6, 7) and part == "forward done":
        kept = list(outputs)
        forks = threading.Thread(target=child)
        forks.start()
    if step in (6, 7) and part == "backward done": forks.join()
"""


@case()
def an_error_that_the_program_catches():
    """
def meanwhile(step, part):
    if step not in (5, 7): return
    try:
        torch.empty(1 << 58)
    except RuntimeError:
        said.append("caught")
    try:
        outputs[0].expand(1 << 30, ROWS, COLUMNS).contiguous()
    except RuntimeError:
        said.append("caught")
"""


@case()
def another_thread_writes_to_what_others_are_made_from():
    """
def write():
    with torch.no_grad():
        for z in between: z.mul_(1.0)                               # version and all, though the bits stay
def meanwhile(step, part):
    if step not in (6, 8) or part != "in forward": return
    other = threading.Thread(target=write)
    other.start(); other.join()
"""


@case(rescues=0)
def storages_that_python_has_seen_are_freed_on_both_sides():
    """
stop = False
def churn():
    while not stop:
        some = [torch.empty(40000) for _ in range(4)]               # freed while Python's lock is held
        some[0].untyped_storage(); del some
def meanwhile(step, part):
    global stop, churning
    for y in outputs[-1:]: y.untyped_storage()                      # from now on freeing it takes Python's lock
    if step == 4 and part == "forward done":
        churning = threading.Thread(target=churn); churning.start()
    if step == 8 and part == "backward done":
        stop = True; churning.join()
"""


@case()
def evaluations_that_begin_like_a_step_and_keep_less():
    """
def meanwhile(step, part):
    if part != "step done" or step not in (6, 8): return
    with torch.no_grad():
        x, kept, made_from = torch.randn(ROWS, COLUMNS), [], []
        for layer in linear:
            y = [layer(x)]
            if step == 8: made_from.extend(y)                       # gone after `kept` was dropped; else before
            kept.append(torch.tanh(y.pop()))
            x = torch.nn.functional.dropout(kept[-1], 0.1)
        made_from.clear()
        said.append([float(y.sum()) for y in kept])
"""


@case(deviations=2, rescues=0, least_steps=4)  # a deviation for each skipped step; all others run as planned
def steps_that_a_scaler_skips():
    """
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
factors = torch.tensor([float("inf") if step in (6, 8) else 1.0 for step in range(10)])  # each step runs the same ops
def stepped():
    del optimizer.step
    scaler.step(optimizer)
    scaler.update()
def meanwhile(step, part):
    global loss
    if part == "forward done": loss = scaler.scale(loss) * factors[step]
    if part == "backward done": optimizer.step = stepped
    if part == "step done": said.append(scaler.get_scale())
"""


@case(deviations=0, rescues=0, least_steps=STEPS - 4, most_unused=10 * MIB)  # the plan is made in the third step
def windows_of_three_backward_passes():
    """
optimizer = torch.optim.Adam(linear.parameters(), lr=1e-3, foreach=False)  # SGD would do more in its first step
def meanwhile(step, part):
    global loss
    if part != "forward done": return
    for _ in range(2):
        (loss / 3).backward()
        loss = forward(torch.randn(ROWS, COLUMNS)).pow(2).mean()
    loss = loss / 3
"""


@case(rescues=0, least_steps=6)
def first_steps_that_do_more():
    """
more_steps = 8
def meanwhile(step, part):
    global averages
    if part != "step done": return
    said.append(float(outputs[-1][0, 0]))
    with torch.no_grad():
        if step < 2: averages = [p.clone() for p in linear.parameters()]
        else: [a.lerp_(p, 0.1) for a, p in zip(averages, linear.parameters())]
"""


@case(rescues=0, least_steps=6)
def steps_that_fit_come_first():
    """
more_steps = 6
torch.zeros(40 << 18).sum()                                         # it fills the pool, so that steps are observed
all_rows = forward
def forward(x): return all_rows(x if STEP > 5 else x[:ROWS // 32])
"""


@case(deviations=0, rescues=0, least_steps=4)
def a_plan_whose_making_needs_the_room_of_ops():
    """
more_steps = 2
three = [torch.rand(27 << 18) for _ in range(3)]                    # what ops have needed at once so far
torch.maximum(three[0], three[1], out=three[2])
del three
def meanwhile(step, part):                                          # many ops: the recording is long
    if part != "forward done" or step == 0: return
    for i in range(1500): torch.ones(i % 50 + 1).add_(i)
"""


@case(deviations=0, rescues=0, least_steps=STEPS - 4)
def calls_that_touch_nothing_of_the_pool():
    """
def meanwhile(step, part):
    for _ in range(step % 3): torch.empty(0).reshape(0)
"""


@case(deviations=0, rescues=0)
def an_op_that_throws_in_every_step():
    """
def meanwhile(step, part):
    if part != "forward done": return
    try:
        outputs[0].permute(0, 1, 2)
    except RuntimeError:
        said.append("caught")
"""


@case(deviations=0, rescues=0)
def a_batch_that_is_loaded_one_step_ahead():
    """
batch, ahead = None, torch.rand(64, COLUMNS)
def meanwhile(step, part):
    global batch, ahead
    if part != "in forward": return
    said.append(float(ahead.sum()))                                 # `batch` is still the one before
    batch, ahead = ahead, torch.rand(64, COLUMNS)
"""


@case(deviations=0, rescues=0, least_steps=STEPS - 4)
def words_of_other_lengths_in_each_step():
    """
def meanwhile(step, part):
    if part == "backward done": return
    words = [torch.zeros(8 + (step * 5 + i * 3) % 11) for i in range(3 + step % 3)]
    for i, word in enumerate(words): word[1:3 + (step + i) % 5] = 1.0
    said.append(float(torch.stack([word[:8] for word in words]).sum()))
"""


@case(says="no step ran as planned")
def sizes_that_change_in_each_step():
    """
all_rows = forward
def forward(x): return all_rows(x[:ROWS - 32 * STEP])
"""


@case(says="no step ran as planned")
def sizes_that_change_from_the_first_op_on():
    """
all_rows = forward
def forward(x): return all_rows(torch.randn(ROWS - 32 * STEP, COLUMNS))
"""


@case(least_plans=2)
def a_loop_that_is_no_step_comes_first():
    """
more_steps = 10
held = [torch.rand(ROWS, COLUMNS) for _ in range(45)]             # they fill the pool, so that their loop is observed
with torch.no_grad():
    for _ in range(4):
        for one in held: torch.tanh(linear[0](one)).sum()
del held
"""


@case(deviations=0, rescues=0, least_steps=STEPS - 4)
def small_tensors_made_before_a_large_one():
    """
def meanwhile(step, part):                                          # by the same op, which reads nothing
    if part != "in forward": return
    torch.empty(16), torch.empty(64, 16)
    copy = torch.empty(ROWS, COLUMNS)
    said.append(float(torch.tanh(copy.copy_(inputs[-1].detach())).sum()))
"""


@case(deviations=0, rescues=0)
def weights_in_mapped_files():
    """
import tempfile
files, norms = [], torch.nn.ModuleList([torch.nn.LayerNorm(COLUMNS) for _ in linear]).requires_grad_(False)
def forward(x):
    for norm, layer in zip(norms, linear): x = torch.nn.functional.dropout(torch.tanh(layer(norm(x))), 0.1)
    return x
for p in [*linear.parameters(), *norms.parameters()]:
    files.append(tempfile.NamedTemporaryFile())
    files[-1].write(p.detach().numpy().tobytes()); files[-1].flush()
    bytes = torch.UntypedStorage.from_file(files[-1].name, False, p.untyped_storage().nbytes())
    p.data = torch.empty(0).set_(bytes, 0, p.shape, p.stride())
"""


@case(deviations=0, rescues=0)
def mapped_weights_that_are_written_before_they_are_read():
    """
optimizer.add_param_group({"params": norms.requires_grad_(True).parameters()})
def meanwhile(step, part):                                          # so a step begins with the optimizer's writes
    if part == "backward done" and library is not None: library.ullage_mark_step()
"""
    return CASES["weights_in_mapped_files"][0]


def text_of(name: str) -> str:
    return PROGRAM.replace("CASE", CASES[name][0])


class Programs:
    def __init__(self, ullage: str, library: str, folder: str):
        self.ullage, self.library, self.folder = ullage, library, pathlib.Path(folder)

    def under(self, budget: int, name: str, *options: str) -> tuple[subprocess.CompletedProcess, dict]:
        report = self.folder / "report.json"
        head = [self.ullage, "run", "--memory", str(budget), "--spill", f"{self.folder}:4GiB", "--report", str(report)]
        words = [*head, *options, "--", sys.executable, "-c", text_of(name), self.library]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=quick_runs.environment(ULLAGE_PLANNING="wait"))
        return done, json.loads(report.read_text())


def problems_of(done: subprocess.CompletedProcess, told: dict, plain: str, budget: int, expected: dict) -> list[str]:
    problems = []
    if done.returncode != 0:
        problems.append(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    elif done.stdout != plain:
        problems.append(f"said {done.stdout!r}, the plain program {plain!r}")
    if told["process_peak_bytes"] > budget or told["over_budget_bytes"] != 0:
        problems.append(f"{told['process_peak_bytes'] - budget} bytes over the budget")
    if says := expected.get("says"):
        if says not in done.stderr or (told.get("plan") or {"steps": 0})["steps"] > 0:
            problems.append(f"it did not say {says!r}: {done.stderr}")
        return problems
    plan, most = told.get("plan"), dict(expected)
    least_steps, all_planned = most.pop("least_steps", 1), most.pop("all_planned", False)
    least_plans, most_unused = most.pop("least_plans", 1), most.pop("most_unused", None)
    if plan is None or plan["steps"] < least_steps:
        problems.append(f"fewer than {least_steps} steps ran as planned; the run said: {done.stderr[-2000:]}")
    elif plan["plans"] < least_plans:
        problems.append(f"{plan['plans']} plans were adopted, not {least_plans}")
    else:
        if all_planned and plan["adopted_at_step"] != STEPS - plan["steps"] + 1:
            problems.append(f"adopted at step {plan['adopted_at_step']}, but {plan['steps']} of {STEPS} ran as planned")
        unused = budget - told["outside_pool_bytes"] - MARGIN - plan["peak_bytes"]
        if most_unused is not None and unused > most_unused:
            problems.append(f"the plan leaves {unused / MIB:.1f} MiB of the budget to nobody")
        problems += [f"{plan[name]} {name}" for name, at_most in most.items() if plan[name] > at_most]
    return problems


def main() -> None:
    ullage, library = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    only, failed = sys.argv[3:], []

    cost = Cost()

    def judge(name: str, *found) -> None:
        nonlocal cost
        if problems := problems_of(*found):
            failed.append(name)
        plan = found[1].get("plan") or {}
        figures = ", ".join(f"{plan.get(key)} {key}" for key in ("steps", "rescues", "deviations", "plans"))
        print(f"{'FAILED' if problems else 'ok    '} {name} ({cost}): {figures}", *problems, sep="\n    " if problems else "", flush=True)
        cost = Cost()

    with tempfile.TemporaryDirectory(dir=pathlib.Path(ullage).parent, prefix="test-planned-") as folder:
        programs = Programs(ullage, library, folder)
        take, plan = programs.folder / "run.ullage", programs.folder / "plan.json"
        done, roomy = programs.under(8 << 30, "nothing", "--record", str(take))
        assert done.returncode == 0, done.stderr
        least = least_to_start(programs.under(MIB, "nothing")[0].stderr)
        beside = roomy["outside_pool_bytes"] + MARGIN + 16 * MIB  # what planning takes
        budget = beside + int(0.6 * roomy["pool_peak_bytes"])
        assert budget >= least, (budget, least)
        for_files = least + 16 * MIB + int(0.7 * roomy["pool_peak_bytes"])  # a plan made beforehand keeps the warm-up free
        print(f"the budgets ({cost})", flush=True)
        cost = Cost()
        for name, (_, expected) in CASES.items():
            if only and name not in only:
                continue
            judge(name, *programs.under(budget, name), quick_runs.plain(text_of(name)), budget, expected)
        plain = quick_runs.plain(text_of("nothing"))
        if not only or "recorded_meanwhile" in only:
            found = programs.under(budget, "nothing", "--record", str(programs.folder / "again.ullage"))
            judge("recorded_meanwhile", *found, plain, budget, {"deviations": 0, "rescues": 0})
            read = subprocess.run([ullage, "plan", str(programs.folder / "again.ullage"), "--memory", str(for_files)],
                                  capture_output=True, text=True)
            if read.returncode != 0:
                failed.append("recorded_meanwhile")
                print(f"FAILED what was recorded meanwhile cannot be planned: {read.stderr}")
        if not only or "a_plan_for_more_memory" in only:
            made = subprocess.run([ullage, "plan", str(take), "--memory", str(for_files), "--out", str(plan)],
                                  capture_output=True, text=True)
            assert made.returncode == 0, made.stderr
            for name, given, expected in (("a_plan_from_a_file", for_files, {"deviations": 0, "rescues": 0}),
                                          ("a_plan_for_more_memory", for_files - 24 * MIB, {})):
                judge(name, *programs.under(given, "nothing", "--plan", str(plan)), plain, given, expected)
    sys.exit(f"failed: {failed}" if failed else 0)


if __name__ == "__main__":
    main()
