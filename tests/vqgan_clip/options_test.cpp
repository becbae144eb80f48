// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/options.h"

#include "program/option_cases.h"

namespace ullage::vqgan_clip {
namespace {

auto parse(const std::string& line) {
  const program::Words words("ullage-vqgan-clip", line);
  return parse_options(words.argc(), words.argv());
}

Options taken(const std::string& line) {
  const auto parsed = parse(line);
  if (const auto* answer = std::get_if<program::Answer>(&parsed)) {
    ADD_FAILURE() << line << ": " << answer->text;
    return {};
  }
  return std::get<Options>(parsed);
}

TEST(VqganClipOptions, AreRefusedInTheseWords) { program::expect_refused("vqgan_clip/option_errors.txt", 40, parse); }

TEST(VqganClipOptions, HelpIsAsStated) { program::expect_help("vqgan_clip/help.txt", parse); }

TEST(VqganClipOptions, WhatIsAllowedIsNotedByItsWords) {
  EXPECT_EQ(taken("-p a").allowed_text(), "");
  EXPECT_EQ(taken("-p a --allow code-rows").allowed_text(), "--allow code-rows");
  EXPECT_EQ(taken("-p a --allow attention-rows cut-chunks cut-chunks").allowed_text(),
            "--allow cut-chunks attention-rows");
}

TEST(VqganClipOptions, HaveThePublishedDefaults) {
  const Options o = taken("-p a~cat");
  EXPECT_EQ(o.story, (std::vector<Phrase>{{{"a cat"}}}));
  EXPECT_EQ(o.iterations, 500);
  EXPECT_EQ(o.save_every, 50);
  EXPECT_EQ(o.size, (PictureSize{256, 256}));
  EXPECT_EQ(o.init_noise, InitNoise::None);
  EXPECT_EQ(o.init_weight, 0);
  EXPECT_EQ(o.clip, "ViT-B/32");
  EXPECT_EQ(o.config, "checkpoints/vqgan_imagenet_f16_16384.yaml");
  EXPECT_EQ(o.checkpoint, "checkpoints/vqgan_imagenet_f16_16384.ckpt");
  EXPECT_EQ(o.learning_rate, 0.1);
  EXPECT_EQ(o.cut_method, CutMethod::Latest);
  EXPECT_EQ(o.cuts, 32);
  EXPECT_EQ(o.cut_power, 1);
  EXPECT_EQ(o.augments, (std::vector<Augment>{Augment::Af, Augment::Pe, Augment::Ji, Augment::Er}));
  EXPECT_EQ(o.optimizer, OptimizerKind::Adam);
  EXPECT_EQ(o.out, "output.png");
  EXPECT_EQ(o.zoom_save_every, 10);
  EXPECT_EQ(o.zoom_scale, 0.99);
  EXPECT_FALSE(o.seed);
}

TEST(VqganClipOptions, MayBeWrittenAsThePublishedProgramHasThem) {
  const Options o = taken(
      "-p a~cat|snow:2^rain -ip b.png:0.5 -i 300 -se 25 -s 512 384 -ii c.png -iw 0.5 -m ViT-B/16 -conf v.yaml -ckpt "
      "v.ckpt "
      "-nps 3 4 -npw 1 -0.5 -lr 0.2 -cutm nrupdated -cuts 8 -cutp 0.9 -sd 0 -opt RMSprop -o d.png -zvid -zs 5 -zse 2 "
      "-zsc 1.02 -zsx -3 -zsy 4 -cpe 100 -vl 5 -ofps 60 -ifps 30 -d -aug Ji Sh -cd cpu");
  EXPECT_EQ(o.story, (std::vector<Phrase>{{{"a cat"}, {"snow", 2}}, {{"rain"}}}));
  EXPECT_EQ(o.image_prompts, (Phrase{{"b.png", .5}}));
  EXPECT_EQ(o.noise_prompts, (std::vector<NoisePrompt>{{3, 1}, {4, -.5}}));
  EXPECT_EQ(o.iterations, 300);
  EXPECT_EQ(o.save_every, 25);
  EXPECT_EQ(o.size, (PictureSize{512, 384}));
  EXPECT_EQ(o.init_image, "c.png");
  EXPECT_EQ(o.init_weight, .5);
  EXPECT_EQ(o.clip, "ViT-B/16");
  EXPECT_EQ(o.config, "v.yaml");
  EXPECT_EQ(o.checkpoint, "v.ckpt");
  EXPECT_EQ(o.learning_rate, .2);
  EXPECT_EQ(o.cut_method, CutMethod::NrUpdated);
  EXPECT_EQ(o.cuts, 8);
  EXPECT_EQ(o.cut_power, .9);
  EXPECT_EQ(o.seed, 0u);
  EXPECT_EQ(o.optimizer, OptimizerKind::RmsProp);
  EXPECT_EQ(o.out, "d.png");
  EXPECT_TRUE(o.zoom_video);
  EXPECT_EQ(o.zoom_start, 5);
  EXPECT_EQ(o.zoom_save_every, 2);
  EXPECT_EQ(o.zoom_scale, 1.02);
  EXPECT_EQ(o.zoom_shift_x, -3);
  EXPECT_EQ(o.zoom_shift_y, 4);
  EXPECT_EQ(o.change_prompt_every, 100);
  EXPECT_EQ(o.augments, (std::vector<Augment>{Augment::Ji, Augment::Sh}));
}

TEST(VqganClipOptions, MayBeWrittenInFull) {
  const Options o = taken(
      "--prompts=a --size 64x48 --num_cuts 4 -init_noise pixels --vqgan_config a.yaml --vqgan_checkpoint a.ckpt "
      "--clip_model b.pt --output e.png --change_prompt_every=3 --vocabulary v.gz --threads 2 --quiet -vid");
  EXPECT_EQ(o.size, (PictureSize{64, 48}));
  EXPECT_EQ(o.cuts, 4);
  EXPECT_EQ(o.init_noise, InitNoise::Pixels);
  EXPECT_EQ(o.config, "a.yaml");
  EXPECT_EQ(o.checkpoint, "a.ckpt");
  EXPECT_EQ(o.clip, "b.pt");
  EXPECT_EQ(o.out, "e.png");
  EXPECT_EQ(o.vocabulary, "v.gz");
  EXPECT_EQ(o.threads, 2);
  EXPECT_TRUE(o.quiet);
  EXPECT_TRUE(o.video);
}

}  // namespace
}  // namespace ullage::vqgan_clip
