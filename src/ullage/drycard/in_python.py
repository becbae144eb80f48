# SPDX-License-Identifier: Apache-2.0
"""libullage_preload.so runs this text at the end of `import torch`, in each Python process of a dry run.

It keeps torch's own memory history if asked to, counts steps by the optimizers' calls, and ends the program if asked
to. At the process's end it writes torch's figures of memory, and the error that ended the process.

environment  ULLAGE_DRYCARD_ACCOUNT  a folder: PID.json, PID.pickle with the history, PID.lines with answers to the signal
             ULLAGE_DRYCARD_HISTORY  1: the history is kept
             ULLAGE_DRYCARD_STEPS    end the program after so many steps; 0: never
             ULLAGE_DRYCARD_SECONDS  end the program after so many seconds; 0: never
             ULLAGE_DRYCARD_LINE_SIGNAL  the launcher sends it to ask for the main thread's lines; 0 or none: it does not
             ULLAGE_DRYCARD_VALUES   the file values.py; empty: nothing is known of values
"""
import atexit
import ctypes
import faulthandler
import gc
import json
import os
import pickle
import signal
import sys
import threading
import time
import traceback

import torch

STANDARD = os.path.dirname(os.__file__)  # of Python's own modules
# What a torch must have beside what all versions have. Each name is in its own module, because torch.optim hides one.
NEEDED = (("torch.optim.optimizer", "register_optimizer_step_post_hook"), ("torch.cuda.memory", "_dump_snapshot"),
          ("torch._C", "_cuda_attach_out_of_memory_observer"), ("torch.overrides", "_pop_mode_temporarily"))
MOST_CALLS = 50  # after so many of one optimizer a dry run that stops after steps waits for no other
MOST_EVENTS = 2_000_000  # torch keeps a ring of them; an event is some hundred bytes


