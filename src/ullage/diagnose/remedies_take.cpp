// SPDX-License-Identifier: Apache-2.0

// The remedies that are Ullage's own commands, for what it recorded itself. The table at the end says for which causes
// each is asked, and in which order. docs/explain.md lists every id.
#include "ullage/base/sizes.h"
#include "ullage/diagnose/remedies.h"
#include "ullage/diagnose/take_words.h"

#include <fmt/format.h>

#include <algorithm>

namespace ullage::diagnose {
namespace {

const TakeFacts* told(const Asked& asked) {
  return asked.evidence.history && asked.evidence.history->told ? &*asked.evidence.history->told : nullptr;
}

// Tensors not in use can go to disk. The bytes that the neediest op needs at once cannot be saved.
std::optional<Remedy> run_below_peak(const Asked& asked) {
  const TakeFacts* facts = told(asked);
  const History* history = asked.evidence.history;
  if (!facts || !facts->need || history->failed() || !history->device_is_cpu) return std::nullopt;
  const std::string command = run_command(*history);
  const Bytes saves = saturating_sub(history->peak.live, facts->need->bytes);
  if (command.empty() || saves < 1_MiB) return std::nullopt;
  return Remedy{"", command, saves, Basis::Computed,
                fmt::format("at most, with the same result: tensors that no op uses wait on disk; {} needs {} at once; "
                            "a larger budget runs faster",
                            facts->need->op, to_string(facts->need->bytes))};
}

std::optional<Remedy> larger_budget(const Asked& asked) {
  const TakeFacts* facts = told(asked);
  if (!facts || !facts->need) return std::nullopt;
  const std::string command = run_command(*asked.evidence.history);
  if (command.empty()) return std::nullopt;
  return Remedy{
      "", command, std::nullopt, Basis::Known,
      fmt::format("the least that would have served this request; {} may go on to ask for more", facts->need->op)};
}

// Returns "dcgan --batch 64" if the command runs a program that comes with Ullage (ullage-dcgan); else empty.
std::string shipped(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  const std::string name =
      command[0].substr(command[0].rfind('/') == std::string::npos ? 0 : command[0].rfind('/') + 1);
  if (!name.starts_with("ullage-")) return "";
  std::vector<std::string> words = command;
  words[0] = name.substr(7);
  return command_in_words(words);
}

std::optional<Remedy> predict(const Asked& asked) {
  if (!told(asked)) return std::nullopt;
  const std::vector<std::string>& command = asked.evidence.history->file->file.command;
  const bool has_marks = std::any_of(command.begin(), command.end(),
                                     [](const std::string& word) { return word.find('{') != std::string::npos; });
  if (has_marks) return std::nullopt;  // `ullage predict` recorded such a file itself
  std::string action = shipped(command);
  action = action.empty() ? fmt::format(
                                "ullage predict --memory SIZE --vary batch=2,3,4 --at batch=32 -- {}, with "
                                "{{batch}} where its batch size stands",
                                command.empty() ? "COMMAND" : command_in_words(command))
                          : "ullage predict --memory SIZE " + action;
  return Remedy{"", action, std::nullopt, Basis::Known,
                "predicts the peak of other sizes, and the largest that fits SIZE"};
}

constexpr std::array kTakeRemedies = {
    RemedyRule{"run_in_budget",
               {"activations", "model_weights", "optimizer_state", "gradients", "temporaries"},
               &run_below_peak},
    RemedyRule{"least_budget", {"budget_too_small"}, &larger_budget},
    RemedyRule{"predict_sizes", {"activations", "budget_too_small", "temporaries", "workspace"}, &predict},
};

}  // namespace

std::span<const RemedyRule> take_remedies() { return kTakeRemedies; }

}  // namespace ullage::diagnose
