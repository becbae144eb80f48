// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the faces of a run go:
//
//   <out>/<name>.png                     the face
//   <out>/LR/<name>.png                  what it downscales to
//   <out>/<name>/{HR,LR}/<name>_<j>.png  with --save-intermediate: the best face up to step j, and its downscaled one

#include "program/progress.h"
#include "pulse/best_faces.h"
#include "pulse/options.h"
#include "pulse/pictures.h"

#include <span>
#include <string>

namespace ullage::pulse {

class FaceFiles final {
 public:
  // Both outlive this.
  FaceFiles(const Options& options, program::Progress& progress) : options_(options), progress_(progress) {}

  // The folders, tried before the search begins.
  Status prepare() const;
  Status prepare_intermediates(std::span<const Job> jobs) const;

  // After each step, from 0. Nothing where it was not asked for.
  Status save_intermediates(std::span<const Job> jobs, const BestFaces& best, std::int64_t step) const;

  // What a batch's search came to, in files and in words: where eps was reached the last step's face, else with
  // --keep-best the best one.
  Status save(std::span<const Job> jobs, const Evaluation& last, const BestFaces& best);

  // Faces that were not written.
  std::size_t missed() const { return missed_; }

 private:
  Status write(const Job& job, const at::Tensor& image, const at::Tensor& low) const;
  std::string face(const Job& job) const { return options_.out + "/" + job.name + ".png"; }

  const Options& options_;
  program::Progress& progress_;
  std::size_t missed_ = 0;
};

}  // namespace ullage::pulse
