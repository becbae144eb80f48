// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps one call of an op, so that it can be run again with the same bits. Holds its arguments, the sizes and strides
// of its tensors, and the other state that kernels depend on. That is grad mode, generator, rounding, threads, and
// whether oneDNN is on. The bytes of its inputs are not held: the caller of run() provides them.

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

// How a tensor views its storage: all of the tensor but its bytes.
struct Geometry {
  c10::SmallVector<std::int64_t, 5> sizes, strides;
  std::int64_t offset = 0;
  caffe2::TypeMeta dtype;
  bool wrapped_number = false;

  static Geometry of(const at::Tensor& tensor);
  at::Tensor on(const StoragePtr& storage) const;
  // Is it contiguous, or does it have four dimensions in channels-last order?
  bool is_dense() const;
};

class TapedOp final {
 public:
  // Call it before the op runs. `inputs`: the storages of the pool among its arguments, each once, in their order.
  // Returns null if `how` is Never or an argument is not supported. Supported are undefined tensors, wrapped numbers,
  // and plain strided tensors of the budgeted device (followed_device()) that have no bytes or have them in the pool.
  // Weights mapped from a file are supported too (mapped_files.h), unless the op writes to them. Not supported are
  // tensors with other bytes outside the pool, storages, objects, and subclasses of Tensor. Nor are sparse, quantized,
  // nested, inference, conjugate or negative tensors, or tensors under a transform of torch.func.
  static std::unique_ptr<TapedOp> capture(const OpCall& call, std::span<const StorageUse> inputs,
                                          plan::RecomputeRule how);
  // Call it after the op ran.
  void note_outputs(std::span<const c10::IValue> outputs);
  // Are its outputs unchanged since, by torch's version counters?
  bool made_stands() const;

  // Runs the op again. `inputs`: as at capture, maybe other storages with the same bytes; null where needs() is false.
  // The op's writes in place go into them. Returns the new storages, each once, in the order of the outputs.
  std::vector<StoragePtr> run(std::span<const StoragePtr> inputs) const;
  // For a batch norm in training, if can_recompute_batch_norm(): recomputes its first output alone. `inputs`: as at
  // capture, followed by the mean and the inverse deviation that the op saved.
  StoragePtr recompute_batch_norm(std::span<const StoragePtr> inputs) const;

  bool can_recompute_batch_norm() const;
  // Does run() need input i?
  bool needs(std::size_t i) const { return needed_[i]; }
  // Are its tensors over input i unchanged since, by torch's version counters?
  bool unchanged(std::size_t i) const;
  // Are the mapped weights that it reads unchanged since, by torch's version counters?
  bool mapped_stand() const;
  // The storages of these weights. They live as long as this object.
  std::vector<const c10::StorageImpl*> mapped() const;
  Bytes bytes() const;  // memory that this record takes
  std::string name() const { return op_->schema().name(); }

 private:
  struct Part {                        // a tensor among the arguments
    std::optional<std::size_t> input;  // which of the inputs its storage is; none: it is not of the pool
    Geometry geometry;                 // of a tensor of the pool
    c10::VariableVersion counter;      // of a tensor of the pool or of a mapped weight
    std::uint32_t version = 0;         // the counter's value at capture
    bool mapped = false;               // `other` is a mapped weight
    at::Tensor other;  // a tensor without bytes in the pool (a mapped weight, a wrapped number); may be undefined
  };
  struct Argument {
    enum class Kind { Value, Tensor, List, OptionalList } kind = Kind::Value;
    c10::IValue value;
    std::vector<Part> parts;
  };
  class Surroundings;  // restores the state that kernels depend on besides their arguments, for as long as it lives

  TapedOp() = default;
  bool take(const OpCall& call, const c10::IValue& value, std::span<const StorageUse> inputs);
  bool take_part(const OpCall& call, const at::Tensor& tensor, std::span<const StorageUse> inputs, Argument& argument);
  void leave_statistics_out();
  void keep_generator();
  void find_needed(std::size_t inputs);
  at::Tensor tensor(const Part& part, std::span<const StoragePtr> inputs) const;
  c10::IValue value(const Argument& argument, std::span<const StoragePtr> inputs) const;

  std::optional<c10::OperatorHandle> op_;
  std::vector<Argument> arguments_;
  std::vector<bool> needed_;
  std::optional<std::size_t> generator_at_;                           // which argument is the generator
  std::optional<KeptGenerator> generator_;                            // none: the op draws nothing
  Geometry output_;                                                   // of the first output
  std::vector<std::pair<c10::VariableVersion, std::uint32_t>> made_;  // version counters of the outputs, with values
  std::fenv_t floats_{};
  bool grad_mode_ = false;
  bool onednn_ = true;
  int threads_ = 1;
};

}  // namespace ullage::runtime
