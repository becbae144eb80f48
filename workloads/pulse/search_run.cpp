// SPDX-License-Identifier: Apache-2.0
#include "pulse/search_run.h"

#include "program/progress.h"
#include "program/sha256.h"
#include "program/stop_request.h"
#include "pulse/best_faces.h"
#include "pulse/face_files.h"
#include "pulse/gaussian_fit.h"
#include "pulse/pictures.h"
#include "torch_program/pixels.h"
#include "pulse/progress_line.h"
#include "pulse/recording.h"
#include "pulse/rehearsal.h"
#include "pulse/search.h"
#include "torch_program/tensor_file.h"
#include "pulse/weight_files.h"
#include "torch_program/run_parts.h"
#include "torch_program/run_program.h"
#include "ullage/runtime/runtime.h"

#include <ATen/ATen.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <span>
#include <utility>

namespace ullage::pulse {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kFitChunk = 2048;  // latents of 512 numbers: 4 MiB as float32

// One run of the program. run() begins with the work that fails if the user made a mistake, such as reading the files.
class SearchRun final {
 public:
  SearchRun(const Options& options, program::Progress& progress)
      : options_(options), progress_(progress), type_(options.in_double ? at::kDouble : at::kFloat) {}

  Result<ExitCode> run();

 private:
  Status load_networks();
  Status compute_fit();
  std::span<const Job> next_batch(std::size_t from) const;
  Result<at::Tensor> wanted_pictures(std::span<const Job> jobs) const;
  Result<Start> start_of(std::span<const Job> jobs, std::size_t first) const;
  Status search(std::span<const Job> jobs, std::size_t first);
  void show(std::span<const Job> jobs, const Evaluation& seen, std::int64_t step, Clock::time_point start);
  void say(const std::string& line) const {
    if (!options_.quiet) progress_.say(line);
  }

  const Options& options_;
  program::Progress& progress_;
  const at::ScalarType type_;
  program::StopRequest stop_{"\nullage-pulse: finishing this step; once more ends at once\n"};
  WeightFiles files_;
  FaceFiles faces_{options_, progress_};
  std::vector<Job> jobs_;
  std::optional<Synthesis> synthesis_;
  std::optional<GaussianFit> fit_;
  std::uint64_t seed_ = 0;
  program::Sha256 digest_;  // of the results of all searches so far
};

Status SearchRun::load_networks() {
  const SynthesisShape shape = *synthesis_shape(*files_.synthesis);  // open_weight_files() has checked it
  synthesis_.emplace(shape, torch_program::Source(std::exchange(files_.synthesis, {}), type_, "synthesis"));
  if (files_.fit) {
    const torch_program::Source source(std::exchange(files_.fit, {}), type_, "gaussian_fit");
    fit_ = GaussianFit{source.take("mean"), source.take("std")};
    return success();
  }
  return compute_fit();
}

Status SearchRun::compute_fit() {
  say(options_.gaussian_fit + ": not there; computing it from " + files_.mapping->file());
  const Mapping mapping(torch_program::Source(std::exchange(files_.mapping, {}), at::kFloat, "mapping"));
  const runtime::Phase phase("gaussian fit");
  auto fit = fit_gaussian(mapping, options_.fit_samples, kFitChunk, [this](std::int64_t done) {
    const std::string line =
        "gaussian fit  " + std::to_string(done) + "/" + std::to_string(options_.fit_samples) + " samples";
    if (!options_.quiet) progress_.show(line, done == options_.fit_samples);
    return !stop_.asked();
  });
  if (!fit) return success();  // stopped by the user: no search begins
  const std::string path = options_.out + "/gaussian_fit.safetensors";
  ULLAGE_TRY(torch_program::write_tensors(path, {{"mean", fit->mean}, {"std", fit->deviation}}));
  say("next time: --gaussian-fit " + path);
  fit_ = GaussianFit{fit->mean.to(type_), fit->deviation.to(type_)};
  return success();
}

// Returns the searches from `from` on that share a batch. They stand one after the other in the list, their pictures
// have the same side in pixels, and they are at most as many as --batch-size.
std::span<const Job> SearchRun::next_batch(std::size_t from) const {
  std::size_t count = 1;
  while (count < static_cast<std::size_t>(options_.batch_size) && from + count < jobs_.size() &&
         jobs_[from + count].side == jobs_[from].side) {
    ++count;
  }
  return std::span(jobs_).subspan(from, count);
}

Result<at::Tensor> SearchRun::wanted_pictures(std::span<const Job> jobs) const {
  std::vector<at::Tensor> pictures;
  for (const Job& job : jobs) {
    ULLAGE_TRY_VALUE(const auto picture, load_picture(job.picture, synthesis_->resolution(), torch_program::charge));
    pictures.push_back(torch_program::to_tensor(picture, type_));
  }
  return at::cat(pictures);
}

Result<Start> SearchRun::start_of(std::span<const Job> jobs, std::size_t first) const {
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < jobs.size(); ++i) seeds.push_back(seed_ + first + i);
  auto start = options_.start.empty()
                   ? Result<Start>(draw_start(options_, synthesis_->layers(), seeds))
                   : read_start(options_.start, options_, synthesis_->layers(), static_cast<std::int64_t>(jobs.size()));
  if (!start) return start;
  start->latents = start->latents.to(type_);
  for (at::Tensor& noise : start->noises) noise = noise.to(type_);
  return start;
}

