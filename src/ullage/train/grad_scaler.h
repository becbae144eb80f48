// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps small gradients of float16 from becoming zero: torch.amp.GradScaler in C++. The loss is multiplied by a scale
// before backward, and the gradients are divided by it before the optimizer sees them. If a gradient is inf or nan, the
// optimizer's step is skipped and the scale falls; after many good steps it grows. Scale, tracker, gradients and
// decisions have the bits of Python's.
//
//   GradScaler scaler(torch::kCUDA);
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);                          // unscales; skips if a gradient is inf or nan
//   if (const Status said = scaler.update(); !said) ...

#include "ullage/base/result.h"

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ullage::train {

class GradScaler final {
 public:
  struct Settings {
    double init_scale = 65536;
    double growth_factor = 2;             // above 1
    double backoff_factor = 0.5;          // between 0 and 1
    std::int64_t growth_interval = 2000;  // good updates in a row before the scale grows
    bool enabled = true;                  // false: scale() returns its argument, step() is the optimizer's
  };
  // The entries of Python's state_dict(): "scale", "growth_factor", "backoff_factor", "growth_interval",
  // "_growth_tracker". Empty if the scaler is not enabled. Integers are exact up to 2^53.
  using State = std::map<std::string, double>;

  // `device`: the type of device that the losses are on, CPU or CUDA. Parameters may be on several devices. If CUDA
  // is asked for and there is no CUDA device, the scaler is not enabled, and advice() says so. ContractError if the
  // scaler is enabled and growth_factor is not above 1 or backoff_factor is not below 1.
  explicit GradScaler(c10::DeviceType device) : GradScaler(device, Settings{}) {}
  GradScaler(c10::DeviceType device, Settings settings);

  // Returns `outputs` times the scale, with the graph. Call backward on it.
  at::Tensor scale(const at::Tensor& outputs);
  std::vector<at::Tensor> scale(const std::vector<at::Tensor>& outputs);

  // Divides the gradients of the optimizer's parameters by the scale in place, and notes whether one is inf or nan.
  // Call it when all gradients of the step are there, to clip or inspect them; otherwise step() does it. ContractError:
  // it is called twice for an optimizer between two updates, after step() or before scale(), or a gradient is float16
  // (parameters must stay float32).
  void unscale_(torch::optim::Optimizer& optimizer);

  // Steps the optimizer unless one of its gradients is inf or nan; returns whether it did. A skipped step changes no
  // parameter and no state of the optimizer. Reads one number from each device that has gradients. ContractError:
  // called twice without an update(), before scale(), or none of the parameters has a gradient.
  bool step(torch::optim::Optimizer& optimizer);

  // Ends an iteration, after the last optimizer's step. Lowers the scale if an inf or nan was found in any optimizer's
  // gradients; raises it after growth_interval good updates. If `new_scale` is given, sets that. Returns an error
  // (System) at each 20th update in a row that had a skipped step. Each of these updates lowered the scale, and the
  // program would go on without training. The update is done all the same. ContractError: called before scale(), or no
  // optimizer was unscaled or stepped and no `new_scale` is given.
  Status update(std::optional<double> new_scale = std::nullopt);

  // A hint about the scaler's use, or "" if there is none. One hint says that there is no CUDA device. After the first
  // scale(), another may say that the loss was made under bfloat16, whose range is float32's: scaling works, but is not
  // needed.
  const std::string& advice() const { return advice_; }

  bool is_enabled() const { return settings_.enabled; }
  // The scale, and the number of good updates in a row since it last changed. Both are read from the device. 1 and 0 if
  // the scaler is not enabled.
  double get_scale() const;
  std::int64_t get_growth_tracker() const;
  double get_growth_factor() const { return settings_.growth_factor; }
  double get_backoff_factor() const { return settings_.backoff_factor; }
  std::int64_t get_growth_interval() const { return settings_.growth_interval; }
  void set_growth_factor(double factor) { settings_.growth_factor = factor; }
  void set_backoff_factor(double factor) { settings_.backoff_factor = factor; }
  void set_growth_interval(std::int64_t interval) { settings_.growth_interval = interval; }

  // Call it after update().
  State state_dict() const;
  // Does nothing if this scaler is not enabled. BadFile, and nothing is changed, if `state` is empty, lacks an entry of
  // a scaler or has one that is not a scaler's. Also if it has a value that no scaler can have.
  Status load_state_dict(const State& state);

 private:
  enum class Stage { Ready, Unscaled, Stepped };
  using PerDevice = std::vector<std::pair<c10::Device, at::Tensor>>;
  struct OptimizerState {
    Stage stage = Stage::Ready;
    PerDevice found_inf;
  };

  void check_scaled(const char* what) const;
  void make_scale(const c10::Device& device);
  void look_at_types(const at::Tensor& outputs);
  PerDevice unscale_gradients(torch::optim::Optimizer& optimizer, const at::Tensor& inverse);
  Status count_overflow(bool skipped);

  Settings settings_;
  std::int64_t init_growth_tracker_ = 0;
  at::Tensor scale_;           // float32, one number, on the device of the first loss; undefined until then
  at::Tensor growth_tracker_;  // int32, one number
  std::unordered_map<const torch::optim::Optimizer*, OptimizerState> optimizers_;  // of this iteration
  bool skipped_ = false;                                                           // in this iteration
  int skipped_in_a_row_ = 0;
  double scale_before_row_ = 0;  // the scale before the first of these skipped updates
  bool looked_at_types_ = false;
  std::string advice_;
};

}  // namespace ullage::train
