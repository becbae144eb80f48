// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a shipped program says of its options that change results (trace::ResultChange). Its text begins with the
// option, and may go on with others that a person must give beside it: "--micro-batch 32 --allow batch-norm". Edit this
// if that text gets another form.

#include "ullage/advise/trials.h"
#include "ullage/trace/take/take.h"

#include <span>
#include <string>
#include <vector>

namespace ullage::cli {

// The option that a change is about, and the options to give beside it. Empty if the change's text names no option.
struct ChangedBy {
  advise::Option option;  // {"micro-batch", "32"}
  std::vector<advise::Option> beside;
};
ChangedBy changed_by(const trace::ResultChange& change);

// What to give beside `--option`, as it is typed: "--allow batch-norm". Empty if no change is about it.
std::string needed_beside(std::span<const trace::ResultChange> changes, const std::string& option);

// Adds to a command the options that must stand beside those of `changes`, in place of any earlier values of them.
std::vector<std::string> with_needed(std::vector<std::string> words, std::span<const trace::ResultChange> changes);

}  // namespace ullage::cli
