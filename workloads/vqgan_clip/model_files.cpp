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
      ULLAGE_TRY_VALUE(auto tokens, tokeniser->tokens(prompt.text, clip.context));
      texts.push_back(std::move(tokens));
    }
  }
  return story;
}

}  // namespace

Result<ModelFiles> open_model_files(const Options& options) {
  ModelFiles files;
  ULLAGE_TRY_VALUE(files.config, read_model_config(options.config));
  ULLAGE_TRY_VALUE(files.size, used_size(options.size, files.config.token_side()));
  ULLAGE_TRY_VALUE(files.vqgan, open_vqgan(options.checkpoint, files.config));
  const char* home = std::getenv("HOME");
  ULLAGE_TRY_VALUE(const auto path, find_clip(options.clip, home == nullptr ? "" : home));
  ULLAGE_TRY_VALUE(files.clip, open_clip(path));
  ULLAGE_TRY_VALUE(files.story, tokens_of_story(options, files.clip.shape));
  return files;
}

}  // namespace ullage::vqgan_clip
