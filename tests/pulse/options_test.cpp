// SPDX-License-Identifier: Apache-2.0
#include "pulse/options.h"

#include "program/option_cases.h"

namespace ullage::pulse {
namespace {

auto parse(const std::string& line) {
  const program::Words words("ullage-pulse", line);
  return parse_options(words.argc(), words.argv());
}

TEST(PulseOptions, AreRefusedInTheseWords) { program::expect_refused("pulse/option_errors.txt", 15, parse); }

TEST(PulseOptions, HelpIsAsStated) { program::expect_help("pulse/help.txt", parse); }

TEST(PulseOptions, HaveThePublishedDefaults) {
  const auto parsed = parse("");
  const auto& o = std::get<Options>(parsed);
  EXPECT_EQ(o.input, "input");
  EXPECT_EQ(o.out, "runs");
  EXPECT_EQ(o.gaussian_fit, "gaussian_fit.pt");
  EXPECT_EQ(o.loss, *parse_loss(std::string(kDefaultLoss)));
  EXPECT_EQ(o.eps, 2e-3);
  EXPECT_EQ(o.bad_noise_layers, std::vector<std::int64_t>{17});
  EXPECT_EQ(o.trainable_noise_layers, 5);
  EXPECT_FALSE(o.seed);
}

TEST(PulseOptions, MayBeWrittenAsThePublishedProgramHasThem) {
  const auto parsed = parse(
      "-input_dir a_b -output_dir=c_d --num_trainable_noise_layers 3 -bad_noise_layers 1.2 -seed 0 -tile_latent "
      "-lr_schedule fixed -opt_name sgdm -noise_type zero -loss_str 1*L1");
  const auto& o = std::get<Options>(parsed);
  EXPECT_EQ(o.input, "a_b");
  EXPECT_EQ(o.out, "c_d");
  EXPECT_EQ(o.trainable_noise_layers, 3);
  EXPECT_EQ(o.bad_noise_layers, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(o.seed, 0u);
  EXPECT_TRUE(o.tile_latent);
  EXPECT_EQ(o.schedule, Schedule::Fixed);
  EXPECT_EQ(o.optimizer, OptimizerKind::SgdMomentum);
  EXPECT_EQ(o.noise_type, NoiseType::Zero);
  EXPECT_EQ(o.loss, (std::vector<LossPart>{{1, Term::L1}}));
}

}  // namespace
}  // namespace ullage::pulse
