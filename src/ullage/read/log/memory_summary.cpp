// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/memory_summary.h"

#include "ullage/read/log/log_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ullage::read {
namespace {

using trace::SummaryCell;
using trace::SummaryRow;

constexpr std::size_t kLinesAbove = 60;  // lines of a table searched above its trigger word
constexpr std::size_t kMostRows = 200;
constexpr std::string_view kTitle = "memory summary";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

// Returns the texts between the bars. A last cell without a closing bar is left out, because it may be cut off.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  std::size_t begin = line.find('|');
  while (begin != line.npos) {
    const std::size_t end = line.find('|', begin + 1);
    if (end == line.npos) break;
    cells.push_back(trimmed(line.substr(begin + 1, end - begin - 1)));
    begin = end;
  }
  return cells;
}

struct Value {
  std::uint64_t number = 0;
  std::uint64_t unit = 1;
  std::string_view label;  // "KiB", "K", ""
};

// How PyTorch writes cells (torch/cuda/memory.py): sizes in binary units whatever their label, counts in thousands.
constexpr std::pair<std::string_view, std::uint64_t> kSummaryUnits[] = {{"", 1},
                                                                        {"B", 1},
                                                                        {"KB", 1ull << 10},
                                                                        {"KiB", 1ull << 10},
                                                                        {"MB", 1ull << 20},
                                                                        {"MiB", 1ull << 20},
                                                                        {"GB", 1ull << 30},
                                                                        {"GiB", 1ull << 30},
                                                                        {"TB", 1ull << 40},
                                                                        {"TiB", 1ull << 40},
                                                                        {"PB", 1ull << 50},
                                                                        {"PiB", 1ull << 50},
                                                                        {"K", 1000},
                                                                        {"M", 1000 * 1000}};

std::optional<Value> value_of(std::string_view cell) {
  Value value;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value.number);
  if (error != std::errc() || cell.empty()) return std::nullopt;
  value.label = trimmed(cell.substr(static_cast<std::size_t>(end - cell.data())));
  const auto unit = std::ranges::find(kSummaryUnits, value.label, &std::pair<std::string_view, std::uint64_t>::first);
  if (unit == std::end(kSummaryUnits) || value.number > UINT64_MAX / unit->second) return std::nullopt;
  value.unit = unit->second;
  return value;
}

// Returns the number after `words` at the end of a cell: "CUDA OOMs: 1".
std::optional<std::uint64_t> count_behind(std::string_view cell, std::string_view words) {
  const std::size_t at = cell.find(words);
  if (at == cell.npos) return std::nullopt;
  const auto value = value_of(trimmed(cell.substr(at + words.size())));
  return value && value->label.empty() ? std::optional(value->number) : std::nullopt;
}

class SummaryTable {
 public:
  // Adds a line. False if the line does not belong to this table.
  bool add(std::string_view line) {
    if (line.find('|') == line.npos) return line.find_first_not_of("=- ") == line.npos && !rows().empty();
    std::vector<std::string_view> cells = cells_of(line);
    for (const std::string_view cell : cells) {
      if (cell.find(kTitle) != cell.npos) {
        if (titled_ || !rows().empty()) return false;
        titled_ = true;
        if (const auto device = count_behind(cell, "device ID")) {
          if (*device < 1u << 16) summary_.device = static_cast<unsigned>(*device);
        }
      }
      if (const auto ooms = count_behind(cell, "OOMs:")) summary_.ooms = ooms;
      if (const auto retries = count_behind(cell, "cudaMalloc retries:")) summary_.retries = retries;
    }
    constexpr std::size_t kRow = 5;
    if (cells.size() >= kRow) add_row(std::span(cells).last(kRow));
    return true;
  }

  trace::MemorySummary take() && {
    if (decimal_) summary_.torch = "1.4 to 1.13";
    if (binary_ || summary_.row("Requested memory") != nullptr) summary_.torch = "2.0 or later";
    return std::move(summary_);
  }

 private:
  std::vector<SummaryRow>& rows() { return summary_.rows; }

  void add_row(std::span<const std::string_view> cells) {
    SummaryRow row;
    bool sizes = false, decimal = false, binary = false;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const auto value = value_of(cells[i + 1]);
      if (!value) return;
      row.cells[i] = SummaryCell{value->number * value->unit, Bytes{value->unit}};
      sizes |= value->label.ends_with('B');
      binary |= value->label.ends_with("iB");
      decimal |= value->label.size() == 2 && value->label.ends_with('B');
    }
    row.counts = !sizes;
    row.name = cells[0];
    if (cells[0].starts_with("from ")) {
      const bool large = cells[0] == "from large pool";
      if ((!large && cells[0] != "from small pool") || name_.empty()) return;
      row.name = name_;
      row.pool = large ? "large" : "small";
    }
    if (row.name.empty() || summary_.row(row.name, row.pool) != nullptr || rows().size() == kMostRows) return;
    name_ = row.name;
    binary_ |= binary;
    decimal_ |= decimal;
    rows().push_back(std::move(row));
  }

  trace::MemorySummary summary_;
  std::string name_;  // of the last metric; rows "from large pool" and "from small pool" refer to it
  bool titled_ = false;
  bool binary_ = false;
  bool decimal_ = false;
};

std::string cleaned(std::string_view text, const Line& line) { return clean(line.of(text), kLongestLine); }

// Returns the table's first line. With a title that is the frame above it, or the title itself if no frame is there.
// Without a title it is the topmost line with a bar.
Line first_line(std::string_view text, Line line, std::size_t not_before) {
  for (std::size_t i = 0; i < kLinesAbove && cleaned(text, line).find(kTitle) == std::string::npos; ++i) {
    const auto above = line_before(text, line);
    if (!above || above->begin < not_before || above->of(text).find('|') == std::string_view::npos) break;
    line = *above;
  }
  const auto frame = line_before(text, line);  // "|=====" above the title
  return frame && frame->begin >= not_before && frame->of(text).find("|==") != std::string_view::npos ? *frame : line;
}

}  // namespace

std::optional<FoundSummary> summary_around(std::string_view text, std::size_t offset, std::size_t not_before) {
  const Line first = first_line(text, line_at(text, offset), not_before);
  FoundSummary found;
  found.begin = first.begin;
  SummaryTable table;
  std::optional<Line> line = first;
  for (std::size_t i = 0; i < kMostRows && line && table.add(cleaned(text, *line)); ++i) {
    found.end = line->end;
    line = line_after(text, *line);
  }
  found.summary = std::move(table).take();
  if (found.summary.rows.empty()) return std::nullopt;
  return found;
}

}  // namespace ullage::read
