// SPDX-License-Identifier: Apache-2.0
#include "dcgan/training_run.h"

#include "dcgan/batches.h"
#include "dcgan/checkpoint_folder.h"
#include "dcgan/checkpoint_metadata.h"
#include "dcgan/progress.h"
#include "dcgan/rehearsal.h"
#include "dcgan/run_folder.h"
#include "dcgan/sample_grid.h"
#include "dcgan/state.h"
#include "dcgan/trainer.h"
#include "image/image_folder.h"
#include "image/write_png.h"
#include "program/output_files.h"
#include "program/stop_request.h"
#include "torch_program/run_parts.h"
#include "torch_program/run_program.h"
#include "ullage/base/sizes.h"
#include "ullage/runtime/runtime.h"

#include <nlohmann/json.hpp>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>

namespace ullage::dcgan {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// A problem with the pictures is wrong input, not wrong use.
Error as_bad_input(Error error) {
  error.kind = Error::Kind::BadFile;
  return error;
}

// One run from start to end. run() does first what most likely fails by the user's mistake.
class TrainingRun final {
 public:
  TrainingRun(const Options& options, program::Progress& progress)
      : options_(options), progress_(progress), folder_(options.out), checkpoints_(folder_.checkpoints()) {}

  Result<ExitCode> run();

 private:
  Status list_pictures();
  Status start_or_resume();
  Status resume();
  bool finished() const;
  Status train_one_step();
  Status save_sample();
  Status save_checkpoint();
  Status finish(bool interrupted);
  std::uint64_t estimated_last_step() const;
  void show_progress(const Losses& losses);
  void say_new_skips();
  Json run_json(const std::string& outcome, const std::string& sha256) const;

