#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ullage-dcgan as a person does: outputs, resume, kill, Ctrl-C, a full disk, bad pictures, exit codes.

usage: test_program.py ULLAGE_DCGAN [NAME of a test]"""

import hashlib
import json
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cases import run_cases  # noqa: E402

PROGRAM = sys.argv[1]
SMALL = ["--image-size", "32", "--ngf", "8", "--ndf", "8", "--nz", "10", "--batch", "4", "--threads", "1"]
PICTURES = 10


def png(path, seed, side=40):
    rows = b"".join(
        b"\0" + bytes((x * seed + y * (channel + 3) + 17 * seed) % 256 for x in range(side) for channel in range(3))
        for y in range(side)
    )
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    head = side.to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Place:
    """A folder for one test, with ten pictures in data/a and data/b."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.data = self.root / "data"
        for k in range(PICTURES):
            folder = self.data / "ab"[k % 2]
            folder.mkdir(parents=True, exist_ok=True)
            png(folder / f"{k}.png", k + 1)

    def command(self, out, *options):
        base = ["--data", str(self.data), "--out", str(self.root / out), *SMALL]
        kept = [w for i in range(0, len(base), 2) if base[i] not in options for w in base[i : i + 2]]
        return [PROGRAM, *kept, *options]

    def run(self, out, *options, expect=0, **how):
        done = subprocess.run(self.command(out, *options), capture_output=True, text=True, timeout=300, **how)
        assert done.returncode == expect, f"exit {done.returncode}, expected {expect}: {done.stderr}"
        assert done.stdout == "", done.stdout
        return done.stderr

    def losses(self, out):
        return (self.root / out / "losses.jsonl").read_text()

    def report(self, out):
        return json.loads((self.root / out / "run.json").read_text())

    def checkpoint(self, out):
        found = list((self.root / out / "checkpoint").iterdir())
        assert len(found) == 1 and found[0].suffix == ".safetensors", found
        return found[0]

    def same(self, one, other):
        assert self.losses(one) == self.losses(other)
        assert self.report(one)["state_sha256"] == self.report(other)["state_sha256"]
        final = f"samples-{self.report(one)['steps']:06d}.png"
        assert (self.root / one / final).read_bytes() == (self.root / other / final).read_bytes()


