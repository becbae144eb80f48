// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/options.h"

#include "vqgan_clip/option_list.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

constexpr std::int64_t kMost = 1'000'000'000;

template <class T>
using Names = std::vector<std::pair<std::string_view, T>>;

const Names<InitNoise> kInitNoises = {{"pixels", InitNoise::Pixels}, {"gradient", InitNoise::Gradient}};
const Names<CutMethod> kCutMethods = {{"latest", CutMethod::Latest},
                                      {"original", CutMethod::Original},
                                      {"updated", CutMethod::Updated},
                                      {"nrupdated", CutMethod::NrUpdated},
                                      {"updatedpooling", CutMethod::UpdatedPooling}};
const Names<OptimizerKind> kOptimizers = {{"Adam", OptimizerKind::Adam},         {"AdamW", OptimizerKind::AdamW},
                                          {"Adagrad", OptimizerKind::Adagrad},   {"Adamax", OptimizerKind::Adamax},
                                          {"DiffGrad", OptimizerKind::DiffGrad}, {"AdamP", OptimizerKind::AdamP},
                                          {"RAdam", OptimizerKind::RAdam},       {"RMSprop", OptimizerKind::RmsProp}};
const Names<Augment> kAugments = {{"Ji", Augment::Ji}, {"Sh", Augment::Sh}, {"Gn", Augment::Gn}, {"Pe", Augment::Pe},
                                  {"Ro", Augment::Ro}, {"Af", Augment::Af}, {"Et", Augment::Et}, {"Ts", Augment::Ts},
                                  {"Cr", Augment::Cr}, {"Er", Augment::Er}, {"Re", Augment::Re}};

const Names<Lever> kLevers = {
    {"cut-chunks", Lever::CutChunks}, {"code-rows", Lever::CodeRows}, {"attention-rows", Lever::AttentionRows}};

// Looks the word up. Returns an error message if it is none of the names.
template <class T>
std::string take_name(const std::string& option, const std::string& word, const Names<T>& names, T& value) {
  std::string allowed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].first == word) {
      value = names[i].second;
      return "";
    }
    allowed += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + std::string(names[i].first);
  }
  return option + " " + word + " is unknown; known are " + allowed;
}

std::string take_prompts(const OptionWords& w, Options& o) {
  if (!w.prompts.empty()) {
    auto story = parse_story(w.prompts);
    if (!story) return story.error().text();
    o.story = std::move(*story);
  }
  if (!w.image_prompts.empty()) {
    auto images = parse_image_prompts(w.image_prompts);
    if (!images) return images.error().text();
    o.image_prompts = std::move(*images);
  }
  if (w.noise_seeds.size() != w.noise_weights.size()) {
    return std::to_string(w.noise_seeds.size()) + " --noise-prompt-seeds and " +
           std::to_string(w.noise_weights.size()) + " --noise-prompt-weights: give as many of one as of the other";
  }
  for (std::size_t i = 0; i < w.noise_seeds.size(); ++i) {
    if (!std::isfinite(w.noise_weights[i])) return "--noise-prompt-weights: give finite numbers";
    o.noise_prompts.push_back({w.noise_seeds[i], w.noise_weights[i]});
  }
  if (o.story.empty() && o.image_prompts.empty() && o.noise_prompts.empty()) {
    return "no prompt: say what the picture is to show, as in --prompts \"a lighthouse in a storm\"; see --help";
  }
  if (o.story.size() > 1 && o.change_prompt_every == 0) {
    return "--prompts has " + std::to_string(o.story.size()) +
           " phrases: give --change-prompt-every too, the iterations of each, or write | for ^ to use them at once";
  }
  return "";
}

// Parses the words into `o`. Returns what is wrong, or "".
std::string take_words(const CLI::App& app, const OptionWords& w, Options& o) {
  if (auto wrong = take_prompts(w, o); !wrong.empty()) return wrong;
  const auto size = parse_size(w.size);
  if (!size) return size.error().text();
  o.size = *size;
  if (!w.init_noise.empty()) {
    if (auto wrong = take_name("--init-noise", w.init_noise, kInitNoises, o.init_noise); !wrong.empty()) return wrong;
  }
  if (auto wrong = take_name("--cut-method", w.cut_method, kCutMethods, o.cut_method); !wrong.empty()) return wrong;
  if (auto wrong = take_name("--optimiser", w.optimizer, kOptimizers, o.optimizer); !wrong.empty()) return wrong;
  const auto precision = program::precision_named(w.precision);
  if (!precision) return program::wrong_precision(w.precision);
  o.precision = *precision;
  o.augments.clear();
  for (const std::string& word : w.augments) {
    if (auto wrong = take_name("--augments", word, kAugments, o.augments.emplace_back()); !wrong.empty()) return wrong;
  }
  for (const std::string& word : w.allowed) {
    if (auto wrong = take_name("--allow", word, kLevers, o.allowed.emplace_back()); !wrong.empty()) return wrong;
  }
  if (app.count("--seed") > 0) {
    if (w.seed < 0) {
      return "--seed " + std::to_string(w.seed) + " is out of range: it must be from 0 to " + std::to_string(INT64_MAX);
    }
    o.seed = static_cast<std::uint64_t>(w.seed);
  }
  return "";
}

