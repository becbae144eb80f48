# SPDX-License-Identifier: Apache-2.0
"""Keeps torch's memory history. Writes it into a file when a card refuses a request, even if the program catches the
error.

`ullage explain -- COMMAND` has every Python below it run this text at the end of `import torch`. In a Python that has
this package, ullage.pth arms it where ULLAGE_EXPLAIN is set. It changes nothing of the program, and writes nothing
where nothing fails. It stands alone: it may run in a Python without this package, and with any torch from 2.1 on.

environment  ULLAGE_EXPLAIN          the folder for oom-HOST-PID.pickle, a snapshot that `ullage explain` reads; without
                                     a launcher also for .log, the error that ended the program, and .txt, the answer
             ULLAGE_EXPLAIN_ENTRIES  how many events of the history are kept, the newest; 0: no history
             ULLAGE_EXPLAIN_ACCOUNT  a folder of the launcher for PID.json; the launcher then says what was written
"""
import atexit
import functools
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
import traceback

MOST_ENTRIES = 100_000
RARELY = 10  # the next snapshot is written after this many times the time that the last one took
ASK_FOR = 120  # seconds that the answer may take at a program's end
WORDS_OF_A_CARD = ("OutOfMemoryError", "out of memory", "ALLOC_FAILED")
# Only for a Python that finds no command `ullage` to ask.
WORDS_OF_MEMORY = (*WORDS_OF_A_CARD, "MemoryError", "can't allocate memory", "bad_alloc", "Unable to allocate")


class Watch:
    def __init__(self, folder, account=None, entries=MOST_ENTRIES):
        self.folder, self.account, self.entries = os.path.abspath(folder), account, entries
        self.lock = threading.RLock()
        self.process = 0  # pid of the process that the figures below are of; a child by fork begins anew
        self.torch = None

    # ---- the beginning

    def begin(self, torch):
        """Begins the watch. Call it once, when torch has been imported. A second call does nothing, whichever way this
        text was loaded."""
        if getattr(torch, "_ullage_watch", None) is not None:
            return
        torch._ullage_watch = self
        self.torch = torch
        self.hook, sys.excepthook = sys.excepthook, self.program_failed
        self.thread_hook, threading.excepthook = threading.excepthook, self.thread_failed
        atexit.register(self.finish)
        torch.cuda._lazy_call(self.card_is_there)

    def card_is_there(self):
        """Torch calls this when it has initialised its cards: at the program's first use of one."""
        try:
            self.torch._C._cuda_attach_out_of_memory_observer(self.refused)
        except Exception:
            return  # this build has no observers, or its allocator has none (cudaMallocAsync)
        if self.entries == 0:
            return
        try:
            self.torch.cuda.memory._record_memory_history(max_entries=self.entries, context="alloc", stacks="python")
        except Exception:
            pass  # the snapshot then has no history, only the segments

    # ---- failures

    def refused(self, device, request, total, free):
        """Torch calls this on the thread that asked, before it raises its error. An error raised in here would replace
        torch's."""
        try:
            with self.lock:
                self.enter_process()
                self.failures += 1
                self.last = {"device": device, "requested": request, "total": total, "free": free, "time": time.time()}
                self.pending = True
                # A program may try, fail and try again a thousand times. A snapshot that is put off is written at the
                # program's end. Its history still has the failure, if that is no older than `entries` events.
                if self.snapshot is None or time.monotonic() - self.written >= RARELY * self.took:
                    self.write_snapshot()
                self.write_account()
        except Exception as error:
            self.say(f"the snapshot was not written: {error}")

    def enter_process(self):
        if self.process == os.getpid():
            return
        self.process = os.getpid()
        self.failures, self.last, self.uncaught = 0, None, False
        self.snapshot, self.pending, self.written, self.took = None, False, 0.0, 0.0

    def file(self, end):
        """Returns the file's path. Its name has that of this machine, because several may share the folder."""
        host = socket.gethostname().split(".")[0] or "host"
        return os.path.join(self.folder, f"oom-{host}-{os.getpid()}{end}")

    def write_snapshot(self):
        began = time.monotonic()
        os.makedirs(self.folder, exist_ok=True)
        file = self.file(".pickle")
        try:
            self.torch.cuda.memory._dump_snapshot(file + ".part")
            os.replace(file + ".part", file)
        except BaseException:
            if os.path.exists(file + ".part"):
                os.unlink(file + ".part")
            raise
        self.snapshot, self.pending = file, False
        self.written = time.monotonic()
        self.took = self.written - began

    def write_account(self):
        if not self.account or not os.path.isdir(self.account):
            return
        part = os.path.join(self.account, f"{os.getpid()}.part")
        with open(part, "w") as out:
            json.dump({"snapshot": self.snapshot, "failures": self.failures, "uncaught": self.uncaught, **self.last}, out)
        os.replace(part, part[: -len("part")] + "json")

    # ---- the end

    def finish(self):
        """Runs at the program's own end. The program may have caught the error and be content, or give up with an exit
        code."""
        self.write_pending()
        if self.process == os.getpid() and self.snapshot and not self.uncaught:
            self.say(f"a card refused {self.failures} request{'s' * (self.failures > 1)}; next: ullage explain {self.snapshot}")

    def write_pending(self):
        """Writes the snapshot that refused() has put off."""
        try:
            with self.lock:
                if self.process != os.getpid() or not self.pending:
                    return
                self.write_snapshot()
                self.write_account()
        except Exception as error:
            self.say(f"the snapshot was not written: {error}")

    def program_failed(self, kind, error, trace):
        self.hook(kind, error, trace)
        self.at_the_error(kind, error, trace)

    def thread_failed(self, failed):
        self.thread_hook(failed)
        self.at_the_error(failed.exc_type, failed.exc_value, failed.exc_traceback)

    def at_the_error(self, kind, error, trace):
        self.write_pending()
        try:
            words = "".join(traceback.format_exception(kind, error, trace))
            with self.lock:
                self.enter_process()
                # The program may have caught the card's error, and die of another.
                if self.last is not None and has(words, WORDS_OF_A_CARD):
                    self.uncaught = True
                    self.write_account()
                if not self.account:
                    self.explain(words)
        except Exception as failure:
            self.say(f"the failure was not explained: {failure}")

    def explain(self, words):
        """Runs if there is no launcher. If the error is one of memory, writes it and what `ullage explain` says."""
        snapshot = self.snapshot if self.uncaught else None
        command = shutil.which("ullage", path=sysconfig.get_path("scripts")) or shutil.which("ullage")
        answer = ask(command, snapshot or "-", words) if command else None
        if not answer and (command or not has(words, WORDS_OF_MEMORY)):
            return  # no error of memory
        os.makedirs(self.folder, exist_ok=True)
        with open(self.file(".log"), "w", errors="replace") as out:
            out.write(words)
        if answer:
            with open(self.file(".txt"), "w", errors="replace") as out:
                out.write(answer)
            self.say(f"memory ran out; {self.file('.txt')} says why")
        if snapshot or not answer:
            self.say(f"next: ullage explain {snapshot or self.file('.log')}" + " --html page.html" * bool(answer))

    def say(self, what):
        if not self.account:
            print(f"ullage: {what}", file=sys.stderr, flush=True)


