// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/take_words.h"

#include "ullage/base/sizes.h"
#include "ullage/diagnose/evidence.h"
#include "ullage/predict/event_text.h"
#include "ullage/store/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace ullage::diagnose {
namespace {

// Returns the bytes of the budget that a run needs outside its pool, with the margin. On the CPU at least what torch
// alone takes, because the trace may not say.
Bytes beside_the_pool(const History& history) {
  using store::Budget;
  const trace::ProcessFigures& process = history.take->process;
  const Bytes least = history.device_is_cpu ? Budget::kTorchAlone + Budget::kWarmUp : Bytes{};
  return std::max({process.outside_peak, process.outside_expected, least}) + Budget::kMargin;
}

std::string of_takes(const History& history) {
  if (history.file->file.takes.size() < 2) return "";
  const std::string knobs = predict::knobs_text(history.take->knobs);
  if (!knobs.empty()) return knobs + ": ";
  return fmt::format("take {}: ", history.take - history.file->file.takes.data() + 1);
}

// " in aten::mm of netG.main.6 (backward of step 2, event 12 of 60)"
std::string where(const History& history, const char* before) {
  const Place& place = history.told->place;
  const std::string time = time_in_words(place);
  const std::string op = history.moment.event ? fmt::format("{} {}", before, op_in_words(place)) : "";
  if (!history.moment.event) return " before the first event";
  return fmt::format(" {} ({}{}event {} of {})", op, time, time.empty() ? "" : ", ", history.moment.event->value,
                     history.trace.events.size());
}

void add_gaps(const History& history, std::vector<std::string>& notes) {
  std::uint64_t lost = 0;
  for (const trace::Gap& gap : history.take->gaps) lost += std::min(gap.events, UINT64_MAX - lost);
  if (lost == 0) return;
  notes.push_back(
      fmt::format("{} events in between are not in the file: it holds the first and the newest of a long "
                  "run; levels are right, but a peak among the missing events is not seen",
                  lost));
}

void add_ends(const History& history, std::vector<std::string>& notes) {
  if (history.take->end == trace::Take::End::StepBorder) {
    notes.push_back(
        "the recording ended at the border of a step: what the program does later (evaluation, saving) is "
        "not in it");
  }
  std::string parts;
  for (const std::string& part : history.file->file.phases_left_out) parts += (parts.empty() ? "" : ", ") + part;
  if (!parts.empty()) notes.push_back("not run while recording: " + parts);
}

void add_process(const History& history, std::vector<std::string>& notes) {
  const trace::ProcessFigures& process = history.take->process;
  if (process.peak == Bytes{}) return;
  std::string text = fmt::format("the whole process held at most {}", to_string(process.peak));
  if (process.outside_peak > Bytes{}) text += fmt::format(", {} outside the pool", to_string(process.outside_peak));
  notes.push_back(text);
}

void add_takes(const History& history, std::vector<std::string>& notes) {
  const trace::TraceFile& file = history.file->file;
  if (history.trace.live_before > Bytes{}) {
    notes.push_back(fmt::format("{} were live before it began", to_string(history.trace.live_before)));
  }
  if (file.takes.size() > 1) {
    const std::string at = predict::knobs_text(file.at);
    notes.push_back(fmt::format("one of {} takes in this file{}{}", file.takes.size(),
                                at.empty() ? "" : ", recorded to predict ", at));
  }
}

// False for a take of a rehearsal whose command has no placeholders. Such a command names the size to predict, but the
// take ran at a smaller one.
bool runs_as_recorded(const History& history) {
  const trace::TraceFile& file = history.file->file;
  return file.at.empty() || file.at == history.take->knobs || command_of(history) != file.command;
}

}  // namespace

std::string take_headline(const History& history, const std::string& device) {
  const std::string takes = of_takes(history);
  const std::string live = to_string(history.moment.live) + " live";
  if (history.oom) {
    return fmt::format("{}{} refused {}{}: {}", takes, device, to_string(history.oom->requested), where(history, "to"),
                       live);
  }
  const char* peak = history.moment.event == history.peak.event ? " at the peak," : "";
  return fmt::format("{}{}: {}{}{}{}", takes, device, live, peak, where(history, "in"),
                     history.ooms == 0 ? "; nothing failed" : "");
}

std::vector<std::string> take_notes(const History& history) {
  std::vector<std::string> notes;
  add_takes(history, notes);
  add_gaps(history, notes);
  if (history.told->sliced > 0) {
    const bool one = history.told->sliced == 1;
    notes.push_back(
        fmt::format("{} {}, cut to fit the budget: without one the program runs each list at once, with more "
                    "temporaries",
                    history.told->sliced, one ? "op is a slice of a list op" : "ops are slices of list ops"));
  }
  add_ends(history, notes);
  add_process(history, notes);
  return notes;
}

std::string take_to_know_more(const History& history) {
  const bool first_only = history.steps.whole() < 2 && history.roles.trains && !history.failed();
  if (!first_only) return "";
  return "this trace has only a first step, and the second usually needs more (the optimizer's state is there from its "
         "start): record until the program is in its third step";
}

std::string take_next(const History& history, const std::string& file) {
  if (history.failed()) {
    if (std::string command = run_command(history); !command.empty()) return command;
  }
  return fmt::format("ullage explain {} --html page.html", file);
}

std::string run_command(const History& history) {
  if (!history.told->need || !runs_as_recorded(history)) return "";
  const std::optional<Bytes> least = sum(history.told->need->bytes, beside_the_pool(history));
  if (!least || *least > 1_GiB * 1024 * 1024) return "";
  const std::string command = command_in_words(command_of(history));
  return fmt::format("ullage run --memory {}MiB -- {}", round_up(*least, 64_MiB).count / (1_MiB).count,
                     command.empty() ? "..." : command);
}

std::vector<std::string> command_of(const History& history) {
  std::vector<std::string> command = history.file->file.command;
  for (std::string& word : command) {
    for (const Knob& knob : history.take->knobs) {
      const std::string mark = "{" + knob.name + "}";
      if (mark.size() == 2) continue;
      const std::string value = std::to_string(knob.value);
      for (std::size_t at = word.find(mark); at != word.npos; at = word.find(mark, at + value.size())) {
        word.replace(at, mark.size(), value);
      }
    }
  }
  return command;
}

std::string shell_word(const std::string& word) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) || c >= 128 ||
           std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string command_in_words(const std::vector<std::string>& command) {
  constexpr std::size_t kLongest = 200;
  std::string text;
  for (const std::string& word : command) {
    const std::string quoted = shell_word(word);
    if (text.size() + quoted.size() > kLongest) return text + " ...";
    text += (text.empty() ? "" : " ") + quoted;
  }
  return text;
}

bool is_python(const trace::TraceFile& file) {
  return std::any_of(file.command.begin(), file.command.end(), [](const std::string& word) {
    const std::size_t name = word.rfind('/') == std::string::npos ? 0 : word.rfind('/') + 1;
    return word.compare(name, 6, "python") == 0 || word.ends_with(".py");
  });
}

}  // namespace ullage::diagnose