class Account:
    def __init__(self):
        self.folder = os.environ["ULLAGE_DRYCARD_ACCOUNT"]
        self.keeps_history = os.environ.get("ULLAGE_DRYCARD_HISTORY") == "1"
        self.most_steps = int(os.environ.get("ULLAGE_DRYCARD_STEPS", "0"))
        self.began = time.monotonic()
        self.process = os.getpid()
        self.ended_by = "program"
        self.out_of_memory = []  # errors that torch raised, caught by the program or not
        self.error = None  # the one that ended it
        self.steps = OptimizerSteps()  # of base/optimizer_steps.h, whose text stands before this one
        self.lock = threading.Lock()
        self.lock_of_steps = threading.Lock()
        self.steps_seen = 0  # if most_steps: when the last call of an optimizer ended
        self.written = False
        self.values = None
        self.last_pass = []  # what finish() keeps alive
        self.peaks = {}  # by card; a program's call to reset its peaks leaves these as they are

    # ---- steps

    def optimizer_stepped(self, optimizer, *_):
        with self.lock_of_steps:
            self.steps.called(optimizer)
            if not self.most_steps:
                return
            before, self.steps_seen = self.steps_seen, self.steps.total()
            now = self.steps_seen
        # A program may make a new optimizer for each step, so that none is called often.
        if max(*self.steps.calls.values(), now) >= MOST_CALLS:
            self.end("steps")
        elif now != before and now >= self.most_steps and not self.waits_for_an_optimizer():
            self.end("steps")

    def waits_for_an_optimizer(self):
        """Returns whether an optimizer was made that has not made two steps. A generator's, for example, comes after five
        steps of its critic's, and its state is there at its second step. An optimizer does not count if others have made
        steps with all its parameters: it passes calls on to them, or they came in its place."""
        made = [one for one in gc.get_objects() if issubclass(type(one), torch.optim.Optimizer)
                and "param_groups" in getattr(one, "__dict__", {})]
        parameters = {id(one): {id(parameter) for group in one.param_groups for parameter in group["params"]} for one in made}
        stepped = [parameters[id(one)] for one in made if self.steps.calls.get(self.steps.number_of(one), 0) >= 2]
        return not set().union(*parameters.values()) <= set().union(*stepped)

    # ---- errors

    def memory_ran_out(self, device, request, total, free):
        place = innermost_line(traceback.extract_stack())
        self.out_of_memory.append({"device": device, "request": request, "total": total, "free": free, **place})

    def program_failed(self, kind, error, trace):
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        self.error = {"type": name, "text": str(error), **innermost_line(traceback.extract_tb(trace))}
        self.hook(kind, error, trace)

    # ---- the end

    def end(self, why):
        """Ends the program, on whatever thread. What it printed so far is not lost."""
        self.ended_by = why
        self.write()
        flush_outputs()
        self.exit(0)

    def refuse_torch(self, lacking):
        """Ends the program where it imports torch. A torch of another age may crash without a word."""
        text = (f"torch {torch.__version__} cannot run dry, 2.1 to 2.15 can: it lacks {', '.join(lacking)}; install one of "
                "these in an environment of its own")
        flush_outputs()
        print(f"ImportError: {text}", file=sys.stderr, flush=True)
        self.error = {"type": "ImportError", "text": text, **innermost_line(traceback.extract_stack())}
        self.leave(2)

    def finish(self):
        """Runs at the program's own end. The thread of a card's backward passes may still hold a Python object of the
        last pass. If the thread released it while Python finishes, the process would abort (torch 2.13). After one more
        pass the thread holds none."""
        self.write()
        if not torch.cuda.is_initialized() or os.getpid() != self.process:
            return
        if self.values:
            self.values.__exit__(None, None, None)
        for card in filter(torch._C._cuda_hasPrimaryContext, range(torch.cuda.device_count())):
            leaf = torch.empty(0, device=torch.device("cuda", card), requires_grad=True)
            gradient = leaf.detach().clone()
            self.last_pass.append((leaf, gradient))  # so that the thread holds the last reference to neither of them
            torch.autograd.Variable._execution_engine.run_backward((leaf.view(0),), (gradient,), False, False, (),
                                                                   allow_unreachable=False, accumulate_grad=True)

    def leave(self, code):
        self.write()
        self.exit(code)

    def write(self):
        with self.lock:
            if self.written or os.getpid() != self.process or not os.path.isdir(self.folder):
                return  # the folder is gone if a process outlives the command, as the compiler's workers may
            self.written = True
        cards = []
        if torch.cuda.is_initialized():
            for card in range(torch.cuda.device_count()):
                stats = self.note_peaks(card)
                cards.append({**self.peaks[card], "retries": stats.get("num_alloc_retries", 0)})
            if self.keeps_history:
                with open(f"{self.folder}/{self.process}.pickle", "wb") as file:
                    pickle.dump(with_workspaces(torch.cuda.memory._snapshot()), file)
        told = {"torch": torch.__version__, "seconds": time.monotonic() - self.began, "ended_by": self.ended_by,
                "steps": [{"steps": steps, "optimizers": size} for size, steps in self.steps.by_size().items()], "cards": cards,
                "out_of_memory": self.out_of_memory, "error": self.error, "libraries": loaded_libraries(),
                "bounds": [{"op": op, "how": how, "file": file, "line": line, "count": count}
                           for (op, how, file, line), count in (self.values.bounds if self.values else {}).items()]}
        with open(f"{self.folder}/{self.process}.part", "w") as file:
            json.dump(told, file)
        os.rename(file.name, f"{self.folder}/{self.process}.json")

    def note_peaks(self, card):
        stats = torch.cuda.memory_stats(card)
        before = self.peaks.get(card, {})
        self.peaks[card] = {f"{kind}_peak": max(stats.get(f"{kind}_bytes.all.peak", 0), before.get(f"{kind}_peak", 0))
                            for kind in ("allocated", "requested", "reserved")}
        return stats

    def reset_peaks(self, card):
        self.note_peaks(card)
        self.real_reset_peaks(card)

    def save(self, what, to, *rest, **named):
        """Replaces torch.save. The tensors are zeros, so a file that exists is not written over."""
        if isinstance(to, (str, os.PathLike)) and os.path.exists(to):
            return None
        return self.real_save(what, to, *rest, **named)

    def begin(self):
        self.exit, os._exit = os._exit, self.leave
        if torch.version.cuda is not None:  # a CPU build beside the CUDA build lacks some, and needs none
            if lacking := [f"{module}.{name}" for module, name in NEEDED if not hasattr(sys.modules.get(module), name)]:
                self.refuse_torch(lacking)
        self.real_save, torch.save = torch.save, self.save
        self.hook, sys.excepthook = sys.excepthook, self.program_failed
        atexit.register(self.finish)
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self.optimizer_stepped)
        self.answer_for_lines()
        self.follow_values()
        torch.cuda._lazy_call(self.card_is_there)
        if seconds := float(os.environ.get("ULLAGE_DRYCARD_SECONDS", "0")):
            timer = threading.Timer(seconds, self.end, ["seconds"])
            timer.daemon = True
            timer.start()

    def answer_for_lines(self):
        """Lets a signal append the main thread's lines to a file (cli/line_question.h). The file's first line is the folder
        of Python's own modules."""
        number = int(os.environ.get("ULLAGE_DRYCARD_LINE_SIGNAL", "0"))
        if number and os.path.isdir(self.folder):
            self.lines = open(f"{self.folder}/{self.process}.lines", "w")
            print(STANDARD, file=self.lines, flush=True)
            if threading.current_thread() is threading.main_thread():
                signal.signal(number, signal.SIG_IGN)  # what it is again when Python ends, or runs another program
            faulthandler.register(number, self.lines, all_threads=False)

    def follow_values(self):
        """Follows values in every thread, because a mode is each thread's own."""
        file = os.environ.get("ULLAGE_DRYCARD_VALUES")
        if not file:
            return
        module = {"__name__": "ullage_values"}
        with open(file) as text:
            exec(compile(text.read(), "<ullage values>", "exec"), module)
        self.values = module["Values"]()
        self.values.__enter__()
        plain_run = threading.Thread.run

        def run(thread):
            with self.values:
                plain_run(thread)

        threading.Thread.run = run
        self.real_compile, torch.compile = torch.compile, self.compile

    def compile(self, model=None, *rest, **named):
        """Replaces torch.compile. Its tracer would trace the mode that follows values too, so they are not followed in
        compiled code."""
        made = self.real_compile(model, *rest, **named)
        if isinstance(made, torch.nn.Module):
            made.__dict__["forward"] = self.values.aside(made.forward)
        elif model is not None:  # else a decorator, which calls this function again
            made = self.values.aside(made)
        return made

    def card_is_there(self):
        if self.values:
            self.values.is_on = True
        if torch.cuda.memory.get_allocator_backend() == "native":
            torch._C._cuda_attach_out_of_memory_observer(self.memory_ran_out)
        else:
            self.keeps_history = False  # cudaMallocAsync has neither
        self.real_reset_peaks, torch._C._cuda_resetPeakMemoryStats = torch._C._cuda_resetPeakMemoryStats, self.reset_peaks
        if self.keeps_history:
            torch.cuda.memory._record_memory_history(max_entries=MOST_EVENTS, stacks="python")
            # Calls of the program itself would begin the history again, or end it.
            torch._C._cuda_record_memory_history = torch._C._cuda_record_memory_history_legacy = lambda *_, **__: None