def wait_for_steps(process, log, steps):
    while not (log.exists() and log.read_text().count("\n") >= steps):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_outputs(place):
    said = place.run("a", "--epochs", "2", "--sample-every", "4")
    report = place.report("a")
    assert report["steps"] == 6 and (report["epoch"], report["index"]) == (2, 0), report  # 4 + 4 + 2 pictures, twice
    assert len(report["step_seconds"]) == 6 and report["outcome"] == "done"
    lines = [json.loads(line) for line in place.losses("a").splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert list(lines[0]) == ["step", "loss_d", "loss_g", "d_x", "d_g_z1", "d_g_z2"]
    assert sorted(p.name for p in (place.root / "a").glob("*.png")) == ["samples-000004.png", "samples-000006.png"]
    assert place.checkpoint("a").name == "step-000006.safetensors"
    assert "samples-000006.png" in said and "losses.jsonl" in said, said
    assert "\r" not in said and "\x1b" not in said, "no terminal"


def test_seed(place):
    place.run("a", "--steps", "3")
    place.run("b", "--steps", "3")
    place.run("c", "--steps", "3", "--seed", "2")
    place.same("a", "b")
    assert place.losses("a") != place.losses("c")


def test_sampling_and_checkpoints_change_nothing(place):
    place.run("a", "--steps", "5", "--sample-every", "1", "--checkpoint-every", "1")
    place.run("b", "--steps", "5")
    place.same("a", "b")


def test_resume_equals_no_interruption(place):
    place.run("whole", "--steps", "7")
    for first in (1, 2, 3, 4, 6):  # within an epoch, at its short last batch, at the start of the next
        out = f"parts{first}"
        place.run(out, "--steps", str(first))
        place.run(out, "--steps", "7", "--resume")
        place.same(out, "whole")
        assert place.report(out)["steps_before_resume"] == first
    said = place.run("whole", "--steps", "7", "--resume")
    assert "nothing left to do" in said
    place.same("whole", "parts1")


def test_resume_drops_what_came_after_the_checkpoint(place):
    place.run("whole", "--steps", "6")
    place.run("a", "--steps", "3")
    with open(place.root / "a" / "losses.jsonl", "a") as log:
        log.write('{"step": 4, "loss_d": 1}\n{"step": 5, "lo')
    place.run("a", "--steps", "6", "--resume")
    place.same("a", "whole")


def test_kill_during_a_checkpoint(place):
    wide = ["--ngf", "32", "--ndf", "32", "--checkpoint-every", "1"]
    place.run("whole", "--steps", "12", *wide)
    caught = 0
    resumed = []
    for _ in range(60):
        folder = place.root / "a" / "checkpoint"
        process = subprocess.Popen(place.command("a", "--steps", "12", *wide, *resumed), stderr=subprocess.DEVNULL)
        seen = set()  # each attempt lets the first checkpoint that it sees finish, so it gets one step further
        while process.poll() is None:
            partial = set(folder.glob("*.partial")) if folder.is_dir() else set()
            seen |= partial
            if partial and len(seen) > 1:
                process.kill()
                break
        if process.wait() == 0:
            break
        caught += any(folder.glob("*.partial"))
        assert any(folder.glob("*.safetensors")), "the last whole checkpoint is gone"
        resumed = ["--resume"]
    assert process.returncode == 0, "never came to the end"
    assert caught >= 3, f"killed only {caught} times with a checkpoint half written"
    place.same("a", "whole")
    place.checkpoint("a")  # fails unless it is the only file: nothing half-written is left


def test_control_c(place):
    place.run("whole", "--steps", "8")
    process = subprocess.Popen(place.command("a", "--steps", "100000000"), stderr=subprocess.PIPE, text=True)
    wait_for_steps(process, place.root / "a" / "losses.jsonl", 3)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, process.returncode
    assert "finishing this step" in said and "stopped after step" in said and "--resume" in said, said
    report = place.report("a")
    assert report["outcome"] == "interrupted"
    steps = report["steps"]
    assert place.checkpoint("a").name == f"step-{steps:06d}.safetensors" and (place.root / "a" / f"samples-{steps:06d}.png").exists()
    place.run("b", "--steps", str(steps))
    place.same("a", "b")
    place.run("a", "--steps", str(steps + 3), "--resume")
    place.run("c", "--steps", str(steps + 3))
    place.same("a", "c")


def test_control_c_twice(place):
    # The steps take seconds, so the second signal arrives during the step of the first one.
    slow = ["--image-size", "128", "--ngf", "32", "--ndf", "32", "--batch", "10", "--steps", "100"]
    process = subprocess.Popen(place.command("a", *slow), stderr=subprocess.PIPE, text=True)
    wait_for_steps(process, place.root / "a" / "losses.jsonl", 1)
    process.send_signal(signal.SIGTERM)
    while "finishing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert not (place.root / "a" / "run.json").exists(), "it still went on to the end"


def test_full_disk(place):
    place.run("a", "--steps", "2")
    kept = place.checkpoint("a").read_bytes()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (len(kept) // 2, len(kept) // 2))
    said = place.run("a", "--steps", "4", "--resume", expect=1, preexec_fn=limit)
    assert "cannot write" in said and "File too large" in said and "the last checkpoint is" in said, said
    assert place.checkpoint("a").read_bytes() == kept
    place.run("a", "--steps", "4", "--resume")
    place.run("whole", "--steps", "4")
    place.same("a", "whole")


def test_damaged_checkpoint(place):
    place.run("a", "--steps", "2")
    path = place.checkpoint("a")
    whole = path.read_bytes()
    for at in (3, 40, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :])
        said = place.run("a", "--steps", "4", "--resume", expect=3)
        assert path.name in said, said
    path.write_bytes(whole[:-100])
    said = place.run("a", "--steps", "4", "--resume", expect=3)
    assert "damaged" in said and "no older checkpoint" in said, said
    older = path.with_name("step-000001.safetensors")
    older.write_bytes(whole)
    said = place.run("a", "--steps", "4", "--resume", expect=3)
    assert f"{older.name} is whole" in said, said


def test_other_options_and_pictures(place):
    place.run("a", "--steps", "2")
    said = place.run("a", "--steps", "4", "--resume", "--ngf", "16", expect=3)
    assert "--ngf is 8 in the checkpoint, 16 here" in said, said
    assert "netG/main.0.weight is F32 [10, 32, 4, 4] in the checkpoint, F32 [10, 64, 4, 4] here" in said, said
    said = place.run("a", "--steps", "4", "--resume", "--lr", "1e-3", expect=3)
    assert "--lr is 0.0002 in the checkpoint, 0.001 here" in said, said
    said = place.run("a", "--steps", "4", "--resume", "--blocks", "separable", expect=3)
    assert "--blocks is standard in the checkpoint, separable here" in said, said
    png(place.data / "a" / "new.png", 99)
    said = place.run("a", "--steps", "4", "--resume", expect=3)
    assert "made with 10 pictures" in said and "has 11" in said, said
    (place.data / "a" / "0.png").unlink()
    said = place.run("a", "--steps", "4", "--resume", expect=3)
    assert "pictures of other names" in said, said


def test_separable_blocks(place):
    """Fewer weights keep the same promises. The checkpoint says which blocks it has. A run continues from a checkpoint
    of the time before blocks could be chosen."""
    place.run("a", "--steps", "4", "--blocks", "separable")
    place.run("b", "--steps", "2", "--blocks", "separable")
    place.run("b", "--steps", "4", "--blocks", "separable", "--resume")
    place.same("a", "b")
    place.run("plain", "--steps", "2")
    assert place.report("a")["options"]["blocks"] == "separable" and place.report("plain")["options"]["blocks"] == "standard"
    fewer, more = (place.report(out)["parameters"] for out in ("a", "plain"))
    assert all(fewer[net] < more[net] for net in more), f"{fewer} {more}"
    path = place.checkpoint("a")
    assert b'\\"--blocks\\":\\"separable\\"' in path.read_bytes(), "the checkpoint does not say which blocks"
    said = place.run("a", "--steps", "6", "--resume", expect=3)
    assert "--blocks is separable in the checkpoint, standard here" in said, said
    old = place.checkpoint("plain")
    whole = old.read_bytes()
    named = b'\\"--blocks\\":\\"standard\\",'
    assert named in whole
    size = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + size].replace(named, b"")
    blank = re.sub(b'"sha256":"[0-9a-f]{64}"', b'"sha256":"%s"' % (b"0" * 64), whole[:8] + header.ljust(size)) + whole[8 + size :]
    old.write_bytes(blank.replace(b"0" * 64, hashlib.sha256(blank).hexdigest().encode(), 1))
    place.run("plain", "--steps", "4", "--resume")
    place.run("whole", "--steps", "4")
    place.same("plain", "whole")


