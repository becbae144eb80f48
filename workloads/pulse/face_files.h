// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes the faces of a run:
//
//   <out>/<name>.png                     the face
//   <out>/LR/<name>.png                  the face, downscaled
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
  // Both must outlive this object.
  FaceFiles(const Options& options, program::Progress& progress) : options_(options), progress_(progress) {}

  // Makes the folders and tries to write in them, before the search begins.
  Status prepare() const;
  Status prepare_intermediates(std::span<const Job> jobs) const;

  // Called after each step, counted from 0. Does nothing without --save-intermediate.
  Status save_intermediates(std::span<const Job> jobs, const BestFaces& best, std::int64_t step) const;

  // Writes and reports the result of a batch. If eps was reached for a picture it writes the last step's face,
  // otherwise the best one if --keep-best is given.
  Status save(std::span<const Job> jobs, const Evaluation& last, const BestFaces& best);

  // The number of faces that were not written.
  std::size_t missed() const { return missed_; }

 private:
  Status write(const Job& job, const at::Tensor& image, const at::Tensor& low) const;
  std::string face(const Job& job) const { return options_.out + "/" + job.name + ".png"; }

  const Options& options_;
  program::Progress& progress_;
  std::size_t missed_ = 0;
};

}  // namespace ullage::pulse
