// SPDX-License-Identifier: Apache-2.0
#include "fake_training.h"

#include <array>
#include <span>
#include <vector>

namespace ullage::cli {
namespace {

using How = trace::TensorUse::How;
using Kind = FakeTraining::Kind;
using trace::EventLog;
using trace::UseView;

constexpr std::uint64_t kParameter = 1 << 20;  // bytes of the parameter, of its gradient and of its optimizer state
constexpr std::uint64_t kPicture = 1 << 16;    // bytes per sample
constexpr std::uint8_t kFloat = 6;
constexpr std::int64_t kSorted = 1000;     // numbers per sample
constexpr std::int64_t kByRadix = 32'768;  // from so many numbers on, a sort allocates a buffer

std::uint64_t picture_bytes(const FakeTraining& training) {
  const auto batch = static_cast<std::uint64_t>(training.batch);
  return (training.kind == Kind::Constant ? 4 : batch) * kPicture;
}

std::uint64_t activation_bytes(const FakeTraining& training) {
  const auto batch = static_cast<std::uint64_t>(training.batch);
  return 2 * picture_bytes(training) + (training.kind == Kind::Lawless ? 64 * (batch * batch * batch % 7) : 0);
}

// Writes the events of one training into the log, one microsecond apart.
class Recording {
 public:
  Recording(const FakeTraining& training, EventLog& log) : training_(training), log_(log) {}

  void all() {
    parameter_ = log_.allocated(Bytes{kParameter}, 0, now());
    for (int step = 0; step < training_.steps; ++step) one_step(step == 0);
    if (!training_.clears) return;
    for (const StorageId storage : {parameter_, gradient_, state_}) drop(storage);
  }

 private:
  struct Tensor {
    StorageId storage;
    How how;
    std::vector<std::int64_t> sizes;
  };

  EventLog::Instant now() { return {1000 * ++ticks_}; }

  // `graph`: autograd records the op.
  OpId begin(std::string_view name, std::string_view node, const std::vector<Tensor>& inputs, bool graph = true) {
    return log_.op_begun({name, node, "", "", 0, !node.empty(), node.empty() && graph, false}, views(inputs), now());
  }
  void end(OpId op, const std::vector<Tensor>& outputs) { log_.op_ended(op, views(outputs), false, now()); }
  StorageId make(std::uint64_t bytes) { return log_.allocated(Bytes{bytes}, 0, now()); }
  void drop(StorageId storage) { log_.freed(storage, 0, now()); }

  // The views point into `tensors`, which must outlive them.
  static std::vector<UseView> views(const std::vector<Tensor>& tensors) {
    std::vector<UseView> out;
    for (const Tensor& tensor : tensors) out.push_back({tensor.storage, tensor.how, kFloat, tensor.sizes});
    return out;
  }

  void one_step(bool first) {
    const Tensor parameter = {parameter_, How::Read, {512, 512}};
    const std::int64_t batch = training_.kind == Kind::Constant ? 4 : training_.batch;
    if (!first) drop(gradient_);
    const OpId load = begin("aten::randn", "", {});
    const StorageId picture = make(picture_bytes(training_));
    end(load, {{picture, How::Output, {batch, 16384}}});

    const OpId forward = begin("aten::linear", "", {{picture, How::Read, {batch, 16384}}, parameter});
    log_.has_role(parameter_, trace::Role::Parameter, "net.weight");
    const StorageId activation = make(activation_bytes(training_));
    log_.saved(activation, trace::SavedKind::Activation, now());
    end(forward, {{activation, How::Output, {batch, 32768}}});
    if (training_.kind == Kind::Sorts) sort(activation);
    for (std::int64_t i = 0; training_.kind == Kind::Loops && i < batch; ++i) sort(activation);

    const bool convolves = training_.kind == Kind::Convolves;
    const std::vector<std::int64_t> weights =
        convolves ? std::vector<std::int64_t>{16, 16, 64, 64} : std::vector<std::int64_t>{512, 512};
    std::vector<Tensor> read = {{activation, How::Read, {batch, 32768}}, {parameter_, How::Read, weights}};
    if (convolves) {
      const Tensor pictures = {picture, How::Read, {batch, 16, 32, 32}};
      read = {pictures, pictures, read.back()};
    }
    const OpId backward = convolves ? begin("aten::convolution_backward", "ConvolutionBackward0", read)
                                    : begin("aten::mm", "LinearBackward0", read);
    gradient_ = make(kParameter);
    end(backward, {{gradient_, How::Output, weights}});
    log_.has_role(gradient_, trace::Role::Gradient, "");
    log_.released(activation, now());
    drop(activation);
    drop(picture);
    update(first);
  }

  void sort(StorageId of) {
    const std::int64_t numbers = training_.batch * kSorted;
    const OpId op = begin("aten::sort", "", {{of, How::Read, {numbers}}}, false);
    const StorageId result = make(4);
    if (numbers >= kByRadix) drop(make(8 * static_cast<std::uint64_t>(numbers)));
    end(op, {{result, How::Output, {1}}});
    drop(result);
  }

  void update(bool first) {
    if (first) {
      const OpId zeros = begin("aten::zeros_like", "", {{parameter_, How::Read, {512, 512}}}, false);
      state_ = make(kParameter);
      end(zeros, {{state_, How::Output, {512, 512}}});
    }
    const OpId step = begin("aten::_foreach_addcdiv_", "",
                            {{gradient_, How::Read, {512, 512}},
                             {state_, How::Written, {512, 512}},
                             {parameter_, How::Written, {512, 512}}},
                            false);
    end(step, {{parameter_, How::Output, {512, 512}}});
  }

  const FakeTraining& training_;
  EventLog& log_;
  StorageId parameter_, gradient_, state_;
  std::uint64_t ticks_ = 0;
};

}  // namespace

std::uint64_t peak_of(const FakeTraining& training) {
  // The peak is in the backward pass: parameter, state, gradient, picture and activation. The first step has no state
  // yet.
  return (training.steps > 1 ? 3 : 2) * kParameter + picture_bytes(training) + activation_bytes(training);
}

void record(const FakeTraining& training, EventLog& log) { Recording(training, log).all(); }

trace::ProcessFigures figures_of(const FakeTraining& training) {
  trace::ProcessFigures figures;
  figures.pool_live_peak = Bytes{peak_of(training)};
  figures.pool_resident_peak = round_up(figures.pool_live_peak, 64_KiB);
  figures.outside_peak = 64_MiB;
  figures.peak = figures.pool_resident_peak + figures.outside_peak;
  figures.threads = 2;
  return figures;
}

}  // namespace ullage::cli
