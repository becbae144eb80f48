// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a batch in micro-batches, with the gradient of the whole batch. Only one micro-batch's activations are held at a
// time.
//
//   ULLAGE_TRY_VALUE(Accumulation window, Accumulation::create(*net, {.clip_norm = 1.0, .scaler = &scaler}));
//   ULLAGE_TRY_VALUE(const auto slices, micro_batches(x.size(0), 4));
//   optimizer.zero_grad();
//   ULLAGE_TRY(window.begin(x.size(0)));
//   for (const Slice& s : slices) {
//     const torch::Tensor loss = criterion(net->forward(s.of(x)), s.of(y));   // a mean over the slice
//     ULLAGE_TRY(window.backward(loss, s.size()));
//   }
//   ULLAGE_TRY_VALUE(const auto end, window.step(optimizer));
//
// The loss may be a mean over other things than samples, such as tokens or a mask. Then give begin() the whole batch's
// count of them, and backward() the micro-batch's.
//
// Differences from a step with the whole batch:
// - Sums are made in another order, so gradients differ by rounding.
// - Layers that look across the batch: BatchNorm takes mean and variance of a micro-batch. Such layers are found by
//   their modules, and in the graph of the first loss of a window. They are refused unless they are allowed by name or
//   kind. If a layer of the module is allowed, the graph is not searched, because it does not show which nodes are that
//   layer's.
// - Losses over pairs of samples (contrastive losses, triplets mined in the batch, a variance over the batch) see only
//   the pairs inside a micro-batch. No code can see that: do not use them with this.
// - Dropout draws other numbers.

#include "ullage/base/result.h"
#include "ullage/train/grad_scaler.h"

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ullage::train {

// A half-open range of samples.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  // The samples of `batch`, along dimension 0; a view.
  at::Tensor of(const at::Tensor& batch) const { return batch.slice(0, begin, end); }
};

// Cuts `batch` samples into slices of `micro`; the last one is short if `micro` does not divide `batch`. BadArgument:
// one of them is below 1, or `micro` exceeds `batch`.
Result<std::vector<Slice>> micro_batches(std::int64_t batch, std::int64_t micro);

// A layer whose result for a sample depends on the other samples of the batch.
struct AcrossTheBatch {
  std::string layer;  // its name in the module, "main.1"
  std::string kind;   // "BatchNorm2d"
  std::string what;   // what differs with micro-batches
};

// Finds BatchNorm that uses the batch's statistics now: in training, or always if it has no running averages. Finds
// InstanceNorm that updates running averages now, because it averages over the batch for them. Does not find what a
// module's forward() calls as a function.
std::vector<AcrossTheBatch> layers_across_the_batch(const torch::nn::Module& module);

class Accumulation final {
 public:
  struct Options {
    // Layers ("main.1") or kinds ("BatchNorm2d") that may differ; "batch_norm" for those called as functions.
    std::vector<std::string> allow = {};
    // Each optimizer's gradients are clipped to this norm at the window's end.
    std::optional<double> clip_norm = std::nullopt;
    GradScaler* scaler = nullptr;  // must outlive the accumulation
    // Called before the last backward pass of a window, with its weighed loss. That pass, and no other, is to average
    // the gradients among processes. A c10d::Reducer averages in the backward pass after prepare_for_backward({}), so
    // call that here. The other passes then behave as inside no_sync() of Python's DistributedDataParallel.
    std::function<void(const at::Tensor& loss)> before_last = nullptr;
  };
  // The end of a window.
  struct End {
    bool stepped = true;             // false: the scaler found an inf or nan, and an optimizer was skipped
    std::vector<double> grad_norms;  // with clip_norm: the norm of each optimizer that has gradients, before clipping
    Status scaler = success();       // what GradScaler::update() said
  };
  // How many things the losses of the whole batch average over, by name: {{"samples", 16}, {"tokens", 1311}}.
  using Counts = std::map<std::string, double>;

  // BadArgument if `module` has layers across the batch that are not allowed; it names each layer and what would
  // differ. Also if a word of `allow` other than "batch_norm" fits no such layer, or if clip_norm is not above 0.
  // `module` is not kept.
  static Result<Accumulation> create(const torch::nn::Module& module, Options options);
  static Result<Accumulation> create(const torch::nn::Module& module) { return create(module, Options{}); }

  // The allowed layers, and what differs in each: what to tell the person who reads the results.
  const std::vector<AcrossTheBatch>& differences() const { return differences_; }

  // Begins a window. Gradients are added to what is there, so call zero_grad() before. BadArgument: there is no count,
  // or one is not above 0. ContractError: a window is open.
  Status begin(double samples) { return begin(Counts{{"samples", samples}}); }
  Status begin(Counts whole) { return begin(whole, whole); }
  // For gradients that are averaged among processes whose batches differ in their counts. `mean` is the mean of the
  // counts of all processes, and losses are weighed by it. So the average is the gradient of all batches as one.
  Status begin(Counts whole, Counts mean);

  // Returns `loss`, a mean over `part` things, times its share of the whole. Add up the weighed losses of one
  // micro-batch if they average over different things, and give the sum to backward(). A loss over nothing (`part` is
  // 0: its mask is empty, the mean is nan) gives an undefined tensor. BadArgument: `part` is below 0 or more than is
  // left, or begin() was given no count named `of`.
  Result<at::Tensor> weigh(const at::Tensor& loss, double part, const std::string& of = "samples");

  // Runs the backward pass of a micro-batch, with the scaler's scale. Call it outside of an AutocastGuard. The pass is
  // the window's last if the parts add up to the whole. BadArgument if before_last was called for an earlier pass.
  // BadArgument also if the graph has batch_norm in training as a function, unless "batch_norm" is allowed or
  // differences() is not empty.
  Status backward(const at::Tensor& loss, double part);
  Status backward(const at::Tensor& weighed);  // an undefined tensor does nothing

  // Ends the window: unscales, clips, steps each optimizer that has gradients, updates the scaler. BadArgument if the
  // parts of any count do not add up to the whole, or if before_last was not called. Then the gradient is not that of
  // the batch, and the window stays open. Whole numbers must add up exactly, others within 1e-4 of the whole.
  Result<End> step(torch::optim::Optimizer& optimizer) { return step(std::vector{&optimizer}); }
  Result<End> step(const std::vector<torch::optim::Optimizer*>& optimizers);
  // Ends the window without a step, after an error. The gradients stay as they are.
  void abandon() { whole_.clear(), seen_.clear(); }

 private:
  explicit Accumulation(Options options) : options_(std::move(options)) {}
  Status look_at_graph(const at::Tensor& loss);
  Status prepare_last(const at::Tensor& loss);
  std::optional<std::string> missing();  // the count that the parts do not add up to

  Options options_;
  std::vector<AcrossTheBatch> differences_;
  Counts whole_;  // empty between windows
  Counts mean_;   // what losses are weighed by
  Counts seen_;
  bool looked_at_graph_ = false;  // in this window
  bool prepared_last_ = false;    // in this window
};

}  // namespace ullage::train
