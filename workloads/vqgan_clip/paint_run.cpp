// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/paint_run.h"

#include "program/progress.h"
#include "program/sha256.h"
#include "program/stop_request.h"
#include "torch_program/pixels.h"
#include "torch_program/run_parts.h"
#include "torch_program/run_program.h"
#include "ullage/runtime/runtime.h"
#include "vqgan_clip/model_files.h"
#include "vqgan_clip/networks.h"
#include "vqgan_clip/picture_files.h"
#include "vqgan_clip/progress_line.h"
#include "vqgan_clip/recording.h"
#include "vqgan_clip/rehearsal.h"
#include "vqgan_clip/search.h"
#include "vqgan_clip/start_pictures.h"
#include "vqgan_clip/zoom.h"

#include <ATen/Context.h>
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

using at::Tensor;
using Clock = std::chrono::steady_clock;

Zoom zoom_of(const Options& options) { return {options.zoom_scale, options.zoom_shift_x, options.zoom_shift_y}; }

// One run of the program. run() does first what most likely fails by the user's mistake.
class PaintRun final {
 public:
  PaintRun(const Options& options, program::Progress& progress)
      : options_(options), progress_(progress), type_(options.in_double ? at::kDouble : at::kFloat) {}

  Result<ExitCode> run();

 private:
  Status load_pictures();
  Status load();
  Tensor first_tokens() const;
  std::vector<PromptLoss> lasting_prompts() const;
  std::size_t phrase_of(std::int64_t iteration) const;
  std::vector<PromptLoss> prompts_of(std::size_t phrase) const;
  Status paint();
  Status save(Search& search, const Evaluation& seen, std::int64_t iteration);
  Status zoom(Search& search, const Phrase& phrase);
  void show(const Evaluation& seen, std::int64_t iteration, Clock::time_point start) const;
  void say(const std::string& line) const {
    if (!options_.quiet) progress_.say(line);
  }

  const Options& options_;
  program::Progress& progress_;
  const at::ScalarType type_;
  program::StopRequest stop_{"\nullage-vqgan-clip: finishing this iteration; once more ends at once\n"};
  PictureFiles files_{options_};
  const std::uint64_t seed_ = options_.seed ? *options_.seed : torch_program::seed_by_chance();
  std::optional<image::Picture> first_;
  std::vector<image::Picture> image_prompts_;
  PictureSize size_;
  Networks networks_;
  std::optional<Cutouts> cutouts_;
  std::vector<PromptLoss> lasting_;  // prompts of pictures and noise, which last a whole story
  std::int64_t frames_ = 0;          // of the zoom video, so far
};

Status PaintRun::load_pictures() {
  if (options_.init_noise != InitNoise::None) first_ = init_noise(options_.init_noise, options_.size, size_, seed_);
  if (!options_.init_image.empty()) {
    ULLAGE_TRY_VALUE(first_, load_init_image(options_.init_image, size_, torch_program::charge));
  }
  for (const Prompt& prompt : options_.image_prompts) {
    ULLAGE_TRY_VALUE(auto picture, load_image_prompt(prompt.text, size_, torch_program::charge));
    image_prompts_.push_back(std::move(picture));
  }
  return options_.zoom_video ? check_zoom(zoom_of(options_), size_) : success();
}

Status PaintRun::load() {
  ULLAGE_TRY_VALUE(auto files, open_model_files(options_));
  size_ = files.size.size;
  ULLAGE_TRY(load_pictures());
  ULLAGE_TRY(files_.prepare());
  if (!files.size.said.empty()) say(files.size.said);
  torch_program::set_threads(options_.threads);
  networks_ = load_networks(std::move(files), options_, type_);
  cutouts_.emplace(networks_.tower->shape().resolution, options_.cuts, options_.cut_method, options_.cut_power,
                   options_.augments);
  return success();
}

Tensor PaintRun::first_tokens() const {
  const Tensor& codebook = networks_.decoder->codebook();
  if (!first_) {
    return random_tokens(codebook, size_.height / networks_.token_side, size_.width / networks_.token_side);
  }
  return (*networks_.encoder)(torch_program::to_tensor(*first_, type_), codebook);
}

std::vector<PromptLoss> PaintRun::lasting_prompts() const {
  const at::NoGradGuard no_grad;
  std::vector<PromptLoss> prompts;
  for (std::size_t i = 0; i < options_.image_prompts.size(); ++i) {
    const Tensor picture = torch_program::to_tensor(image_prompts_[i], type_);
    const Tensor cuts = cutouts_->apply(picture, cutouts_->draw(picture.size(2), picture.size(3)));
    const Prompt& prompt = options_.image_prompts[i];
    prompts.emplace_back((*networks_.tower)(cuts), prompt.weight, prompt.stop);
  }
  for (const NoisePrompt& prompt : options_.noise_prompts) {
    prompts.push_back(loss_of_noise(prompt, networks_.tower->shape().width, type_));
  }
  return prompts;
}

