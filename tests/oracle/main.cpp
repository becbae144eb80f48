// SPDX-License-Identifier: Apache-2.0
// allocator_oracle: compares our model with torch's own allocator, case by case. test_oracle.py calls it.

#include "comparison.h"
#include "recording.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

namespace ullage::oracle {
namespace {

struct Options {
  std::string torch;    // version
  std::string replay;   // program
  std::string scratch;  // folder
  std::string addresses = "growing";
  std::uint64_t operations = 5000;
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1;
  bool random = false;
  std::string only;  // one named case
  std::string file;  // a recording
};

std::vector<Case> chosen(const Options& options) {
  std::vector<Case> cases;
  for (std::uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    for (Case& one : options.random ? std::vector{random_case(seed)} : named_cases()) {
      if (!options.only.empty() && one.name != options.only) continue;
      one.seed = seed;
      one.operations = options.operations;
      one.first_fit = options.addresses == "first_fit";
      cases.push_back(one);
    }
  }
  return cases;
}

int failed(const Error& error) {
  fmt::print(stderr, "allocator_oracle: {}\n", error.text());
  return 2;
}

int compare(const Options& options) {
  std::uint64_t differ = 0, operations_all = 0, events = 0, retries = 0, shortages = 0;
  double real_seconds = 0, model_seconds = 0;
  const auto cases = chosen(options);
  for (const Case& one : cases) {
    const auto operations = operations_of(one);
    const auto real = run_real(one, operations, options.replay, options.scratch);
    if (!real) return failed(real.error());
    const Run model = run_model(one, operations, behaviour_of(options.torch));
    if (const auto told = difference(one, operations, *real, model)) {
      ++differ;
      fmt::print("{}", *told);
    }
    operations_all += operations.size();
    events += real->events.size();
    retries += real->totals.retries;
    shortages += real->totals.out_of_memory;
    real_seconds += real->seconds;
    model_seconds += model.seconds;
  }
  fmt::print(
      "torch {} | {} | {} | cases {} | operations {} | events {} | retries {} | shortages {} | differ {} | "
      "real {:.2f} s, model {:.2f} s\n",
      options.torch, options.random ? "random settings" : "named settings", options.addresses, cases.size(),
      operations_all, events, retries, shortages, differ, real_seconds, model_seconds);
  return differ == 0 && !cases.empty() ? 0 : 1;
}

int record_all(const Options& options) {
  Recording recording{options.torch, {}};
  for (const Case& one : cases_to_record()) {
    const auto operations = operations_of(one);
    const auto real = run_real(one, operations, options.replay, options.scratch);
    if (!real) return failed(real.error());
    recording.cases.push_back(record(one, operations, *real));
  }
  const auto written = write_recording(options.file, recording);
  return written ? 0 : failed(written.error());
}

// Counts the cases of a recording that the model gets wrong. test_mutants.py builds this program with wrong models.
int check(const Options& options) {
  const auto recording = read_recording(options.file);
  if (!recording) return failed(recording.error());
  std::uint64_t differ = 0;
  std::string first;
  for (const RecordedCase& one : recording->cases) {
    std::optional<std::string> told;
    try {
      told = difference(one, behaviour_of(recording->torch));
    } catch (const ContractError& error) {
      told = error.what();
    }
    if (told && ++differ == 1) first = *told;
  }
  fmt::print("{} of {} cases differ\n{}\n", differ, recording->cases.size(), first);
  return differ == 0 ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app{"holds the model of the caching allocator against torch's own"};
  app.require_subcommand(1);
  Options options;
  auto* compared = app.add_subcommand("compare", "every event of every case; prints the first difference of each");
  auto* recorded = app.add_subcommand("record", "writes what the real allocator did");
  auto* checked = app.add_subcommand("check", "the model against a recording");
  for (auto* verb : {compared, recorded}) {
    verb->add_option("--torch", options.torch, "version")->required();
    verb->add_option("--replay", options.replay, "replay_real of that version")->required();
    verb->add_option("--scratch", options.scratch, "folder for files between the two")->required();
  }
  for (auto* verb : {recorded, checked}) verb->add_option("file", options.file)->required();
  compared->add_flag("--random", options.random, "settings drawn by seed instead of the named ones");
  compared->add_option("--only", options.only, "one of the named cases");
  compared->add_option("--addresses", options.addresses)->check(CLI::IsMember({"growing", "first_fit"}));
  compared->add_option("--operations", options.operations, "of each case");
  compared->add_option("--first-seed", options.first_seed);
  compared->add_option("--seeds", options.seeds);
  CLI11_PARSE(app, argc, argv);
  if (compared->parsed()) return compare(options);
  return recorded->parsed() ? record_all(options) : check(options);
}

}  // namespace
}  // namespace ullage::oracle

int main(int argc, char** argv) { return ullage::oracle::run(argc, argv); }
