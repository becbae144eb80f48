# SPDX-License-Identifier: Apache-2.0
"""Tests how Python's `import torch` is noticed, with a package torch made for these tests and the preload's fake torch
and runtime.

usage: test_python_import.py FAKES, the folder with same/, other/ and lib/ of tests/preload
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

TORCH = """
import ctypes, os
ctypes.CDLL(os.environ['FAKE_TORCH'])
from torch import part
print('torch')
"""
EVERYWHERE = "import sys; sys.path.insert(0, {site!r})\n"  # for -I and -E, which ignore PYTHONPATH
UNDER = "torch\nruntime after torch\nscript\n"
PLAIN = "torch\nscript\n"


class Runs:
    def __init__(self, fakes: str, folder: str):
        self.fakes, self.folder = pathlib.Path(fakes).resolve(), pathlib.Path(folder)
        self.site = self.folder / "site"
        self.write("site/torch/__init__.py", TORCH)
        self.write("site/torch/part.py", "")

    def write(self, name: str, text: str) -> str:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return str(file)

    def plain(self, *words: str, torch: str = "same", text: str = "", **variables: str):
        environment = {**os.environ, "FAKE_TORCH": str(self.fakes / torch / "libtorch_cpu.so"),
                       "PYTHONPATH": str(self.site), **variables}
        return subprocess.run([sys.executable, *words], env=environment, input=text, capture_output=True, text=True,
                              cwd=self.folder, timeout=120)

    def under(self, *words: str, **options: str):
        """Runs a command as `ullage run` does: with the library and a ledger in the environment."""
        return self.plain(*words, LD_PRELOAD=str(self.fakes / "lib/libullage_preload.so"), ULLAGE_LEDGER="100:1",
                          **options)


def same(a, b) -> None:
    for what in ("returncode", "stdout", "stderr"):
        assert getattr(a, what) == getattr(b, what), (what, a, b)


def test_however_python_is_started(runs: Runs) -> None:
    code = EVERYWHERE.format(site=str(runs.site)) + "import torch; print('script')"
    script = runs.write("site/script.py", code)
    for words in (["-c", code], [script], ["-m", "script"], ["-I", script], ["-S", script], ["-E", script],
                  ["-IS", "-c", code], ["-OO", "-X", "utf8", script]):
        done = runs.under(*words)
        assert (done.stdout, done.stderr, done.returncode) == (UNDER, "", 0), (words, done)
    done = runs.under("-", text=code)
    assert (done.stdout, done.stderr) == (UNDER, ""), done


def test_whichever_way_torch_is_imported(runs: Runs) -> None:
    for way in ("import torch", "from torch import part", "import torch.part", "__import__('torch')",
                "import importlib; importlib.import_module('torch.part')",
                "import importlib.util as u; u.find_spec('torch'); u.find_spec('torch'); import torch",
                "import threading; t = threading.Thread(target=lambda: __import__('torch')); t.start(); t.join()"):
        assert runs.under("-c", way + "; print('script')").stdout == UNDER, way


def test_torch_that_is_loaded_lazily(runs: Runs) -> None:
    done = runs.under("-c", "import sys, importlib.util as u; s = u.find_spec('torch'); s.loader = u.LazyLoader(s.loader);"
                      "m = u.module_from_spec(s); sys.modules['torch'] = m; s.loader.exec_module(m); print('lazy');"
                      "m.part; print('script')")
    assert done.stdout == "lazy\n" + UNDER, done


def test_a_loader_of_all_modules(runs: Runs) -> None:
    done = runs.under("-c", """
import ctypes, importlib.machinery as m, sys
class One(m.PathFinder):
    def find_spec(self, name, path=None, target=None):
        found = m.PathFinder.find_spec(name, path)
        return m.ModuleSpec(name, self, origin=found.origin, is_package=name == 'torch') if 'torch' in name else found
    def create_module(self, spec): return None
    def exec_module(self, module):
        if module.__name__ == 'torch': module.__path__.append(module.__spec__.origin.rsplit('/', 1)[0])
        exec(open(module.__spec__.origin).read(), vars(module))
        print(module.__name__, 'was loaded')
