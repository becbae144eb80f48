// SPDX-License-Identifier: Apache-2.0
#include "pulse/loss_grammar.h"

#include <gtest/gtest.h>

namespace ullage::pulse {
namespace {

TEST(LossGrammar, ReadsASumInItsOrder) {
  const std::vector<LossPart> usual = {{100, Term::L2}, {0.05, Term::GeoCross}};
  EXPECT_EQ(*parse_loss(std::string(kDefaultLoss)), usual);
  const std::vector<LossPart> other = {{.5, Term::L1}, {-2, Term::L2}, {1e-3, Term::L1}};
  EXPECT_EQ(*parse_loss(".5*L1+-2*L2+1e-3*L1"), other);
}

TEST(LossGrammar, SaysWhichPartIsNone) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "'' is not weight*TERM"},      {"L2", "'L2' is not weight*TERM"},
      {"1*L2+", "'' is not weight*TERM"}, {"x*L2", "'x*L2' is not weight*TERM"},
      {"nan*L2", "'nan*L2' is not"},      {"1 *L2", "'1 *L2' is not"},
      {"1*L3", "no term 'L3'"},           {"1*l2", "no term 'l2'"},
      {"1*L2*L2", "no term 'L2*L2'"},     {"1*L2 +2*L1", "no term 'L2 '"},
  };
  for (const auto& [text, said] : cases) {
    const auto parsed = parse_loss(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text().find(said), std::string::npos) << parsed.error().text();
  }
}

}  // namespace
}  // namespace ullage::pulse
