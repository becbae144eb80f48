// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder of a run (--out) has losses.jsonl, samples-NNNNNN.png, run.json and checkpoint/. Edit this if a run writes
// another file, or another figure in losses.jsonl.

#include "ullage/base/result.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace ullage::dcgan {

// Losses of one step, named as in pytorch/examples.
struct Losses {
  double loss_d = 0;  // errD_real + errD_fake
  double loss_g = 0;  // errG
  double d_x = 0;     // mean of D(real)
  double d_g_z1 = 0;  // mean of D(fake) before the discriminator's update
  double d_g_z2 = 0;  // mean of D(fake) after it
};

class RunFolder final {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}

  // Makes the folder and its checkpoint folder, and tries to write a file in each. BadArgument: that fails, or `resume`
  // is false and the folder has losses.jsonl, run.json or a checkpoint already. NotFound: `resume` is true and there is
  // no checkpoint.
  Status prepare(bool resume) const;

  const std::string& path() const { return path_; }
  std::string losses() const { return path_ + "/losses.jsonl"; }
  std::string checkpoints() const { return path_ + "/checkpoint"; }
  std::string run_json() const { return path_ + "/run.json"; }
  std::string sample(std::uint64_t step) const;

 private:
  std::string path_;
};

// "000042", as used in file names.
std::string step_name(std::uint64_t step);

// losses.jsonl: one JSON object per step. When append() returns, the line is with the operating system (but not
// fsynced), so it survives a kill of this process.
class LossLog final {
 public:
  // Opens the log for appending. Keeps the lines of steps 1 to `last_step`, as far as they are there: writes them to a
  // new file and renames it. With 0 the log begins empty.
  static Result<LossLog> open(const std::string& path, std::uint64_t last_step);
  Status append(std::uint64_t step, const Losses& losses);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  LossLog(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace ullage::dcgan