  const Options& options_;
  program::Progress& progress_;
  RunFolder folder_;
  CheckpointFolder checkpoints_;
  program::StopRequest stop_{"\nullage-dcgan: finishing this step, then saving; once more ends at once\n"};
  std::vector<std::string> paths_;
  std::optional<Trainer> trainer_;
  std::optional<LossLog> log_;
  std::optional<Batches> batches_;
  DataPlace start_;
  std::uint64_t step_ = 0;        // steps done, including those before a resume
  std::uint64_t first_step_ = 0;  // steps done before this process
  std::optional<std::uint64_t> checkpoint_step_;
  std::vector<double> step_seconds_;
  std::size_t skips_said_ = 0;
};

Status TrainingRun::list_pictures() {
  auto folder = image::list_image_folder(options_.data);
  if (!folder) return as_bad_input(folder.error());
  for (const auto& image : folder->images) paths_.push_back(image.path);
  if (const std::string note = folder->note(); !note.empty()) progress_.say(note);
  return success();
}

Status TrainingRun::start_or_resume() {
  torch::manual_seed(static_cast<std::uint64_t>(options_.seed));
  trainer_.emplace(network_shape(options_), adam_settings(options_), samples_of(options_.batch),
                   step_settings(options_));
  torch_program::note(options_.precision);
  if (const auto differ = trainer_->differences(); !differ.empty()) {
    runtime::changes_results("--micro-batch " + std::to_string(options_.micro_batch), "different");
    progress_.say(std::to_string(differ.size()) + " layers differ in micro-batches of " +
                  std::to_string(options_.micro_batch) + ", from " + differ.front().layer + " to " +
                  differ.back().layer + " (" + differ.front().kind + "): " + differ.front().what);
  }
  if (const std::string note = program::advice(options_.precision); !note.empty()) progress_.say(note);
  checkpoints_.remove_partial();
  if (options_.resume) {
    ULLAGE_TRY(resume());
  }
  ULLAGE_TRY_VALUE(auto log, LossLog::open(folder_.losses(), step_));
  log_.emplace(std::move(log));
  return success();
}

Status TrainingRun::resume() {
  ULLAGE_TRY_VALUE(const auto file, checkpoints_.open_newest());
  const auto bad = [&](const std::string& what) { return Error{Error::Kind::BadFile, what, file.path()}; };
  const auto place = read_place(file.metadata());
  if (!place) return bad("__metadata__ has no place in the data: not a checkpoint of this program");
  const std::string other_options = differing_options(file.metadata(), options_);
  if (Status status = restore_state(*trainer_, file); !status) {
    Error error = status.error();
    if (!other_options.empty()) error.message = other_options + "; " + error.message;
    return error;
  }
  if (!other_options.empty()) return bad(other_options + "; give the same options");
  const std::string other_pictures = differing_pictures(file.metadata(), options_, paths_);
  if (!other_pictures.empty()) return bad(other_pictures);
  step_ = first_step_ = place->step;
  start_ = place->data;
  if (start_.index >= paths_.size())
    return bad("its place in the data lies past the " + std::to_string(paths_.size()) + " pictures");
  checkpoint_step_ = step_;
  progress_.say("resuming after step " + std::to_string(step_) + " from " + file.path());
  return success();
}

bool TrainingRun::finished() const {
  if (options_.steps > 0) return step_ >= static_cast<std::uint64_t>(options_.steps);
  const std::uint64_t epoch = batches_ ? batches_->feed().place().epoch : start_.epoch;
  return epoch >= static_cast<std::uint64_t>(options_.epochs);
}

void TrainingRun::say_new_skips() {
  const auto& skipped = batches_->feed().skipped();
  for (; skips_said_ < skipped.size(); ++skips_said_) progress_.say("skipped: " + skipped[skips_said_].why);
}

Status TrainingRun::train_one_step() {
  const auto start = Clock::now();
  auto batch = batches_->next(options_.batch);
  say_new_skips();
  if (!batch) return batch.error();
  if (batch->size(0) == 0) return success();
  const Losses losses = trainer_->step(std::move(*batch));
  ++step_;
  ULLAGE_TRY(log_->append(step_, losses));
  if (const Status& said = trainer_->scaler_said(); !said) progress_.say(said.error().message);
  runtime::mark_step();
  step_seconds_.push_back(seconds_since(start));
  show_progress(losses);

  const auto due = [this](std::int64_t every) { return every > 0 && step_ % static_cast<std::uint64_t>(every) == 0; };
  if (due(options_.sample_every)) {
    ULLAGE_TRY(save_sample());
  }
  if (due(options_.checkpoint_every)) return save_checkpoint();
  return success();
}

std::uint64_t TrainingRun::estimated_last_step() const {
  if (options_.steps > 0) return static_cast<std::uint64_t>(options_.steps);
  if (finished()) return step_;
  const auto batch = static_cast<std::uint64_t>(options_.batch);
  const auto batches = [batch](std::uint64_t pictures) { return (pictures + batch - 1) / batch; };
  const std::uint64_t epochs_after = static_cast<std::uint64_t>(options_.epochs) - batches_->feed().place().epoch - 1;
  return step_ + batches(batches_->feed().left_in_epoch()) + epochs_after * batches(paths_.size());
}

void TrainingRun::show_progress(const Losses& losses) {
  ProgressState state{step_, estimated_last_step(), losses, torch_program::pace({})};
  const std::size_t recent = std::min<std::size_t>(step_seconds_.size(), 20);
  double sum = 0;
  for (std::size_t i = step_seconds_.size() - recent; i < step_seconds_.size(); ++i) sum += step_seconds_[i];
  state.pace.left = Seconds{sum / static_cast<double>(recent) * static_cast<double>(state.last_step - step_)};
  progress_.show(progress_line(state), state.step >= state.last_step);
}

Status TrainingRun::save_sample() {
  const Grid grid = sample_grid(*trainer_, options_);
  return image::write_png(folder_.sample(step_), grid.width, grid.height, grid.rgb);
}

Status TrainingRun::save_checkpoint() {
  if (checkpoint_step_ == step_) return success();
  const runtime::Phase phase("checkpoint");
  const program::Metadata metadata = checkpoint_metadata({step_, batches_->feed().place()}, options_, paths_);
  const auto tensors = state_of(*trainer_);
  ULLAGE_TRY(checkpoints_.write(step_, to_write(tensors), metadata));
  checkpoint_step_ = step_;
  return success();
}

Json TrainingRun::run_json(const std::string& outcome, const std::string& sha256) const {
  Json skipped = Json::array();
  for (const SkippedPicture& picture : batches_->feed().skipped())
    skipped.push_back({{"path", picture.path}, {"why", picture.why}});
  const DataPlace place = batches_->feed().place();
  return {{"format", "ullage-dcgan-run"},
          {"version", 1},
          {"outcome", outcome},
          {"options", Json::parse(options_as_json(options_))},
          {"torch", TORCH_VERSION},
          {"threads", torch::get_num_threads()},
          {"parameters",
           {{"generator", parameter_count(*trainer_->netG)}, {"discriminator", parameter_count(*trainer_->netD)}}},
          {"pictures", paths_.size()},
          {"skipped", skipped},
          {"steps", step_},
          {"steps_before_resume", first_step_},
          {"epoch", place.epoch},
          {"index", place.index},
          {"step_seconds", step_seconds_},  // of this process
          {"sample", folder_.sample(step_)},
          {"checkpoint", checkpoints_.file_of(step_)},
          {"state_sha256", sha256}};
}

Status TrainingRun::finish(bool interrupted) {
  ULLAGE_TRY(save_checkpoint());
  ULLAGE_TRY(save_sample());
  const std::string sha256 = state_sha256(*trainer_);
  runtime::report_state(sha256);
  const Json json = run_json(interrupted ? "interrupted" : "done", sha256);
  ULLAGE_TRY(program::write_whole_file(folder_.run_json(), json.dump(1) + "\n"));
  progress_.say((interrupted ? "stopped after step " : "done after step ") + std::to_string(step_) +
                ": sample picture " + folder_.sample(step_) + ", losses " + folder_.losses());
  if (interrupted) progress_.say("to go on: the same command with --resume");
  return success();
}

Result<ExitCode> TrainingRun::run() {
  ULLAGE_TRY(list_pictures());
  ULLAGE_TRY(folder_.prepare(options_.resume));
  torch_program::set_threads(options_.threads);
  ULLAGE_TRY(start_or_resume());
  batches_.emplace(options_, paths_, load_from_file(options_), start_);
  if (finished()) progress_.say("nothing left to do: " + std::to_string(step_) + " steps are done");
  bool interrupted = false;
  while (!finished() && !interrupted) {
    ULLAGE_TRY(train_one_step());
    interrupted = stop_.asked() && step_ > first_step_;  // a process always makes at least one step
  }
  ULLAGE_TRY(finish(interrupted));
  return interrupted ? ExitCode::Interrupted : ExitCode::Done;
}

}  // namespace

ExitCode run_dcgan(const Options& options, std::ostream& out, bool terminal) {
  const torch_program::ProgramWords words{
      "ullage-dcgan", "a smaller --batch (or --ngf, --ndf, --max-channels, --blocks separable) needs less"};
  return torch_program::run_program(
      words, out, terminal, [&](program::Progress& progress) { return rehearse_if_asked(options, progress); },
      [&](program::Progress& progress) { return TrainingRun(options, progress).run(); });
}

}  // namespace ullage::dcgan
