// SPDX-License-Identifier: Apache-2.0
#pragma once

// One op as it was called, so that it can be run again and give the same bits: its arguments, the geometry of its
// tensors, and all that kernels look at beside them (grad mode, generator, rounding, threads). The bytes of its inputs
// are not held: who runs it again brings them.

#include "ullage/runtime/ops/kept_generator.h"
#include "ullage/runtime/ops/op_call.h"

#include "ullage/base/bytes.h"
#include "ullage/plan/model/recompute_rules.h"

#include <ATen/core/Tensor.h>

#include <cfenv>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ullage::runtime {

using StoragePtr = c10::intrusive_ptr<c10::StorageImpl>;

// A tensor of a storage: what is left of it when its bytes are taken away.
struct Geometry {
  c10::SmallVector<std::int64_t, 5> sizes, strides;
  std::int64_t offset = 0;
  caffe2::TypeMeta dtype;
  bool wrapped_number = false;

  static Geometry of(const at::Tensor& tensor);
  at::Tensor on(const StoragePtr& storage) const;
  // Contiguous, or of four dimensions and channels last.
  bool is_dense() const;
};

class TapedOp final {
 public:
  // Before the op runs. `inputs`: the storages of the pool among its arguments, each once, in their order. Null where
  // an argument is of a kind that is not understood: a subclass, a view with a conjugate bit, another device.
  static std::unique_ptr<TapedOp> capture(const OpCall& call, std::span<const StorageUse> inputs,
                                          plan::RecomputeRule how);
  // After it ran.
  void note_outputs(std::span<const c10::IValue> outputs);
  // Has nobody changed what it made in place since, as far as torch counts?
  bool made_stands() const;

  // Runs it again. `inputs` as at capture, other storages with the same bytes; what it overwrites is overwritten in
  // them. Null for those that needs() says no to. Returns the new storages, each once, in the order of the outputs.
  std::vector<StoragePtr> run(std::span<const StoragePtr> inputs) const;
  // Of a batch norm in training, where can_recompute_batch_norm(): its first output alone, from inputs as at capture
  // and behind them the mean and the inverse deviation that it saved.
  StoragePtr recompute_batch_norm(std::span<const StoragePtr> inputs) const;

  bool can_recompute_batch_norm() const;
  // Must input i be there when it runs again?
  bool needs(std::size_t i) const { return needed_[i]; }
  // Has nobody changed its tensors over input i in place since, as far as torch counts?
  bool unchanged(std::size_t i) const;
  Bytes bytes() const;  // that the record itself takes
  std::string name() const { return op_->schema().name(); }

 private:
  struct Part {                        // a tensor among the arguments
    std::optional<std::size_t> input;  // of the pool: which
    Geometry geometry;
    c10::VariableVersion counter;  // of the pool's
    std::uint32_t version = 0;
    at::Tensor other;  // else: itself, or undefined
  };
  struct Argument {
    enum class Kind { Value, Tensor, List, OptionalList } kind = Kind::Value;
    c10::IValue value;
    std::vector<Part> parts;
  };
  class Surroundings;  // puts back for a while what kernels look at

  TapedOp() = default;
  bool take(const c10::IValue& value, std::span<const StorageUse> inputs);
  bool take_part(const at::Tensor& tensor, std::span<const StorageUse> inputs, Argument& argument);
  void leave_statistics_out();
  void keep_generator();
  void find_needed(std::size_t inputs);
  at::Tensor tensor(const Part& part, std::span<const StoragePtr> inputs) const;
  c10::IValue value(const Argument& argument, std::span<const StoragePtr> inputs) const;

  std::optional<c10::OperatorHandle> op_;
  std::vector<Argument> arguments_;
  std::vector<bool> needed_;
  std::optional<std::size_t> generator_at_;                           // the argument that is one
  std::optional<KeptGenerator> generator_;                            // none: the op draws nothing
  Geometry output_;                                                   // the first
  std::vector<std::pair<c10::VariableVersion, std::uint32_t>> made_;  // counters of what it made, and where they stood
  std::fenv_t floats_{};
  bool grad_mode_ = false;
  bool onednn_ = true;
  int threads_ = 1;
};

}  // namespace ullage::runtime
