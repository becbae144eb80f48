// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the recording of a small training program: parameters, steps of forward, backward and optimizer, an evaluation.
// It can be made to leak.

#include "recording_builder.h"

#include <optional>
#include <vector>

namespace ullage::trace {

class TrainingProgram final : public RecordingBuilder {
 public:
  struct Options {
    int layers = 3;
    bool annotations = false;
    bool native = true;      // C++ frames are recorded too
    bool keep_loss = false;  // total_loss += loss, and with it the head's activation
    bool grow = false;       // each batch is longer than the one before
  };
  explicit TrainingProgram(Options options) : options_(options) {}

  void build_model();
  void train_step(int optimizer = 0);  // each optimizer is called from another line
  void train_discriminator() { train_step(1); }
  void evaluate_step(bool with_graph);

  static constexpr Bytes kParameter = 3_MiB;
  static constexpr Bytes kActivation = 5_MiB;
  static constexpr Bytes kLoss{4};
  static constexpr Bytes kBatch = 1_MiB;

 private:
  struct Layer {
    Address parameter;
    std::optional<Address> gradient, momentum;
  };

  StackId whole_stack(std::vector<Frame> native, const std::vector<Frame>& python);
  std::vector<Address> forward(const char* function, std::uint64_t line);
  void backward(std::vector<Address>& activations);
  void step_optimizer(int optimizer);

  const Options options_;
  std::vector<Layer> layers_;
  int steps_ = 0;
};

}  // namespace ullage::trace
