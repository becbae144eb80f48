// SPDX-License-Identifier: Apache-2.0
#include "dcgan/options.h"

#include "program/option_cases.h"

namespace ullage::dcgan {
namespace {

auto parse(const std::string& line) {
  const program::Words words("ullage-dcgan", line);
  return parse_options(words.argc(), words.argv());
}

TEST(Options, AreRefusedInTheseWords) { program::expect_refused("dcgan/option_errors.txt", 20, parse); }

TEST(Options, HelpIsAsStated) { program::expect_help("dcgan/help.txt", parse); }

TEST(Options, HaveTheDefaultsOfTheContract) {
  const auto parsed = parse("--data d --out o");
  const auto& o = std::get<Options>(parsed);
  EXPECT_EQ(
      options_as_json(o),
      R"({"data":"d","out":"o","image_size":256,"batch":64,"steps":null,"epochs":25,"nz":100,"ngf":64,"ndf":64,)"
      R"("max_channels":null,"blocks":"standard","micro_batch":null,"precision":"fp32","allow":[],"lr":0.0002,"beta1":0.5,"beta2":0.999,"seed":1,"threads":null,"sample_every":100,)"
      R"("checkpoint_every":500,"resume":false,"skip_bad":false})");
}

TEST(Options, ThoseOfAStepShapeTheRun) {
  const auto shape = [](const std::string& line) {
    return options_that_shape_the_run(std::get<Options>(parse("--data d --out o --batch 8 " + line)));
  };
  const auto plain = shape("");
  EXPECT_EQ(shape("--precision fp32 --micro-batch 8 --blocks standard"), plain)
      << "a micro-batch of the batch is the batch";
  const auto other = shape("--precision bf16 --micro-batch 3 --allow batch-norm --blocks separable");
  EXPECT_EQ(other.at("--precision"), "bf16");
  EXPECT_EQ(other.at("--micro-batch"), "3");
  EXPECT_EQ(other.at("--blocks"), "separable");
}

TEST(Options, StepsTakeThePlaceOfEpochs) {
  const auto parsed = parse("--data d --out o --steps 7 --batch 1 --image-size 16");
  EXPECT_EQ(std::get<Options>(parsed).steps, 7);
  EXPECT_EQ(std::get<Options>(parsed).epochs, 0);
}

}  // namespace
}  // namespace ullage::dcgan
