// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/memory_summary.h"

#include "real.h"
#include "ullage/read/log/log.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace ullage::read {
namespace {

using nlohmann::json;
using trace::MemorySummary;

std::vector<MemorySummary> summaries_of(const std::string& text) {
  auto log = read_log(text, "test.txt");
  EXPECT_TRUE(log.ok()) << text;
  return log.ok() ? log.value().summaries : std::vector<MemorySummary>{};
}

json as_json(const MemorySummary& summary) {
  json rows = json::array();
  for (const trace::SummaryRow& row : summary.rows) {
    json cells = json::array();
    for (const trace::SummaryCell& cell : row.cells) cells.push_back({cell.value, cell.precision.count});
    rows.push_back({{"name", row.name}, {"pool", row.pool}, {"counts", row.counts}, {"cells", cells}});
  }
  json whole = {{"torch", summary.torch}, {"rows", rows}};
  whole["device"] = summary.device ? json(*summary.device) : json();
  whole["ooms"] = summary.ooms ? json(*summary.ooms) : json();
  whole["retries"] = summary.retries ? json(*summary.retries) : json();
  return whole;
}

// Compares every cell of every real table with what an independent reader, tests/data/summaries/make_cells.py, found.
TEST(MemorySummary, EveryRealCellIsRead) {
  std::istringstream lines(text_of(data_folder() / "summaries/cells.jsonl"));
  int files = 0;
  for (std::string line; std::getline(lines, line); ++files) {
    const json wanted = json::parse(line);
    const std::string file = wanted.at("file");
    const auto found = summaries_of(text_of(data_folder() / "summaries" / file));
    ASSERT_EQ(found.size(), 1u) << file;
    EXPECT_EQ(as_json(found[0]), wanted.at("summary")) << file;
  }
  EXPECT_EQ(files, 10);
}

TEST(MemorySummary, RowsAreFoundByNameAndPool) {
  const auto found = summaries_of(text_of(data_folder() / "summaries/zerollama_minicpm_readme.txt"));
  ASSERT_EQ(found.size(), 1u);
  const trace::SummaryRow* row = found[0].row("Allocated memory", "small");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->cells[1].value, (243_MiB).count);
  EXPECT_EQ(row->cells[1].precision, 1_MiB);
  EXPECT_EQ(found[0].row("Allocations")->cells[2].value, 487593u);
  EXPECT_EQ(found[0].row("Allocated"), nullptr);
}

// A table gives the same cells if it is inside a log, with the prefixes and line ends that loggers add.
TEST(MemorySummary, IsReadInTheMidstOfALog) {
  const std::string table = text_of(data_folder() / "summaries/instructlab_merlinite7b_load.txt");
  const json wanted = as_json(summaries_of(table).at(0));
  for (const std::string prefix : {"", "[rank0]: ", "| ", "2025-06-01T10:00:00Z stdout F ", "web-1  | ", "  "}) {
    for (const std::string end : {"\n", "\r\n"}) {
      std::string text = prefix + "epoch 1" + end;
      std::istringstream lines(table);
      for (std::string line; std::getline(lines, line);) text += prefix + line + end;
      text += prefix + "epoch 2" + end;
      const auto found = summaries_of(text);
      ASSERT_EQ(found.size(), 1u) << prefix;
      EXPECT_EQ(as_json(found[0]), wanted) << prefix;
      EXPECT_EQ(found[0].line, 2u) << prefix;
    }
  }
}

TEST(MemorySummary, SeveralAreKeptApart) {
  const std::string one = text_of(data_folder() / "summaries/parallelformers_README_0.txt");
  const std::string other = text_of(data_folder() / "summaries/pytorch_issue_35901_partial.txt");
  const auto found = summaries_of(one + other + "text\n" + one);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(as_json(found[0]), as_json(found[2]));
  EXPECT_EQ(as_json(found[1]), as_json(summaries_of(other).at(0)));
}

// A table that is cut off anywhere may lose cells, but every cell that is read is that of the whole table.
TEST(MemorySummary, TruncatedAnywhereGivesNoWrongCell) {
  const std::string text = text_of(data_folder() / "summaries/instructlab_merlinite7b_load.txt");
  const MemorySummary whole = summaries_of(text).at(0);
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    for (const bool front : {false, true}) {
      const auto log = read_log(front ? text.substr(cut) : text.substr(0, cut), "cut");
      if (!log.ok()) continue;
      for (const trace::SummaryRow& row : log.value().summaries.at(0).rows) {
        const trace::SummaryRow* wanted = whole.row(row.name, row.pool);
        ASSERT_NE(wanted, nullptr) << row.name << " cut at " << cut;
        for (std::size_t i = 0; i < row.cells.size(); ++i) ASSERT_EQ(row.cells[i].value, wanted->cells[i].value);
      }
    }
  }
}

TEST(MemorySummary, CountsInThousandsKeepTheirPrecision) {
  const auto found = summaries_of(
      "| Allocations           |  751 K  |  1 M  | 3 | 0 |\n"
      "|       from large pool |  750 K  |  1 M  | 3 | 0 |\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].rows[0].counts);
  EXPECT_EQ(found[0].rows[0].cells[0].value, 751000u);
  EXPECT_EQ(found[0].rows[0].cells[0].precision, Bytes{1000});
  EXPECT_EQ(found[0].rows[0].cells[1].precision, Bytes{1000000});
}

TEST(MemorySummary, CellsBeyondSixtyFourBitsGiveNoRow) {
  const auto found = summaries_of(
      "|  PyTorch CUDA memory summary, device ID 70000 |\n"
      "| Allocated memory | 18014398509481984 KiB | 1 KiB | 1 KiB | 1 KiB |\n"
      "| Active memory | 18014398509481983 KiB | 1 KiB | 99999999999999999999 KiB | 1 KiB |\n"
      "| Requested memory | 18014398509481983 KiB | 1 KiB | 1 KiB | 1 KiB |\n");
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].rows.size(), 1u);
  EXPECT_EQ(found[0].rows[0].name, "Requested memory");
  EXPECT_FALSE(found[0].device);
}

}  // namespace
}  // namespace ullage::read
