// SPDX-License-Identifier: Apache-2.0
#include "runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace ullage::oracle {

namespace {

// Runs the program with these settings and writes its output to the file `said`. Returns whether it exited with 0.
bool run_program(std::vector<std::string> words, const std::string& settings, const std::string& said) {
  std::vector<std::string> variables{"PYTORCH_ALLOC_CONF=" + settings, "TORCH_CPP_LOG_LEVEL=ERROR"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    // These variables could change the behaviour of torch's allocator.
    if (!text.starts_with("PYTORCH_") && !text.starts_with("TORCH_") && !text.starts_with("CUDA_")) {
      variables.push_back(text);
    }
  }
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  const auto arguments = pointers(words);
  const auto environment = pointers(variables);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  pid_t child = 0;
  const int spawned = posix_spawn(&child, arguments.front(), &files, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  return spawned == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

Result<Run> run_real(const Case& one, const std::vector<Operation>& operations, const std::string& replay,
                     const std::string& scratch) {
  const std::string case_file = scratch + "/case";
  const std::string events_file = scratch + "/events";
  if (!write_exchange(case_file, header_of(one), operations)) {
    return Error{Error::Kind::System, "cannot be written", case_file};
  }
  const std::string said = scratch + "/stderr";
  if (!run_program({replay, case_file, events_file}, one.settings.text(), said)) {
    return Error{Error::Kind::System,
                 fmt::format("failed in case {} seed {}; what it said is in {}", one.name, one.seed, said), replay};
  }
  RunHeader header;
  Run run;
  if (!read_exchange(events_file, header, &RunHeader::events, run.events)) {
    return Error{Error::Kind::BadFile, "is cut short", events_file};
  }
  if (!std::ranges::equal(header.stream_ids, kStreamIds)) {
    return Error{Error::Kind::BadFile, "torch numbers its streams in another way than model_run.cpp says", events_file};
  }
  run.totals = header.totals;
  run.seconds = header.seconds;
  return run;
}

}  // namespace ullage::oracle
