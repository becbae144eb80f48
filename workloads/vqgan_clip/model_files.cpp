// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/model_files.h"

#include "vqgan_clip/tokeniser.h"
#include "vqgan_clip/vqgan_file.h"

#include <cstdlib>
#include <string>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

Result<std::vector<std::vector<Tokens>>> tokens_of_story(const Options& options, const ClipShape& clip) {
  std::vector<std::vector<Tokens>> story;
  if (options.story.empty()) return story;
  const auto tokeniser = Tokeniser::open(options.vocabulary);
  if (!tokeniser) {
    Error error = tokeniser.error();
    error.message += "; name CLIP's bpe_simple_vocab_16e6.txt.gz with --vocabulary";
    return error;
  }
  if (tokeniser->vocabulary() != clip.vocabulary) {
    return Error{Error::Kind::BadFile,
                 "a vocabulary of " + std::to_string(tokeniser->vocabulary()) + " tokens; this CLIP has " +
                     std::to_string(clip.vocabulary) + ": --vocabulary and --clip belong together",
                 options.vocabulary};
  }
  for (const Phrase& phrase : options.story) {
    auto& texts = story.emplace_back();
    for (const Prompt& prompt : phrase) {
      auto tokens = tokeniser->tokens(prompt.text, clip.context);
      if (!tokens) return tokens.error();
      texts.push_back(std::move(*tokens));
    }
  }
  return story;
}

}  // namespace

Result<ModelFiles> open_model_files(const Options& options) {
  ModelFiles files;
  auto config = read_model_config(options.config);
  if (!config) return config.error();
  files.config = std::move(*config);
  auto size = used_size(options.size, files.config.token_side());
  if (!size) return size.error();
  files.size = std::move(*size);
  auto vqgan = open_vqgan(options.checkpoint, files.config);
  if (!vqgan) return vqgan.error();
  files.vqgan = std::move(*vqgan);
  const char* home = std::getenv("HOME");
  const auto path = find_clip(options.clip, home == nullptr ? "" : home);
  if (!path) return path.error();
  auto clip = open_clip(*path);
  if (!clip) return clip.error();
  files.clip = std::move(*clip);
  auto story = tokens_of_story(options, files.clip.shape);
  if (!story) return story.error();
  files.story = std::move(*story);
  return files;
}

}  // namespace ullage::vqgan_clip
