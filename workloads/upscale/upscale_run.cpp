// SPDX-License-Identifier: Apache-2.0
#include "upscale/upscale_run.h"

#include "image/decode.h"
#include "program/progress.h"
#include "program/sha256.h"
#include "program/stop_request.h"
#include "torch_program/run_parts.h"
#include "torch_program/run_program.h"
#include "torch_program/tensor_file.h"
#include "ullage/base/sizes.h"
#include "ullage/runtime/runtime.h"
#include "upscale/jobs.h"
#include "upscale/output_rows.h"
#include "upscale/picture_upscaler.h"
#include "upscale/rehearsal.h"
#include "upscale/tile.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <ostream>
#include <vector>

namespace ullage::upscale {
namespace {

using at::Tensor;
using Clock = std::chrono::steady_clock;

// The part of the stated bytes that libraries take in their first steps, or that always stays free (docs/words.md:
// warm-up, margin).
constexpr Bytes kAside = 56_MiB;

// "photo.png  tile 12/43  1.85 GiB of 2.00 GiB  3 min 20 s left"
std::string progress_line(const std::string& name, std::int64_t done, std::int64_t all, const program::Pace& pace) {
  return name + "  tile " + std::to_string(done) + "/" + std::to_string(all) + to_string(pace);
}

// One run of the program. run() does first what most likely fails by the user's mistake.
class UpscaleRun final {
 public:
  UpscaleRun(const Options& options, program::Progress& progress)
      : options_(options), progress_(progress), type_(options.in_double ? at::kDouble : at::kFloat) {}

  Result<ExitCode> run();

 private:
  std::int64_t rows_of_tile(const PictureFacts& facts) const;
  Status upscale(const Job& job);
  Status write(const Tensor& rows, const Tensor& alpha, image::PngColour colour, image::PngRows& png);
  void show(const Job& job, std::int64_t done, std::int64_t all, Clock::time_point start) const;
  void say(const std::string& line) const {
    if (!options_.quiet) progress_.say(line);
  }

  const Options& options_;
  program::Progress& progress_;
  const at::ScalarType type_;
  program::StopRequest stop_{"\nullage-upscale: finishing this tile; once more ends at once\n"};
  std::optional<Network> network_;
  Bytes room_;  // that a picture may take; zero: no bytes are stated
  program::Sha256 digest_;
  std::map<std::string, std::vector<Tensor>> dumped_;  // rows
};

std::int64_t UpscaleRun::rows_of_tile(const PictureFacts& facts) const {
  if (options_.tile > 0) return options_.tile;
  if (room_ == Bytes{}) return kUsualRows;
  const NetworkShape& shape = network_->shape;
  return choose_rows(shape, folded(facts.size.width, shape.fold), streams_of(facts), Bytes{at::elementSize(type_)},
                     room_);
}

Status UpscaleRun::write(const Tensor& rows, const Tensor& alpha, image::PngColour colour, image::PngRows& png) {
  const std::int64_t width = png.width();
  const auto cut = [&](const Tensor& one) { return one.defined() ? one.narrow(3, 0, width) : one; };
  const Tensor bytes = bytes_of_rows(cut(rows), cut(alpha), colour);
  const std::int64_t height =
      std::min<std::int64_t>(bytes.size(0), png.rows_left());  // the rest is below an odd height
  torch_program::add(digest_, bytes);
  if (!options_.dump.empty()) {
    dumped_["picture"].push_back(cut(rows).narrow(2, 0, height).clone());
    if (alpha.defined()) dumped_["alpha"].push_back(cut(alpha).narrow(2, 0, height).clone());
  }
  return png.write({bytes.const_data_ptr<std::uint8_t>(), static_cast<std::size_t>(height * bytes.stride(0))});
}

void UpscaleRun::show(const Job& job, std::int64_t done, std::int64_t all, Clock::time_point start) const {
  if (options_.quiet) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const double left = seconds / static_cast<double>(done) * static_cast<double>(all - done);
  const std::string name = std::filesystem::path(job.picture).filename().string();
  progress_.show(progress_line(name, done, all, torch_program::pace(Seconds{left})), done == all);
}

Status UpscaleRun::upscale(const Job& job) {
  const NetworkShape& shape = network_->shape;
  const auto scale = static_cast<std::uint32_t>(shape.scale());
  const image::PictureSize size = job.facts.size;
  const std::int64_t rows = rows_of_tile(job.facts);
  const std::int64_t tiles = RowStream::tiles(shape, folded(size.height, shape.fold), rows);
  ULLAGE_TRY_VALUE(auto png,
                   image::PngRows::begin(job.out, size.width * scale, size.height * scale, job.facts.colour()));
  const auto start = Clock::now();
  PictureUpscaler upscaler(
      *network_, job.facts, rows,
      {[&](const Tensor& some, const Tensor& alpha) { return write(some, alpha, job.facts.colour(), png); },
       [&](std::int64_t done) {
         runtime::mark_step();
         show(job, done, tiles, start);
         return !stop_.asked();
       }});
  ULLAGE_TRY(image::decode(job.picture, upscaler, torch_program::charge, image::Pixels::Rgba));
  ULLAGE_TRY(upscaler.finish());
  if (png.rows_left() > 0) return success();  // stopped
  ULLAGE_TRY(png.finish());
  say(job.out + ": " + std::to_string(size.width * scale) + " x " + std::to_string(size.height * scale) +
      " pixels, in tiles of " + std::to_string(rows) + " rows");
  return success();
}

Result<ExitCode> UpscaleRun::run() {
  ULLAGE_TRY_VALUE(auto file, open_model(options_.model, options_.scale));
  ULLAGE_TRY_VALUE(const auto jobs, list_jobs(options_, file.shape.scale(), torch_program::charge));
  torch_program::set_threads(options_.threads);
  const at::NoGradGuard no_grad;
  network_.emplace(file, type_);
  file.weights.reset();
  if (const runtime::MemoryStatus memory = runtime::memory_status(); memory.budget > Bytes{}) {
    room_ = std::max(saturating_sub(memory.budget, memory.resident + kAside), Bytes{1});
  }
  for (const Job& job : jobs) {
    ULLAGE_TRY(upscale(job));
    if (stop_.asked()) return ExitCode::Interrupted;
  }
  if (!options_.dump.empty()) {
    std::map<std::string, Tensor> whole;
    for (const auto& [name, rows] : dumped_) whole[name] = at::cat(rows, 2).squeeze(0);
    ULLAGE_TRY(torch_program::write_tensors(options_.dump, whole));
  }
  runtime::report_state(digest_.finish());
  return ExitCode::Done;
}

}  // namespace

ExitCode run_upscale(const Options& options, std::ostream& out, bool terminal) {
  return torch_program::run_program(
      {"ullage-upscale", "a smaller --tile needs less"}, out, terminal,
      [&](program::Progress& progress) { return rehearse_if_asked(options, progress); },
      [&](program::Progress& progress) { return UpscaleRun(options, progress).run(); });
}

}  // namespace ullage::upscale
