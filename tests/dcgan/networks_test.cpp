// SPDX-License-Identifier: Apache-2.0
#include "dcgan/networks.h"

#include "dcgan/state.h"
#include "folders.h"
#include "program/temp_folder.h"

#include <torch/utils.h>

#include <sstream>

namespace ullage::dcgan {
namespace {

struct Counts {
  NetworkShape shape;
  std::int64_t generator, discriminator;
};

TEST(Networks, HaveTheKnownParameterCounts) {
  const Counts cases[] = {{{64}, 3'576'704, 2'765'568},
                          {{128}, 12'786'560, 11'164'416},
                          {{256, 100, 64, 64, 512}, 11'967'360, 11'156'224},
                          {{256, 100, 64, 64, 1024}, 29'565'824, 27'943'680},
                          {{256}, 47'983'488, 44'739'328},
                          {{64, 100, 64, 64, 0, true}, 1'003'392, 192'256},
                          {{256, 100, 64, 64, 0, true}, 6'113'152, 2'868'992}};
  for (const Counts& c : cases) {
    EXPECT_EQ(parameter_count(*Generator(c.shape)), c.generator) << c.shape.image_size;
    EXPECT_EQ(parameter_count(*Discriminator(c.shape)), c.discriminator) << c.shape.image_size;
  }
}

void append_manifest(std::string& text, const std::string& prefix, const torch::nn::Module& network) {
  std::map<std::string, std::string> lines;  // by module: Python's state_dict has parameters and buffers together
  for (const auto& item : network.named_parameters()) lines[item.key()] = to_string(shape_of(item.value()));
  for (const auto& item : network.named_buffers()) lines[item.key()] = to_string(shape_of(item.value()));
  for (const auto& [key, shape] : lines) text += prefix + key + " " + shape + "\n";
}

TEST(Networks, HaveTheKeysAndShapesOfTheManifest) {
  std::string found;
  append_manifest(found, "netG/", *Generator(NetworkShape{}));
  append_manifest(found, "netD/", *Discriminator(NetworkShape{}));
  std::set<std::string> expected_lines, found_lines;
  std::istringstream manifest(test::read_file(tests_folder() / "dcgan/manifest_256.txt"));
  for (std::string line; std::getline(manifest, line);) {
    if (!line.starts_with("#")) expected_lines.insert(line);
  }
  std::istringstream in(found);
  for (std::string line; std::getline(in, line);) found_lines.insert(line);
  EXPECT_EQ(expected_lines.size(), 69u);
  EXPECT_EQ(found_lines, expected_lines);
}

TEST(Networks, MakePicturesAndJudgeThemAtEverySize) {
  const torch::NoGradGuard no_grad;
  for (const std::int64_t side : {16, 32, 64, 128}) {
    const NetworkShape shape{side, 7, 2, 3, 9};
    const torch::Tensor pictures = Generator(shape)->forward(torch::randn({2, 7, 1, 1}));
    EXPECT_EQ(pictures.sizes(), (torch::IntArrayRef{2, 3, side, side}));
    EXPECT_LE(pictures.abs().max().item<float>(), 1);
    const torch::Tensor judged = Discriminator(shape)->forward(pictures);
    EXPECT_EQ(judged.sizes(), torch::IntArrayRef{2});
    EXPECT_TRUE(((judged >= 0) & (judged <= 1)).all().item<bool>());
  }
  EXPECT_THROW(Generator(NetworkShape{48}), ContractError);
  EXPECT_THROW(Generator(NetworkShape{8}), ContractError);
}

TEST(InitWeights, DrawsAsTheExampleDoes) {
  torch::manual_seed(1);
  Generator network(NetworkShape{});
  init_weights(*network);
  for (const auto& item : network->named_parameters()) {
    const torch::Tensor value = item.value().detach();
    const bool convolution = value.dim() == 4;
    const bool bias = item.key().ends_with("bias");
    const double samples = std::sqrt(static_cast<double>(value.numel()));
    EXPECT_NEAR(value.mean().item<double>(), convolution || bias ? 0 : 1, 5 * 0.02 / samples) << item.key();
    EXPECT_NEAR(value.std().item<double>(), bias ? 0 : 0.02, 5 * 0.02 / samples) << item.key();
  }
}

}  // namespace
}  // namespace ullage::dcgan
