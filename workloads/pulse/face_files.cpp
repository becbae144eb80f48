// SPDX-License-Identifier: Apache-2.0
#include "pulse/face_files.h"

#include "program/output_files.h"
#include "torch_program/pixels.h"

#include <cstdio>

namespace ullage::pulse {
namespace {

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

Status FaceFiles::prepare() const {
  ULLAGE_TRY(program::make_writable(options_.out));
  return program::make_writable(options_.out + "/LR");
}

Status FaceFiles::prepare_intermediates(std::span<const Job> jobs) const {
  if (!options_.save_intermediate) return success();
  for (const Job& job : jobs) {
    for (const char* folder : {"/HR", "/LR"}) {
      ULLAGE_TRY(program::make_writable(options_.out + "/" + job.name + folder));
    }
  }
  return success();
}

Status FaceFiles::save_intermediates(std::span<const Job> jobs, const BestFaces& best, std::int64_t step) const {
  if (!options_.save_intermediate) return success();
  char number[32];
  std::snprintf(number, sizeof number, "_%02lld.png", static_cast<long long>(step));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string folder = options_.out + "/" + jobs[i].name;
    ULLAGE_TRY(torch_program::write_png(folder + "/HR/" + jobs[i].name + number, best.of(i).image));
    ULLAGE_TRY(torch_program::write_png(folder + "/LR/" + jobs[i].name + number, best.of(i).low));
  }
  return success();
}

Status FaceFiles::write(const Job& job, const at::Tensor& image, const at::Tensor& low) const {
  ULLAGE_TRY(torch_program::write_png(face(job), image));
  return torch_program::write_png(options_.out + "/LR/" + job.name + ".png", low);
}

Status FaceFiles::save(std::span<const Job> jobs, const Evaluation& last, const BestFaces& best) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    const auto row = static_cast<std::int64_t>(i);
    if (best.found(i)) {
      ULLAGE_TRY(write(job, last.image.select(0, row), last.low.select(0, row)));
      if (!options_.quiet) progress_.say(job.name + ": eps " + shown(options_.eps) + " reached, " + face(job));
      continue;
    }
    const BestFace kept = best.of(i);
    const std::string missed = job.name + ": eps " + shown(options_.eps) + " not reached: the least L2 is " +
                               shown(kept.distance) + "; more --steps or a larger --eps may do";
    if (options_.keep_best) {
      ULLAGE_TRY(write(job, kept.image, kept.low));
      progress_.say(missed + "; the best face, of step " + std::to_string(kept.step + 1) + ", is " + face(job));
    } else {
      ++missed_;
      progress_.say(missed + ", --keep-best writes the best face all the same");
    }
  }
  return success();
}

}  // namespace ullage::pulse