def flush_outputs():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the program closed it
            pass


def with_workspaces(snapshot):
    """Puts the name of the function of torch that allocates cuBLAS's workspaces before the stacks of these. The history
    has frames of Python alone, which do not tell a workspace from a product's result. The card knows the addresses."""
    most = 64
    at, sizes = (ctypes.c_uint64 * most)(), (ctypes.c_uint64 * most)()
    count = ctypes.CDLL(None).ullage_drycard_workspaces(at, sizes, most)
    given = set(zip(at[:count], sizes[:count]))
    frame = {"filename": "??", "line": 0, "name": "at::cuda::getNewWorkspace()"}
    blocks = [(block.get("address"), block) for segment in snapshot["segments"] for block in segment["blocks"]]
    for address, one in blocks + [(event.get("addr"), event) for trace in snapshot["device_traces"] for event in trace]:
        if (address, one.get("requested_size", one["size"])) in given and one.get("action", "alloc") == "alloc":
            one["frames"] = [frame, *one.get("frames", [])]
    return snapshot


def loaded_libraries():
    """Returns the paths of the shared objects that this process has loaded."""
    with open("/proc/self/maps", errors="replace") as maps:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in maps}
    return sorted(path for path in paths if path.startswith("/") and ".so" in os.path.basename(path))


def innermost_line(frames):
    """Returns the program's own line that is nearest to the event; if there is none, the nearest line of a library. A
    thread of the backward pass has no line."""
    frames = [one for one in frames if not one.filename.startswith("<")]
    own = [one for one in frames if "-packages" not in one.filename and not one.filename.startswith(STANDARD)]
    if not frames:
        return {}
    found = (own or frames)[-1]
    return {"file": found.filename, "line": found.lineno, "function": found.name}


Account().begin()