struct FloatBound {
  const char* name;
  double value, least;
  bool itself;  // `least` itself is allowed
};

std::string first_wrong_number(const CLI::App& app, const Options& o) {
  const program::Bound bounds[] = {{"--iterations", o.iterations, 0, kMost},
                                   {"--save-every", o.save_every, 1, kMost},
                                   {"--num-cuts", o.cuts, 1, 4096},
                                   {"--change-prompt-every", o.change_prompt_every, 0, kMost},
                                   {"--zoom-start", o.zoom_start, 0, kMost},
                                   {"--zoom-save-every", o.zoom_save_every, 1, kMost},
                                   {"--zoom-shift-x", o.zoom_shift_x, -65536, 65536},
                                   {"--zoom-shift-y", o.zoom_shift_y, -65536, 65536},
                                   {"--threads", app.count("--threads") > 0 ? o.threads : 1, 1, 1024}};
  if (std::string wrong = program::first_outside(bounds); !wrong.empty()) return wrong;
  const FloatBound float_bounds[] = {{"--init-weight", o.init_weight, 0, true},
                                     {"--learning-rate", o.learning_rate, 0, false},
                                     {"--cut-power", o.cut_power, 0, true},
                                     {"--zoom-scale", o.zoom_scale, 0, false}};
  for (const FloatBound& b : float_bounds) {
    if (std::isfinite(b.value) && (b.value > b.least || (b.itself && b.value == b.least))) continue;
    std::ostringstream text;
    text << b.name << " " << b.value << " is out of range: it must be " << (b.itself ? "at least " : "above ")
         << b.least;
    return text.str();
  }
  return "";
}

std::string first_contradiction(const CLI::App& app, const OptionWords& w, const Options& o) {
  if (!o.init_image.empty() && o.init_noise != InitNoise::None) return "give --init-image or --init-noise, not both";
  if (o.in_double && o.precision != program::Precision::Fp32) return "give --double or --precision, not both";
  if (o.video && o.zoom_video) return "give --video or --zoom-video, not both";
  if (app.count("--augments") > 0 && o.cut_method != CutMethod::Latest && o.cut_method != CutMethod::NrUpdated) {
    return "--augments cannot be given with --cut-method " + w.cut_method + ": latest and nrupdated use them";
  }
  std::vector<std::string> pictures = {o.init_image};
  for (const Prompt& prompt : o.image_prompts) pictures.push_back(prompt.text);
  for (const std::string& file : pictures) {
    if (file.starts_with("http:") || file.starts_with("https:")) return file + ": fetch it first and name the file";
  }
  if (w.device != "cpu") return "--cuda-device " + w.device + " is not possible: give cpu";
  if (!w.style_folder.empty()) return "--video-style-dir is not possible: run with --init-image for each frame";
  const std::pair<const char*, const std::string&> files[] = {
      {"--config", o.config}, {"--checkpoint", o.checkpoint}, {"--clip", o.clip}, {"--out", o.out}};
  for (const auto& [name, file] : files) {
    if (file.empty()) return std::string(name) + " is empty: name a file";
  }
  return "";
}

}  // namespace

bool Options::allows(Lever lever) const { return std::find(allowed.begin(), allowed.end(), lever) != allowed.end(); }

std::string Options::allowed_text() const {
  std::string text;
  for (const auto& [word, lever] : kLevers) {
    if (allows(lever)) text += " " + std::string(word);
  }
  return text.empty() ? text : "--allow" + text;
}

std::variant<Options, program::Answer> parse_options(int argc, const char* const* argv) {
  Options options;
  OptionWords words;
  CLI::App app(
      "Paints what a text says: changes codes of a VQGAN until CLIP finds that the picture\nfits the prompts.\n"
      "Under `ullage run` it stays within the bytes it is given.",
      "ullage-vqgan-clip");
  app.get_formatter()->column_width(40);
  app.allow_extras();
  app.footer(
      "A prompt is text:weight:stop. Without them weight is 1 and stop is -inf; a text with colons needs\nboth after "
      "it.\n"
      "Text is cleaned as CLIP's is, but wrongly decoded characters are not repaired.\n"
      "Every option may also be written as the published generate.py has it: -ii or --init_image for\n--init-image.");
  add_options(app, options, words);
  std::vector<std::string> given;  // last first: CLI11's vector overload expects reverse order
  for (int i = argc - 1; i > 0; --i) given.push_back(program::long_option(argv[i], short_options()));
  if (auto answer = program::answer_to(app, [&] { app.parse(given); })) return *answer;
  std::string wrong = first_wrong_number(app, options);
  if (wrong.empty()) wrong = take_words(app, words, options);
  if (wrong.empty()) wrong = first_contradiction(app, words, options);
  if (!wrong.empty()) return program::wrong_use(app, wrong);
  return options;
}

}  // namespace ullage::vqgan_clip
