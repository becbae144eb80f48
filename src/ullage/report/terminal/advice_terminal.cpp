// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/sizes.h"
#include "ullage/report/advice_report.h"
#include "ullage/report/advice_words.h"
#include "ullage/report/terminal/terminal_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace ullage::report {
namespace {

constexpr const char* kBold = "\x1b[1m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kPlain = "\x1b[0m";

// One row: "yes   6.90 GiB   +4 %  same bits  name", and below it what to do and a note, both indented.
class AdviceTable final {
 public:
  AdviceTable(const TerminalStyle& style, Bytes memory, std::ostream& out)
      : style_(style), width_(std::clamp(style.width, 40U, 120U)), memory_(memory), out_(out) {}

  void head() {
    out_ << (style_.colors ? kBold : "")
         << fmt::format(" {:<4} {:>10} {:>7}  {:<9}  {}", "fits", "peak", "time", "result", "remedy")
         << (style_.colors ? kPlain : "") << '\n';
  }

  void row(const advise::Row& row) {
    const bool fits = row.fits.value_or(false);
    const std::string name = clean(row.name, style_.unicode);
    const std::string at = clean(place_word(row), style_.unicode);
    const std::vector<std::string> names = wrap(name, width_ - kIndent);
    out_ << (style_.colors && fits ? kGreen : "")
         << fmt::format(" {:<4} {:>10} {:>7}  {:<9}  {}", fits_word(row), peak_word(row), time_word(row),
                        result_word(row), names.front())
         << (style_.colors && fits ? kPlain : "") << '\n';
    for (std::size_t i = 1; i < names.size(); ++i) out_ << std::string(kIndent, ' ') << names[i] << '\n';
    action(row.action + (at.empty() ? "" : "  # " + at));
    below(plainly_words(row, memory_));
    below(row.note);
  }

 private:
  static constexpr unsigned kIndent = 37;  // columns before the remedy's name

  static constexpr unsigned kBelow = 6;  // columns before the lines below a row

  // People copy actions, so the text is never shortened. A command is not wrapped either: its lines would run as
  // several.
  void action(const std::string& text) {
    if (!text.starts_with("ullage ")) return below(text);
    out_ << std::string(kBelow, ' ') << clean(text, style_.unicode) << '\n';
  }

  // Wraps the text at the terminal's width.
  void below(const std::string& text) {
    if (text.empty()) return;
    for (const std::string& line : wrap(clean(text, style_.unicode), width_ - kBelow))
      out_ << std::string(kBelow, ' ') << line << '\n';
  }

  const TerminalStyle& style_;
  const unsigned width_;
  const Bytes memory_;  // the memory that was asked about
  std::ostream& out_;
};

}  // namespace

void write_terminal(const advise::Advice& advice, const TerminalStyle& style, std::size_t top, std::ostream& out) {
  out << clean(headline(advice), style.unicode) << '\n';
  if (const std::string plainly = plainly_words(advice.plain, advice.memory); !plainly.empty()) out << plainly << '\n';
  if (!advice.refused.empty()) out << clean(advice.refused, style.unicode) << '\n';
  out << '\n';

  const std::size_t shown = top == 0 ? advice.rows.size() : std::min(top, advice.rows.size());
  if (advice.rows.empty()) out << "no remedy applies to this program\n";
  AdviceTable table(style, advice.memory, out);
  if (shown > 0) table.head();
  for (std::size_t i = 0; i < shown; ++i) table.row(advice.rows[i]);
  if (shown < advice.rows.size()) {
    out << fmt::format(" {} more: --top 0 shows all, --json has them too\n", advice.rows.size() - shown);
  }
  out << '\n';
  if (std::ranges::any_of(advice.rows, [](const auto& row) { return row.basis == advise::Basis::Computed; })) {
    out << "~: computed from the recording, at best; not tried\n";
  }
  if (!advice.time_basis.empty()) out << "time: " << clean(advice.time_basis, style.unicode) << '\n';
  for (const std::string& note : advice.notes) out << "note: " << clean(note, style.unicode) << '\n';
  out << fmt::format("{} runs in {}\n", advice.runs, to_string(advice.wall));
}

}  // namespace ullage::report
