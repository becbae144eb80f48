// SPDX-License-Identifier: Apache-2.0
#pragma once

// A program that trains a small net, written as the take that Ullage's recorder would make of it. All tests that read
// traces use it. Link trace/take_builder.cpp with it.

#include "trace/take_builder.h"
#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/input.h"

#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace ullage {

// Two convolutions with a batch norm between them, an optimizer like Adam with one state, MSE. At batch b, layer 0
// makes an activation of b x 8 MiB and uses b x 3 MiB of scratch. The activation is saved for the backward pass.
class SmallTraining {
 public:
  explicit SmallTraining(std::uint64_t batch, bool names = true) : batch_(batch), names_(names) {
    b.mode(Mode::Grad);
    for (Layer& layer : layers_) layer.weight = b.op1({.name = "aten::empty", .makes = {layer.bytes}});
    running_mean_ = b.op1({.name = "aten::zeros", .makes = {2_MiB}});
    b.mode(Mode::NoGrad);
    for (const Layer& layer : layers_) {
      b.op({.name = "aten::uniform_", .writes = {layer.weight}});
      b.role(layer.weight, trace::Role::Parameter, names_ ? layer.name + ".weight" : "");
    }
  }

  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  void step() {
    zero_grad();
    forward();
    backward();
    update();
  }

  void zero_grad() {
    for (Layer& layer : layers_) {
      if (layer.gradient) b.free(*std::exchange(layer.gradient, std::nullopt));
    }
  }
  void forward() {
    b.mode(Mode::Grad);
    if (input_) b.free(*input_);
    input_ = b.op1({.name = "aten::randn", .makes = {1_MiB * batch_}});
    convolved_ = b.op1({.name = "aten::convolution",
                        .reads = {*input_, layers_[0].weight},
                        .makes = {8_MiB * batch_},
                        .saves = {{*input_, Kind::Constant}, {layers_[0].weight, Kind::Parameter}},
                        .scratch = {3_MiB * batch_},
                        .layer = layer(0),
                        .line = names_ ? "train.py:12" : ""});
    normed_ = b.op1({.name = "aten::native_batch_norm",
                     .reads = {convolved_},
                     .writes = {running_mean_},
                     .makes = {8_MiB * batch_},
                     .saves = {{convolved_, Kind::Activation}, {running_mean_, Kind::Constant}}});
    out_ = b.op1({.name = "aten::convolution",
                  .reads = {normed_, layers_[1].weight},
                  .makes = {2_MiB * batch_},
                  .saves = {{normed_, Kind::Activation}, {layers_[1].weight, Kind::Parameter}},
                  .layer = layer(1)});
    if (loss_) b.free(*loss_);
    loss_ = b.op1({.name = "aten::mse_loss", .reads = {out_}, .makes = {4_B}, .saves = {{out_, Kind::Activation}}});
  }
  void backward() {
    b.mode(Mode::Backward);
    StorageId grad = b.op1(
        {.name = "aten::mse_loss_backward", .reads = {out_}, .makes = {2_MiB * batch_}, .node = "MseLossBackward0"});
    b.unsave(out_), b.free(out_);
    grad = backward_of(1, grad, normed_, 8_MiB * batch_);
    b.unsave(normed_), b.free(normed_);
    grad = backward_of(0, grad, convolved_, 1_MiB * batch_);
    b.unsave(convolved_), b.free(convolved_);
    b.free(grad);
    b.mode(Mode::Grad);
    for (const Layer& layer : layers_) b.role(*layer.gradient, trace::Role::Gradient);
  }
  void update() {
    b.mode(Mode::NoGrad);
    for (Layer& layer : layers_) {
      if (!layer.average) {
        layer.average = b.op1({.name = "aten::zeros_like", .reads = {layer.weight}, .makes = {layer.bytes}});
      }
    }
    for (const Layer& layer : layers_) {
      b.op({.name = "aten::lerp_", .reads = {*layer.gradient}, .writes = {*layer.average}});
      const StorageId root = b.op1({.name = "aten::sqrt", .reads = {*layer.average}, .makes = {layer.bytes}});
      b.op({.name = "aten::addcdiv_", .reads = {*layer.average, root}, .writes = {layer.weight}});
      b.free(root);
    }
    b.mode(Mode::Grad);
  }
  // Runs a forward pass, then refuses `requested` to the backward pass of the last layer.
  void fail(Bytes requested) {
    zero_grad();
    forward();
    b.mode(Mode::Backward);
    const StorageId grad = b.op1(
        {.name = "aten::mse_loss_backward", .reads = {out_}, .makes = {2_MiB * batch_}, .node = "MseLossBackward0"});
    const OpId op = b.open({.name = "aten::convolution_backward",
                            .reads = {grad, normed_, layers_[1].weight},
                            .layer = layer(1),
                            .node = "ConvolutionBackward0"});
    failed_at_ = b.now(), failed_ = op, requested_ = requested;
    b.allocate(requested);  // take() turns it into a refusal
    b.close(op);
  }

