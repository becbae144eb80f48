// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/plan_question.h"

#include "ullage/base/sizes.h"
#include "ullage/cli/machine_memory.h"
#include "ullage/cli/words.h"

#include <string>
#include <vector>

namespace ullage::cli {
namespace {

// Turns on the levers named in `text`, separated by commas; all others are off.
Result<plan::Levers> levers_of(const std::string& text) {
  plan::Levers levers = plan::kNoLevers;
  for (const std::string& word : between_commas(text)) {
    if (plan::turn_on(word, levers)) continue;
    std::vector<std::string> known;
    for (const plan::Lever& lever : plan::kLevers) known.emplace_back(lever.word);
    return wrong("unknown lever '" + word + "'" + suggestion(word, known), "--levers");
  }
  return levers;
}

Result<Bytes> plan_size(const std::string& text, const std::string& option) {
  Result<Bytes> size = parse_bytes(text);
  if (!size) return wrong(size.error().message, option);
  if (*size == Bytes{}) return wrong("is 0 bytes", option);
  return size;
}

// Reads "OUT,BACK", or one size for both directions.
Status read_rates(const std::string& text, plan::Rates& rates) {
  const std::vector<std::string> words = between_commas(text);
  if (words.empty() || words.size() > 2)
    return wrong("'" + text + "' has " + std::to_string(words.size()) +
                     " rates; give one for both directions, or two: out, back",
                 "--rate");
  ULLAGE_TRY_VALUE(const Bytes out, plan_size(words.front(), "--rate"));
  ULLAGE_TRY_VALUE(const Bytes back, plan_size(words.back(), "--rate"));
  rates.write = static_cast<double>(out.count), rates.read = static_cast<double>(back.count);
  return success();
}

Result<std::optional<Bytes>> memory_of(const PlanOptions& options) {
  if (!options.memory) return std::optional<Bytes>();
  if (options.memory == "auto") {
    const Bytes machine = auto_budget(read_machine_memory(options.roots));
    if (machine == Bytes{})
      return wrong("this machine does not show how much memory it has; state a size such as 8GiB", "--memory");
    return std::optional(machine);
  }
  ULLAGE_TRY_VALUE(Bytes size, plan_size(*options.memory, "--memory"));
  return std::optional(size);
}

}  // namespace

Result<AskedPlan> read_question(const PlanOptions& options) {
  AskedPlan asked;
  PlanQuestion& question = asked.question;
  if (!options.memory && !options.curve) return wrong("nothing is asked: add --memory SIZE or --curve", "");
  if (options.allow) {
    if (!options.memory) return wrong("needs a memory to choose for: add --memory SIZE", "--allow");
    ULLAGE_TRY_VALUE(asked.allowed, parse_classes(*options.allow));
  }
  ULLAGE_TRY_VALUE(question.memory, memory_of(options));
  if (options.levers) {
    ULLAGE_TRY_VALUE(question.levers, levers_of(*options.levers));
  }
  if (options.step) question.step = *options.step - 1;
  question.seed = options.seed, question.curve = options.curve;
  if (options.effort) question.effort = *options.effort * 1'000'000;
  if (!options.out.empty() && !options.memory) return wrong("needs a plan: add --memory SIZE", "--out");
  if (options.rate) {
    ULLAGE_TRY(read_rates(*options.rate, question.rates));
  }
  return asked;
}

}  // namespace ullage::cli
