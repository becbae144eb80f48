# SPDX-License-Identifier: Apache-2.0
"""Runs under budgets from the least that fits upward: does the process stay under each, by the system's own count?

Finds the least budget by bisection, to 1 MiB. Then runs under it and larger budgets. Compares each budget with the peak
that wait4 reports (as /usr/bin/time does), and the final state with that of the plain program. Refused runs must keep
their budget too.

usage: budget_sweep.py BIN_DIR PICTURES
"""
import pathlib
import sys
import tempfile

import process

OPTIONS = ["--image-size", "256", "--ngf", "32", "--ndf", "32", "--batch", "8", "--steps", "3"]
INFEASIBLE = 4
MIB = 1 << 20


def main() -> None:
    bin_dir, pictures = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        count = 0

        def under(budget: int | None) -> tuple[int, int, str, pathlib.Path]:
            nonlocal count
            count += 1
            out = pathlib.Path(folder, str(count))
            start = [str(bin_dir / "ullage-dcgan")] if budget is None else [
                str(bin_dir / "ullage"), "run", "--spill", "none", "--memory", str(budget), "dcgan"]
            return *process.run(start + ["--data", pictures, "--out", str(out)] + OPTIONS, {}, out.with_suffix(".log")), out

        code, peak, said, out = under(None)
        if code != 0:
            sys.exit(said)
        plain = process.run_json(out)["state_sha256"]
        print(f"\nDCGAN-256, 32 features, batch 8, 3 steps; plain peaks at {peak / MIB:.0f} MiB")
        print(f"{'budget':>14}{'VmHWM':>14}{'over':>8}  outcome")

        def row(budget: int, peak: int, outcome: str) -> None:
            print(f"{budget / MIB:10.2f} MiB{peak / MIB:10.2f} MiB{max(0, peak - budget):8}  {outcome}", flush=True)

        refused, least = 160 * MIB, peak + 100 * MIB
        failures = refusals = 0
        while least - refused > MIB:
            budget = (refused + least) // 2
            code, peak, said, out = under(budget)
            if code == 0:
                least = budget
                continue
            if code != INFEASIBLE or "would serve this request" not in said:
                sys.exit(f"exit code {code} under {budget}:\n{said}")
            refused, refusals, failures = budget, refusals + 1, failures + (peak > budget)
            row(budget, peak, "refused, exit code 4, with the bytes its request needs")
        for extra in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            budget = least + extra * MIB
            code, peak, said, out = under(budget)
            same = code == 0 and process.run_json(out)["state_sha256"] == plain
            failures += peak > budget or not same
            row(budget, peak, "done, same bits as plain" if same else f"exit code {code}, OTHER BITS OR NONE")
        print(f"{refusals} budgets refused and 11 served; passed or with other bits: {failures}")


if __name__ == "__main__":
    main()
