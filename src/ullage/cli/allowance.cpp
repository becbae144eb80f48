// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/allowance.h"

#include "ullage/cli/words.h"
#include "ullage/drycard/elf/elf_file.h"
#include "ullage/read/file/file_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace ullage::cli {
namespace {

constexpr const char* kOption = "--allow";
constexpr const char* kAllowed =
    "give bf16, alone or with more words after commas: evaluation (also casts forward passes that no backward pass "
    "follows), if-needed (casts only if no exact plan that adds 5 % or less to a step fits). Or give classes, and the "
    "run chooses: rounding, different, or both";

struct Word {
  const char* name;
  bool Allowance::*allows;
};
constexpr std::array kWords = {Word{"bf16", &Allowance::bf16}, Word{"evaluation", &Allowance::evaluation},
                               Word{"if-needed", &Allowance::if_needed}, Word{"rounding", &Allowance::rounding},
                               Word{"different", &Allowance::different}};

bool is_fp16(std::string_view word) { return word == "fp16" || word == "float16" || word == "half"; }

Error unknown(const std::string& word) {
  if (is_fp16(word)) {
    return wrong(
        "fp16 needs a gradient scaler in the program's own loop, which Ullage cannot add from outside: write "
        "scaler.scale(loss).backward() and scaler.step(optimizer); scaler.update(), with a torch.amp.GradScaler, under "
        "an autocast of the program's own. Or " +
            std::string(kAllowed),
        kOption);
  }
  std::vector<std::string> known;
  for (const Word& one : kWords) known.emplace_back(one.name);
  return wrong(fmt::format("'{}' is not known{}; {}", word, suggestion(word, known), kAllowed), kOption);
}

bool links_torch(const std::filesystem::path& file) {
  const Result<read::FileContent> content = read::FileContent::open(file.string());
  if (!content || !drycard::ElfFile::is_elf(content->bytes())) return false;
  const Result<drycard::ElfFile> elf = drycard::ElfFile::parse(content->bytes(), file.string());
  return elf && std::ranges::any_of(elf->needed(), [](std::string_view name) {
           return name.starts_with("libtorch") || name.starts_with("libullage_torch");
         });
}

}  // namespace

std::vector<std::string> Allowance::words() const {
  std::vector<std::string> words;
  for (const Word& word : kWords) {
    if (this->*word.allows) words.emplace_back(word.name);
  }
  return words;
}

std::string Allowance::switches(const std::string& device) const {
  return fmt::format("autocast=bfloat16 on={}{}{}", device, evaluation ? " evaluation" : "",
                     if_needed ? " if_needed" : "");
}

Result<Allowance> parse_allowance(const std::string& text) {
  Allowance allowance;
  for (const std::string& word : between_commas(text)) {
    const auto found = std::ranges::find(kWords, word, &Word::name);
    if (word.empty()) return wrong(fmt::format("a word is missing in '{}'; {}", text, kAllowed), kOption);
    if (found == kWords.end()) return unknown(word);
    allowance.*found->allows = true;
  }
  const std::string word = allowance.words().front();
  if (allowance.names_classes() && (allowance.bf16 || allowance.evaluation || allowance.if_needed)) {
    return wrong(fmt::format("classes (rounding, different) do not go together with '{}'; {}", word, kAllowed),
                 kOption);
  }
  if (!allowance.names_classes() && !allowance.bf16) {
    return wrong(fmt::format("'{}' needs a type beside it, as in bf16,{}; {}", word, word, kAllowed), kOption);
  }
  return allowance;
}

Result<Allowance> for_python(Allowance allowance) {
  if (!allowance.names_classes()) return allowance;
  if (!allowance.rounding) {
    return wrong(
        "'different' alone changes nothing in a command: what Ullage changes from outside differs in rounding; "
        "give rounding",
        kOption);
  }
  Allowance meant;
  meant.bf16 = meant.if_needed = true;
  return meant;
}

Status takes_switches(const Launch& program, const std::vector<std::string>& target) {
  const bool shipped = target.front() != "--";
  if (!shipped && !links_torch(program.file)) return success();
  const std::string instead = shipped ? fmt::format(
                                            "give rounding, and the run may add --precision, if 'ullage help {}' "
                                            "says that it has that option",
                                            target.front())
                                      : std::string("C++ programs write ullage::train::AutocastGuard (docs/train.md)");
  return wrong(fmt::format("is for Python programs, and {} is not one; {}", program.words.front(), instead), kOption);
}

}  // namespace ullage::cli