def test_folders(place):
    place.run("a", "--steps", "1")
    assert "add --resume or choose another --out" in place.run("a", "--steps", "1", expect=2)
    assert "no checkpoint" in place.run("none", "--steps", "1", "--resume", expect=3)
    (place.root / "file").write_text("")
    assert "cannot write there" in place.run("file/out", "--steps", "1", expect=2)
    empty = place.root / "empty"
    empty.mkdir()
    for data in (empty, place.root / "nowhere", place.root / "file"):
        assert str(data) in place.run("b", "--data", str(data), expect=3)
    assert not (place.root / "b").exists(), "no folder is made for a run that cannot start"


def test_bad_pictures(place):
    bad = [place.data / "a" / "00.png", place.data / "b" / "zz.png"]
    bad[0].write_text("no picture")
    bad[1].write_bytes((place.data / "a" / "0.png").read_bytes()[:300])
    said = place.run("a", "--epochs", "1", expect=3)
    assert any(str(path) in said for path in bad), said
    said = place.run("b", "--epochs", "3", "--skip-bad")
    for path in bad:
        assert said.count(str(path)) == 1, said
    report = place.report("b")
    assert report["steps"] == 9 and report["pictures"] == 12  # good pictures replace bad ones: 4 + 4 + 2, three times
    assert sorted(item["path"] for item in report["skipped"]) == sorted(map(str, bad))
    for steps in (1, 2, 3):
        place.run(f"c{steps}", "--steps", str(steps), "--skip-bad")
        place.run(f"c{steps}", "--steps", "9", "--skip-bad", "--resume")
        place.same(f"c{steps}", "b")
    for path in place.data.rglob("*.png"):
        path.write_text("no picture")
    said = place.run("d", "--steps", "1", "--skip-bad", expect=3)
    assert "none of the 12 pictures can be read" in said, said


def test_batch_of_one(place):
    place.run("a", "--steps", "2", "--batch", "1", "--image-size", "16")


if __name__ == "__main__":
    run_cases(globals(), place=Place, only="".join(sys.argv[2:3]))
