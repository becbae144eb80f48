// SPDX-License-Identifier: Apache-2.0
// Runs a dry run on a machine whose memory is made up.
//
// usage: small_machine ROOTS predict|run|budget REPORT -- COMMAND...
//   ROOTS   a folder with proc and cgroup, which stand for /proc and /sys/fs/cgroup
//   budget  as run, under 4 GiB of the card
#include "ullage/cli/predict_command.h"
#include "ullage/cli/run_command.h"

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

int main(int count, char** words) {
  using namespace ullage;
  if (count < 6) return 2;
  const std::filesystem::path at = words[1];
  const std::string verb = words[2], report = words[3], device = "cuda:8GiB";
  const cli::MachineRoots roots{at / "cgroup", at / "proc"};
  const std::vector<std::string> target(words + 4, words + count);
  if (verb == "predict") {
    cli::PredictOptions options;
    options.device = device, options.json = true, options.target = target, options.roots = roots;
    std::ofstream out(report);
    return cli::run_predict(options, {out, std::cerr});
  }
  cli::RunOptions options;
  options.dry = true, options.device = device, options.target = target, options.roots = roots;
  options.report = report, options.quiet = true;
  if (verb == "budget") options.memory = "4GiB";
  return cli::run_run(options, {std::cout, std::cerr});
}