sys.meta_path[-1] = One()
import torch""")
    assert done.stdout == "torch.part was loaded\ntorch\ntorch was loaded\nruntime after torch\n", done


def test_the_script_of_explain(runs: Runs) -> None:
    watch = runs.write("watch.py", "import torch, ctypes; print('watch', __name__, hasattr(torch, 'part'), flush=True)")
    script = runs.write("site/script.py", EVERYWHERE.format(site=str(runs.site)) + "import torch; print('script')")
    library = str(runs.fakes / "lib/libullage_preload.so")
    watched = "torch\nwatch ullage_explain True\nscript\n"
    for words in ([script], ["-I", script], ["-S", script]):
        done = runs.plain(*words, LD_PRELOAD=library, ULLAGE_EXPLAIN_SCRIPT=watch, ULLAGE_LEDGER="")
        assert (done.stdout, done.stderr) == (watched, ""), (words, done)
    done = runs.under(script, ULLAGE_EXPLAIN_SCRIPT=watch)
    assert done.stdout == watched.replace("torch\n", "torch\nruntime after torch\n", 1), done
    done = runs.plain(script, LD_PRELOAD=library, ULLAGE_EXPLAIN_SCRIPT=watch + ".gone", ULLAGE_LEDGER="")
    assert (done.stdout, done.stderr) == (PLAIN, ""), done


def test_nothing_is_left_behind(runs: Runs) -> None:
    code = ("import sys; before = list(sys.modules); import torch; "
            "print([str(f).split(' at ')[0] for f in sys.meta_path], vars(torch.__spec__.loader), torch.__loader__ is torch.__spec__.loader,"
            "torch.__spec__._initializing, sorted(set(sys.modules) - set(before)))")
    plain, under = runs.plain("-c", code), runs.under("-c", code)
    assert under.stdout == plain.stdout.replace("torch\n", "torch\nruntime after torch\n", 1), (plain, under)


def test_a_sitecustomize_of_the_person(runs: Runs) -> None:
    for name, text in (("kind", "print('site'); import sys; sys.path.append('kept')"), ("early", "import torch"),
                       ("failing", "raise RuntimeError('no')")):
        runs.write(f"{name}/sitecustomize.py", text)
        path = f"{runs.folder / name}:{runs.site}"
        code = "import sys, os; print(sys.path, os.environ['PYTHONPATH']); import torch; print('script')"
        plain, under = runs.plain("-c", code, PYTHONPATH=path), runs.under("-c", code, PYTHONPATH=path)
        assert under.stdout == plain.stdout.replace("torch\n", "torch\nruntime after torch\n", 1), (plain, under)
        assert under.stderr == plain.stderr, (plain, under)


def test_python_without_torch(runs: Runs) -> None:
    quiet = "import json, sys, traceback; print(sorted(sys.modules)); print('e', file=sys.stderr); sys.exit(7)"
    for code in (quiet, "import torch", "1 / 0", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"):
        same(runs.under("-S", "-c", code, PYTHONPATH=""), runs.plain("-S", "-c", code, PYTHONPATH=""))


def test_torch_that_cannot_be_imported(runs: Runs) -> None:
    runs.write("broken/torch/__init__.py", "def f():\n  raise OSError('no')\nf()")
    for code in ("import torch", "import importlib; importlib.import_module('torch')", "import torch.part"):
        same(runs.under("-c", code, PYTHONPATH=str(runs.folder / "broken")),
             runs.plain("-c", code, PYTHONPATH=str(runs.folder / "broken")))


def test_torch_that_comes_at_a_second_try(runs: Runs) -> None:
    broken = runs.folder / "broken"
    runs.write("broken/torch/__init__.py", "raise ImportError")
    code = f"""
import sys
for path in ({str(broken)!r}, {str(runs.site)!r}):
    sys.path.insert(0, path)
    try: import torch
    except ImportError: print('not yet')
print('script')"""
    assert runs.under("-c", code, PYTHONPATH="").stdout == "not yet\n" + UNDER


def test_a_torch_of_another_version(runs: Runs) -> None:
    done = runs.under("-c", "import torch; print('script')", torch="other")
    assert (done.stdout, done.returncode) == (PLAIN, 0), done
    assert done.stderr == ("ullage: this program runs torch 9.8.6, Ullage's runtime was built against 9.8.7; "
                           "build Ullage against torch 9.8.6; this program runs without a budget\n"), done


def test_a_runtime_that_is_asked_for(runs: Runs) -> None:
    """Opens the runtime as ullage.run() does, in a process that `ullage run` did not start."""
    code = f"""
import ctypes
preload = ctypes.CDLL({str(runs.fakes / "lib/libullage_preload.so")!r})
preload.ullage_open_runtime.restype = ctypes.c_char_p
print(preload.ullage_open_runtime(), flush=True)
import torch
print(preload.ullage_open_runtime(), preload.ullage_open_runtime())"""
    assert runs.plain("-c", code).stdout == "b'torch is not loaded yet; import it first'\ntorch\nruntime after torch\nNone None\n"
    said = runs.plain("-c", code, torch="other").stdout.splitlines()[-1]
    assert said.startswith('b"this program runs torch 9.8.6, Ullage\'s runtime was built against 9.8.7; build'), said


def test_a_torch_that_nobody_imports(runs: Runs) -> None:
    code = "import ctypes, os; ctypes.CDLL(os.environ['FAKE_TORCH']); print('script'){}"
    done = runs.under("-c", code.format(""))
    said = "ullage: libtorch_cpu.so was loaded in a way that Ullage does not see; this program ran without a budget\n"
    assert (done.stdout, done.stderr, done.returncode) == ("script\n", said, 0), done
    assert runs.under("-c", code.format("; import torch")).stderr == ""


def test_the_processes_of_a_program(runs: Runs) -> None:
    script = runs.write("tree.py", """
import multiprocessing, os, subprocess, sys
def work(name):
    import torch
    print(name, flush=True)
if __name__ == '__main__':
    for close in (True, False):
        subprocess.run([sys.executable, '-c', 'import torch'], close_fds=close, check=True)
    for method in ('fork', 'spawn', 'forkserver'):
        one = multiprocessing.get_context(method).Process(target=work, args=(method,))
        one.start(); one.join()
    os.execv('/bin/sh', ['sh', '-c', sys.executable + ' -c "import torch"'])
""")
    done = runs.under(script)
    once = "torch\nruntime after torch\n"
    assert done.stdout == once * 2 + "".join(f"{once}{name}\n" for name in ("fork", "spawn", "forkserver")) + once, done
    assert done.stderr == "", done


def test_what_was_printed_is_kept(runs: Runs) -> None:
    done = runs.under("-c", "print('before'); import torch; print('script')", FAKE_RUNTIME_ENDS="4")
    assert (done.stdout, done.returncode) == ("before\ntorch\nruntime after torch\n", 4), done


def test_hooks_of_the_person(runs: Runs) -> None:
    code = ("import sys; seen = []; sys.addaudithook(lambda event, args: seen.append(event)); sys.audit('import');"
            "sys.audit('import', 3, 4); sys.audit('mine', 5); import torch; print('mine' in seen, 'import' in seen)")
    assert runs.under("-c", code).stdout == "torch\nruntime after torch\nTrue True\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_cases(globals(), Runs(sys.argv[1], folder))


if __name__ == "__main__":
    main()