def has(text, words):
    return any(one in text for one in words)


def ask(command, source, words):
    """Returns what the command says of a snapshot, or of `words` if `source` is "-"; None if the command finds nothing
    about memory."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("ULLAGE_") and name != "LD_PRELOAD"}
    done = subprocess.run([command, "explain", source], input=words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True, timeout=ASK_FOR, env=clean)
    return done.stdout if done.returncode == 0 else None


def from_environment():
    """Returns the watch that the environment asks for; None if it asks for none."""
    folder = os.environ.get("ULLAGE_EXPLAIN")
    if not folder:
        return None
    try:
        entries = max(0, int(os.environ.get("ULLAGE_EXPLAIN_ENTRIES", MOST_ENTRIES)))
    except ValueError:
        entries = MOST_ENTRIES
    return Watch(folder, os.environ.get("ULLAGE_EXPLAIN_ACCOUNT"), entries)


class Finder:
    """Stands in front of sys.meta_path until torch is imported. Finds nothing itself, but wraps the loader that is
    found."""

    def __init__(self, watch):
        self.watch = watch
        self.asked = threading.local()  # so that two finders like this one do not ask each other for ever

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or getattr(self.asked, "now", False):
            return None
        self.asked.now = True
        try:
            spec = self.find_among_others(name, path, target)
        finally:
            self.asked.now = False
        load = getattr(spec and spec.loader, "exec_module", None)
        if load is not None:
            spec.loader.exec_module = functools.partial(self.load, load, spec.loader)
        return spec

    def find_among_others(self, *what):
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(*what) if find and finder is not self else None
            if spec is not None:
                return spec
        return None

    def load(self, load, loader, module):
        load(module)
        if module.__name__ != "torch":
            return
        vars(loader).pop("exec_module", None)
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            self.watch.begin(module)
        except Exception as error:
            self.watch.say(f"memory is not watched: {error}")


def arm():
    """ullage.pth calls this at the start of a Python. A Python below a launcher is watched by the launcher."""
    watch = from_environment()
    if watch is None or watch.account:
        return
    if "torch" in sys.modules:
        watch.begin(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, Finder(watch))


if __name__ == "ullage_explain":  # libullage_preload.so runs this text
    found = from_environment()
    if found is not None:
        import torch
        found.begin(torch)
