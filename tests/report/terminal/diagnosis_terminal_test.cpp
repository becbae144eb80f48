// SPDX-License-Identifier: Apache-2.0
#include "folders.h"
#include "report/golden_file.h"
#include "report/sample_diagnosis.h"

#include "ullage/report/diagnosis_report.h"
#include "ullage/report/terminal/terminal_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace ullage::report {
namespace {

std::string without_colors(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      out += text[i];
    }
  }
  return out;
}

// Writes diagnoses and checks what holds for each: it adds up, no line is too wide, and no line has a terminal control
// sequence other than our colors. One diagnosis fits on the screen.
std::string written_to_terminal(const std::vector<Diagnosis>& diagnoses, const TerminalStyle& style) {
  for (const Diagnosis& diagnosis : diagnoses) expect_adds_up(diagnosis);
  std::ostringstream out;
  write_terminal(diagnoses, style, out);
  if (!style.colors) {
    EXPECT_EQ(out.str().find('\x1b'), std::string::npos);
  }
  std::istringstream lines(without_colors(out.str()));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const bool command = line.starts_with("next: ");  // never broken
    EXPECT_TRUE(command || columns(line) <= std::max(style.width, 40u)) << line;
    EXPECT_EQ(clean(line, style.unicode), line);
  }
  if (diagnoses.size() == 1 && !style.owners) {
    EXPECT_LE(count, kScreenLines) << out.str();
  }
  return out.str();
}

std::filesystem::path golden_terminal(const char* name) { return tests_folder() / "report/golden" / name; }

constexpr TerminalStyle kUnicode = {false, true, 80, {}};

TEST(DiagnosisTerminal, OfAMessage) {
  expect_golden(golden_terminal("message.txt"), written_to_terminal({sample_message()}, {}));
}

TEST(DiagnosisTerminal, OfASnapshot) {
  expect_golden(golden_terminal("snapshot.txt"), written_to_terminal({sample_snapshot()}, kUnicode));
}

TEST(DiagnosisTerminal, ColorsAreAllThatATerminalAdds) {
  const TerminalStyle colored = {true, false, 80, {}};
  const std::string text = written_to_terminal({sample_snapshot()}, colored);
  EXPECT_NE(text.find("\x1b[34m"), std::string::npos);
  EXPECT_EQ(without_colors(text), written_to_terminal({sample_snapshot()}, {}));
}

TEST(DiagnosisTerminal, WithoutUtf8IsAscii) {
  Diagnosis d = sample_snapshot();
  d.source.file = "m\u00f6del.pickle";
  const std::string text = written_to_terminal({d}, {});
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; })) << text;
}

TEST(DiagnosisTerminal, SeveralAreToldCompactly) {
  std::vector<Diagnosis> all(3, sample_message());
  all[1].headline = "another error";
  expect_golden(golden_terminal("several.txt"), written_to_terminal(all, {}));
}

TEST(DiagnosisTerminal, FitsTheScreenHoweverMuchThereIs) {
  for (const unsigned width : {40u, 60u, 80u, 120u, 300u}) {
    const std::string text = written_to_terminal({sample_overfull()}, {false, true, width, {}});
    EXPECT_NE(text.find("more causes (--json ha"), std::string::npos) << text;
    EXPECT_NE(text.find("next: "), std::string::npos) << text;
  }
  expect_golden(golden_terminal("overfull.txt"), written_to_terminal({sample_overfull()}, {}));
}

TEST(DiagnosisTerminal, TheLongestCategoryStandsApartFromItsOwner) {
  Diagnosis d = sample_snapshot();
  d.peak->owners.front().category = trace::Category::Library;
  d.peak->owners.front().name = "cuBLAS workspace";
  TerminalStyle style;
  style.width = 80;
  EXPECT_NE(written_to_terminal({d}, style).find("library workspaces cuBLAS workspace"), std::string::npos);
}

TEST(DiagnosisTerminal, NarrowerThanFortyColumnsIsForty) {
  for (const unsigned width : {0u, 1u, 39u}) {
    EXPECT_EQ(written_to_terminal({sample_snapshot()}, {false, false, width, {}}),
              written_to_terminal({sample_snapshot()}, {false, false, 40, {}}));
  }
}

TEST(DiagnosisTerminal, TellsAsManyOwnersAsAskedForAndTheRestInOneRow) {
  TerminalStyle style;
  style.owners = 50;
  const std::string many = written_to_terminal({sample_overfull()}, style);
  EXPECT_NE(many.find("module_51.py"), std::string::npos);
  EXPECT_EQ(many.find("module_50.py"), std::string::npos);
  EXPECT_NE(many.find("1.24 GiB  25 %  50 others"), std::string::npos) << many;  // 1 + 2 + ... + 50 MiB
  style.owners = 1;
  const std::string one = written_to_terminal({sample_overfull()}, style);
  EXPECT_NE(one.find("99 others"), std::string::npos) << one;
}

TEST(DiagnosisTerminal, NeutralisesWhatAFileSays) {
  const std::string evil =
      "\x1b]0;owned\x07\x1b[2J\r\nxx\x9b"
      "31m\xc2\x9b\u202egpj.exe\u200b\xff\x08";
  Diagnosis d = sample_snapshot();
  d.headline += evil;
  d.source.file = evil;
  d.bar->of = evil;
  d.bar->parts.front().name = evil;
  d.peak->owners.front().name = evil;
  d.causes.front().title = d.causes.front().evidence.front() = evil;
  d.remedies.front().action = d.remedies.front().why = evil;
  d.notes.front() = d.to_know_more = d.next = evil;
  for (const bool unicode : {false, true}) {
    const std::string text = written_to_terminal({d}, {false, unicode, 80, {}});
    for (const unsigned char c : text) EXPECT_TRUE(c == '\n' || (c >= ' ' && c != 0x7F));
    EXPECT_EQ(text.find("\u202e"), std::string::npos);
    EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
  }
}

TEST(DiagnosisTerminal, SaysWhoSpeaksUnlessTheVersionOfTorchDoes) {
  Diagnosis d = sample_message();
  d.tool = diagnose::Spoken{"torch", "PyTorch", "the wording"};
  EXPECT_EQ(written_to_terminal({d}, {}).find("by PyTorch"), std::string::npos);
  d.source.torch.clear();
  EXPECT_NE(written_to_terminal({d}, {}).find("by PyTorch"), std::string::npos);
  d.tool = diagnose::Spoken{"vllm", "vLLM", "\"vllm\" in the traceback"};
  EXPECT_NE(written_to_terminal({d}, {}).find(", by vLLM"), std::string::npos);
}

TEST(DiagnosisTerminal, SaysWhereTheRequestWasMadeAndWhatEachDeviceHeld) {
  Diagnosis d = sample_snapshot();
  d.asked_by = "model.py:42 forward, called by train.py:57 main";
  d.devices = {{0, 100_MiB, 1_GiB, std::nullopt}, {1, 9_GiB, 10_GiB, 2_GiB}};
  const std::string text = written_to_terminal({d}, {});
  EXPECT_NE(text.find("asked for by model.py:42 forward, called by train.py:57 main"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU 0 held at most 100.00 MiB, GPU 1 held at most 9.00 GiB and refused 2.00"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace ullage::report
