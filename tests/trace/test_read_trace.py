# SPDX-License-Identifier: Apache-2.0
"""Reads traces with tools/read_trace.py and with the library: both must print the same, and refuse the same damage.

usage: test_read_trace.py FIGURES READ_TRACE FOLDER_OF_TRACES...
"""
import pathlib
import subprocess
import sys
import tempfile


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


def check(figures, reader, path):
    theirs, ours = run(figures, path), run(sys.executable, reader, path)
    assert theirs.returncode == 0, theirs.stderr
    assert ours.returncode == 0, ours.stderr
    assert theirs.stdout == ours.stdout, f"{path}\n{theirs.stdout}\n{ours.stdout}"
    assert "take 1 " in ours.stdout, ours.stdout


def check_damage(figures, reader, path, folder):
    content = path.read_bytes()
    for name, damaged in {"cut off": content[:len(content) // 2], "flipped": content[:90] + b"\xff" + content[91:],
                          "another version": content.replace(b" 1\n", b" 2\n", 1)}.items():
        copy = folder / "damaged.ullage"
        copy.write_bytes(damaged)
        assert run(figures, copy).returncode == 3, name
        ours = run(sys.executable, reader, copy)
        assert ours.returncode == 1 and str(copy) in ours.stderr, (name, ours.stderr)
        assert "Traceback" not in ours.stderr, ours.stderr


def main():
    figures, reader, *folders = sys.argv[1:]
    traces = [path for folder in folders for path in sorted(pathlib.Path(folder).glob("*.ullage"))]
    assert traces, "no traces to read"
    with tempfile.TemporaryDirectory() as made:
        long_one = pathlib.Path(made) / "long.ullage"
        assert run(figures, "--make", long_one).returncode == 0
        for path in [*traces, long_one]:
            check(figures, reader, path)
        assert " 0 lost" not in run(figures, long_one).stdout
        check_damage(figures, reader, traces[0], pathlib.Path(made))
    print(f"{len(traces) + 1} traces read the same by both")


if __name__ == "__main__":
    main()