void SearchRun::show(std::span<const Job> jobs, const Evaluation& seen, std::int64_t step, Clock::time_point start) {
  if (options_.quiet) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double left = seconds / static_cast<double>(step) * static_cast<double>(options_.steps - step);
  SearchState state{jobs.front().name,
                    static_cast<std::int64_t>(jobs.size()) - 1,
                    step,
                    options_.steps,
                    {},
                    0,
                    torch_program::pace(Seconds{left})};
  for (const auto& [term, figure] : seen.loss.terms) state.terms[term] = figure.mean().item<double>();
  state.total = seen.loss.total.mean().item<double>();
  progress_.show(progress_line(state), step == options_.steps);
}

Status SearchRun::search(std::span<const Job> jobs, std::size_t first) {
  ULLAGE_TRY_VALUE(const auto wanted, wanted_pictures(jobs));
  ULLAGE_TRY_VALUE(auto begin, start_of(jobs, first));
  ULLAGE_TRY(faces_.prepare_intermediates(jobs));
  const double eps = options_.in_double ? options_.eps : static_cast<float>(options_.eps);
  BestFaces best(static_cast<std::int64_t>(jobs.size()), eps);
  Search search(*synthesis_, *fit_, wanted, std::move(begin), options_);
  Recording recording;
  Evaluation seen;
  const auto start = Clock::now();
  for (std::int64_t step = 0; step < options_.steps && !(stop_.asked() && step > 0); ++step) {
    seen = {};  // frees the last step's picture before the next is made
    const double rate = search.learning_rate();
    seen = search.step();
    best.see(seen, step);
    if (!options_.dump.empty()) recording.see(seen, search, rate);
    runtime::mark_step();
    show(jobs, seen, step + 1, start);
    if (const Status& said = search.scaler_said(); !said) progress_.say(said.error().message);
    ULLAGE_TRY(faces_.save_intermediates(jobs, best, step));
  }
  if (!options_.dump.empty()) {
    ULLAGE_TRY(recording.write(options_.dump, seen, search, best));
  }
  torch_program::add(digest_, search.latents());
  for (const std::size_t i : search.trained_noises()) torch_program::add(digest_, search.noises()[i]);
  torch_program::add(digest_, seen.image);
  return faces_.save(jobs, seen, best);
}

Result<ExitCode> SearchRun::run() {
  ULLAGE_TRY_VALUE(files_, open_weight_files(options_));
  const std::int64_t resolution = synthesis_shape(*files_.synthesis)->resolution;
  ULLAGE_TRY_VALUE(jobs_, list_jobs(options_.input, options_.duplicates, resolution, torch_program::charge));
  ULLAGE_TRY(faces_.prepare());
  torch_program::set_threads(options_.threads);
  torch_program::note(options_.precision);
  if (const std::string note = program::advice(options_.precision); !note.empty()) say(note);
  ULLAGE_TRY(load_networks());
  seed_ = options_.seed ? *options_.seed : torch_program::seed_by_chance();
  if (!options_.seed && options_.start.empty()) say("the same again: --seed " + std::to_string(seed_));
  for (std::size_t done = 0; done < jobs_.size() && !stop_.asked();) {
    const auto batch = next_batch(done);
    ULLAGE_TRY(search(batch, done));
    done += batch.size();
  }
  if (stop_.asked()) return ExitCode::Interrupted;
  runtime::report_state(digest_.finish());
  return faces_.missed() == 0 ? ExitCode::Done : ExitCode::Failed;
}

}  // namespace

ExitCode run_pulse(const Options& options, std::ostream& out, bool terminal) {
  return torch_program::run_program(
      {"ullage-pulse", "a smaller --batch-size needs less"}, out, terminal,
      [&](program::Progress& progress) { return rehearse_if_asked(options, progress); },
      [&](program::Progress& progress) { return SearchRun(options, progress).run(); });
}

}  // namespace ullage::pulse
