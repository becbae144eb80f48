// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares the programs' error messages for wrong command lines with those in golden files.

#include "folders.h"
#include "program/answer.h"
#include "program/temp_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

namespace ullage::program {

// Splits "--batch 4" into words as main() gets them. '~' stands for a blank within a word.
class Words final {
 public:
  Words(const std::string& name, const std::string& line) : words_{name} {
    std::istringstream in(line);
    for (std::string word; in >> word;) {
      std::replace(word.begin(), word.end(), '~', ' ');
      words_.push_back(word);
    }
    for (const std::string& word : words_) argv_.push_back(word.c_str());
  }
  int argc() const { return static_cast<int>(argv_.size()); }
  const char* const* argv() const { return argv_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<const char*> argv_;
};

// Checks each case of a file below tests/: a line "$ arguments", then a line with the message. There must be more than
// `least` cases.
template <class Parse>
void expect_refused(const std::string& file, int least, const Parse& parse) {
  std::istringstream golden(test::read_file(tests_folder() / file));
  int cases = 0;
  for (std::string line, said; std::getline(golden, line) && std::getline(golden, said); ++cases) {
    const auto parsed = parse(line.substr(2));
    const auto* answer = std::get_if<Answer>(&parsed);
    ASSERT_NE(answer, nullptr) << line;
    EXPECT_EQ(answer->text, said + "\n") << line;
    EXPECT_EQ(answer->code, ExitCode::WrongUse) << line;
  }
  EXPECT_GT(cases, least);
}

template <class Parse>
void expect_help(const std::string& file, const Parse& parse) {
  for (const char* asked : {"--help", "-h"}) {
    const auto parsed = parse(asked);
    EXPECT_EQ(std::get<Answer>(parsed).code, ExitCode::Done);
    EXPECT_EQ(std::get<Answer>(parsed).text, test::read_file(tests_folder() / file));
  }
}

}  // namespace ullage::program
