# SPDX-License-Identifier: Apache-2.0
"""Runs a shipped program without and with a budget and compares what it writes."""
import dataclasses
import json
import os
import pathlib
import subprocess

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class End:
    code: int
    said: str
    peak: int  # resident bytes, as the operating system counts them
    files: dict[str, bytes] = dataclasses.field(repr=False)  # those that it wrote into its folder, by path
    report: dict | None


class Runs:
    """`name`: the program's name after `ullage run`. `written`: a pattern for the files that no budget may change."""

    def __init__(self, name: str, written: str, bin_dir: str, folder: str):
        self.name, self.written, self.count = name, written, 0
        self.bin, self.folder = pathlib.Path(bin_dir).resolve(), pathlib.Path(folder)

    def arguments(self, out: pathlib.Path, options: tuple[str, ...], weights: list[str] | None) -> list:
        """Returns the program's arguments; it writes into `out`. If `weights` is None, it uses its usual ones."""
        raise NotImplementedError

    def run(self, budget: int | None, *options: str, weights: list[str] | None = None) -> End:
        self.count += 1
        out, report = self.folder / f"out-{self.count}", self.folder / f"report-{self.count}.json"
        head = [self.bin / f"ullage-{self.name}"] if budget is None else [
            self.bin / "ullage", "run", "--memory", str(budget), "--report", report, self.name]
        process = subprocess.Popen([*head, *self.arguments(out, options, weights)], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        said = process.stderr.read()
        assert process.stdout.read() == "", "stdout is not ours"
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob(self.written)}
        return End(process.returncode, said, usage.ru_maxrss * 1024, files, json.loads(report.read_text()) if budget else None)

    def kept(self, budget: int, plain: End, *options: str, weights: list[str] | None = None) -> End:
        """Runs within `budget` and asserts that the peak stays below it and that files and final state are those of
        `plain`."""
        end = self.run(budget, *options, weights=weights)
        told = end.report
        assert end.code == plain.code == 0, (end.code, end.said)
        assert end.peak <= budget and told["process_peak_bytes"] <= budget and told["over_budget_bytes"] == 0, (end.peak, told)
        assert plain.files and end.files == plain.files, "the budget changed what was written"
        if plain.report:
            assert told["state_sha256"] == plain.report["state_sha256"], "the budget changed the bits"
        return end

    def roomy(self, *options: str, weights: list[str] | None = None) -> End:
        """Runs the program without a budget and then with 12 GiB, and asserts that both write the same files."""
        plain = self.run(None, *options, weights=weights)
        return self.kept(12 << 30, plain, *options, weights=weights)


def budget_of(roomy: End, percent: int) -> int:
    told = roomy.report
    return told["outside_pool_bytes"] + 9 * MIB + told["pool_peak_bytes"] * percent // 100  # 8 MiB: the margin
