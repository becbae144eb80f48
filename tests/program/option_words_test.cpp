// SPDX-License-Identifier: Apache-2.0
#include "program/option_words.h"

#include <gtest/gtest.h>

#include <utility>

namespace ullage::program {
namespace {

TEST(OptionWords, AreMadeLongOnes) {
  const ShortOption shorts[] = {{"ii", "init-image"}, {"i", "iterations"}};
  const std::pair<const char*, const char*> cases[] = {
      {"-input_dir", "--input-dir"}, {"--input_dir=a_b", "--input-dir=a_b"},
      {"-ii", "--init-image"},       {"-ii=a-b_c", "--init-image=a-b_c"},
      {"-i", "--iterations"},        {"-iii", "--iii"},
  };
  for (const auto& [word, taken] : cases) EXPECT_EQ(long_option(word, shorts), taken);
}

TEST(OptionWords, ThatAreNoneStayAsTheyAre) {
  for (const char* word : {"", "-", "--", "-h", "-3", "-0.5", "a_b", "a-ii"}) EXPECT_EQ(long_option(word), word);
}

}  // namespace
}  // namespace ullage::program