  // Event times are one microsecond apart.
  trace::Take take(trace::Take::End end = trace::Take::End::StepBorder) const {
    trace::Take take = b.take(end);
    for (std::size_t i = 0; i < take.trace.events.size(); ++i) {
      take.trace.events[i].at = trace::Microseconds{static_cast<std::int64_t>(i)};
    }
    if (failed_at_) {
      take.trace.events[failed_at_->value].what = trace::event::OutOfMemory{requested_, {}, false};
      take.trace.storages.pop_back();
      take.details[failed_.value].failed = true;
    }
    take.knobs = {{"batch", static_cast<std::int64_t>(batch_)}};
    take.process = {1_GiB, 128_MiB, {}, {}, 2, {}};
    return take;
  }

 private:
  using Mode = trace::test::Mode;
  using Kind = trace::SavedKind;
  struct Layer {
    std::string name;
    Bytes bytes;
    StorageId weight{};
    std::optional<StorageId> gradient{}, average{};
  };

  std::string layer(std::size_t i) const { return names_ ? layers_[i].name : ""; }
  StorageId backward_of(std::size_t i, StorageId grad, StorageId kept, Bytes bytes) {
    const auto made = b.op({.name = "aten::convolution_backward",
                            .reads = {grad, kept, layers_[i].weight},
                            .makes = {bytes, layers_[i].bytes},
                            .scratch = {5_MiB},
                            .layer = layer(i),
                            .node = "ConvolutionBackward0"});
    b.free(grad);
    layers_[i].gradient = made[1];
    return made[0];
  }

  trace::test::TakeBuilder b;
  std::uint64_t batch_;
  bool names_;
  std::vector<Layer> layers_ = {{"net.0", 4_MiB}, {"net.2", 16_MiB}};
  StorageId running_mean_, convolved_, normed_, out_;
  std::optional<StorageId> input_, loss_;
  std::optional<EventId> failed_at_;
  OpId failed_;
  Bytes requested_;
};

inline trace::TraceFile file_of(std::vector<trace::Take> takes, std::vector<std::string> command = {"./train", "4"}) {
  trace::TraceFile file;
  file.torch = "2.13.0", file.command = std::move(command), file.takes = std::move(takes);
  return file;
}

// A file with one take: three steps at batch 4.
inline trace::TraceFile small_file() {
  SmallTraining program(4);
  program.steps(3);
  return file_of({program.take()});
}

// A file with three takes, at batches 2, 3 and 4, that asks for a prediction at batch 64.
inline trace::TraceFile file_of_three() {
  std::vector<trace::Take> takes;
  for (const std::uint64_t batch : {2, 3, 4}) {
    SmallTraining program(batch);
    program.steps(3);
    takes.push_back(program.take());
  }
  trace::TraceFile file = file_of(std::move(takes));
  file.at = {{"batch", 64}};
  return file;
}

// A take whose second step fails: 32 MiB are refused to it.
inline trace::TraceFile failed_file() {
  SmallTraining program(4);
  program.step();
  program.fail(32_MiB);
  return file_of({program.take(trace::Take::End::OutOfMemory)}, {"python", "train.py", "--batch-size", "4"});
}

inline trace::UnderstoodFile understood(trace::TraceFile file) {
  trace::UnderstoodFile made{std::move(file), {}};
  for (trace::Take& take : made.file.takes) made.meanings.push_back(trace::understand(take));
  return made;
}

inline std::string bytes_of(const trace::TraceFile& file) {
  std::ostringstream out;
  write_trace_file(file, out);
  return std::move(out).str();
}

}  // namespace ullage