// A story that has ended begins again.
std::size_t PaintRun::phrase_of(std::int64_t iteration) const {
  if (options_.change_prompt_every == 0 || options_.story.empty()) return 0;
  return static_cast<std::size_t>(iteration / options_.change_prompt_every) % options_.story.size();
}

std::vector<PromptLoss> PaintRun::prompts_of(std::size_t phrase) const {
  std::vector<PromptLoss> prompts;
  if (!options_.story.empty()) {
    for (std::size_t i = 0; i < options_.story[phrase].size(); ++i) {
      const Prompt& prompt = options_.story[phrase][i];
      prompts.emplace_back(networks_.story[phrase][i], prompt.weight, prompt.stop);
    }
  }
  prompts.insert(prompts.end(), lasting_.begin(), lasting_.end());
  return prompts;
}

void PaintRun::show(const Evaluation& seen, std::int64_t iteration, Clock::time_point start) const {
  if (options_.quiet) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double left =
      seconds / static_cast<double>(iteration + 1) * static_cast<double>(options_.iterations - iteration);
  const Tensor losses = seen.losses.to(at::kDouble);
  progress_.show(progress_line(iteration, options_.iterations,
                               {losses.const_data_ptr<double>(), static_cast<std::size_t>(losses.numel())},
                               torch_program::pace(Seconds{left})),
                 iteration == options_.iterations);
}

// Writes the picture of the current z as a frame. The search then continues from that picture, zoomed.
Status PaintRun::zoom(Search& search, const Phrase& phrase) {
  image::Picture picture;
  {
    const at::NoGradGuard no_grad;
    const Tensor frame = (*networks_.decoder)(search.z());
    ULLAGE_TRY(files_.save_frame(frame, phrase, frames_++));
    picture = torch_program::to_picture(frame.select(0, 0));
  }
  if (search.done() <= options_.zoom_start) return success();
  picture = zoomed(picture, zoom_of(options_));
  search.restart((*networks_.encoder)(torch_program::to_tensor(picture, type_), networks_.decoder->codebook()));
  return success();
}

Status PaintRun::save(Search& search, const Evaluation& seen, std::int64_t iteration) {
  const Phrase phrase = options_.story.empty() ? Phrase{} : options_.story[phrase_of(iteration)];
  if (iteration % options_.save_every == 0 || iteration == options_.iterations || stop_.asked()) {
    ULLAGE_TRY(files_.save(seen.picture, phrase));
  }
  if (options_.video) return files_.save_frame(seen.picture, phrase, iteration);
  if (options_.zoom_video && iteration % options_.zoom_save_every == 0) return zoom(search, phrase);
  return success();
}

Status PaintRun::paint() {
  torch_program::note(options_.precision);
  if (!options_.allowed.empty()) runtime::changes_results(options_.allowed_text(), "rounding");
  if (const std::string note = program::advice(options_.precision); !note.empty()) say(note);
  if (!options_.seed) say("the same again: --seed " + std::to_string(seed_));
  at::manual_seed(seed_);
  Search search(*networks_.decoder, *networks_.tower, *cutouts_, first_tokens(), options_);
  lasting_ = lasting_prompts();
  at::manual_seed(seed_);  // so that cutouts do not depend on how the search begins
  Recording recording;
  Evaluation seen;
  const auto start = Clock::now();
  for (std::int64_t i = 0; i <= options_.iterations && !(stop_.asked() && i > 0); ++i) {
    if (i == 0 || phrase_of(i) != phrase_of(i - 1)) search.set_prompts(prompts_of(phrase_of(i)));
    seen = {};  // frees the last picture before the next is made
    seen = search.step(cutouts_->draw(size_.height, size_.width));
    if (!options_.dump.empty()) recording.see(seen, search);
    runtime::mark_step();
    show(seen, i, start);
    if (const Status& said = search.scaler_said(); !said) progress_.say(said.error().message);
    ULLAGE_TRY(save(search, seen, i));
  }
  if (!options_.dump.empty()) {
    ULLAGE_TRY(recording.write(options_.dump));
  }
  program::Sha256 digest;
  torch_program::add(digest, search.z());
  torch_program::add(digest, seen.picture);
  runtime::report_state(digest.finish());
  return success();
}

Result<ExitCode> PaintRun::run() {
  ULLAGE_TRY(load());
  ULLAGE_TRY(paint());
  return stop_.asked() ? ExitCode::Interrupted : ExitCode::Done;
}

}  // namespace

ExitCode run_vqgan_clip(const Options& options, std::ostream& out, bool terminal) {
  return torch_program::run_program(
      {"ullage-vqgan-clip", "a smaller --size needs less"}, out, terminal,
      [&](program::Progress& progress) { return rehearse_if_asked(options, progress); },
      [&](program::Progress& progress) { return PaintRun(options, progress).run(); });
}

}  // namespace ullage::vqgan_clip
