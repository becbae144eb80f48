// SPDX-License-Identifier: Apache-2.0
#include "ullage/plan/model/recomputes.h"

#include "ullage/plan/model/arguments.h"
#include "ullage/plan/model/recompute_rules.h"
#include "ullage/trace/take/tensor_use.h"

#include <algorithm>
#include <optional>

namespace ullage::plan {
namespace {

using How = trace::TensorUse::How;
using trace::TensorUse;

// Zero if the type is not supported, a size is not positive, or the product is too large.
Bytes bytes_of_use(const TensorUse& use) {
  const Bytes bytes = trace::bytes_of(use);
  return bytes <= kMostAtOnce ? bytes : Bytes{};
}

class Recomputes final {
 public:
  Recomputes(const trace::TakeIndex& index, Kernels kernels, BuiltStep& built)
      : index_(index), kernels_(kernels), step_(built.step), built_(built), unsteady_(built.written_elsewhere) {}

  void run() {
    for (const StepOp& op : step_.ops) {
      for (const ValueIndex one : statistics(op)) unsteady_[storage_of(one)] = true;
    }
    for (const OpIndex k : step_.ops.ids()) {
      StepOp& op = step_.ops[k];
      mark_unread(op);
      if (op.phase != trace::Phase::Forward || detail(op).failed || detail(op).sliced) continue;
      op.batch_norm = batch_norm_of(op);
      op.recompute = recompute_of_op(k);
    }
  }

 private:
  const trace::OpDetail& detail(const StepOp& op) const { return index_.detail(op.in_take); }
  StorageIndex storage_of(ValueIndex value) const { return step_.values[value].storage; }
  Bytes bytes_of(ValueIndex value) const { return step_.storages[storage_of(value)].bytes; }
  bool makes_new(const StepOp& op, std::size_t count) const { return op.overwrites == 0 && op.makes.size() == count; }

  // In training a batch norm returns the statistics that it saved; in evaluation these have no bytes.
  bool trains(const StepOp& op) const { return is_batch_norm(op.name) && makes_new(op, 3); }

  // The arguments are input, weight, bias, running mean and running variance. If fewer are recorded, it is not certain
  // which are missing.
  static constexpr std::size_t kArguments = 5, kStatistics = 3;  // how many; index of the running mean

  // The storages that a training batch norm may write without the recording showing it: its running statistics. If some
  // argument is missing, all but the first that live from step to step and are no parameters.
  std::vector<ValueIndex> statistics(const StepOp& op) const {
    if (!trains(op)) return {};
    const std::vector<TensorUse> arguments = uses_of(detail(op), false);
    std::vector<ValueIndex> found;
    for (const ValueIndex read : op.reads) {
      const StepStorage& storage = step_.storages[storage_of(read)];
      const auto use = std::ranges::find(arguments, storage.in_take, &TensorUse::storage);
      const auto place = std::size_t(use - arguments.begin());
      const bool stays = storage.from_before && storage.outlives && !index_.leaf[storage.in_take.value];
      if (arguments.size() == kArguments ? place >= kStatistics : place > 0 && stays) found.push_back(read);
    }
    return found;
  }

  // The values that must be present to recompute the op: all that it reads. Running statistics are left out if it is
  // certain which arguments they are.
  std::vector<ValueIndex> needs(const StepOp& op) const {
    std::vector<ValueIndex> reads = op.reads;
    if (uses_of(detail(op), false).size() != kArguments) return reads;
    const std::vector<ValueIndex> left_out = statistics(op);
    std::erase_if(reads, [&](ValueIndex one) { return std::ranges::find(left_out, one) != left_out.end(); });
    return reads;
  }
  // Do all its arguments, except its own running statistics, change only by recorded ops of the step?
  bool is_steady(const StepOp& op) const {
    const std::vector<ValueIndex> own = statistics(op);
    return std::ranges::all_of(op.reads, [&](ValueIndex one) {
      return !unsteady_[storage_of(one)] || std::ranges::find(own, one) != own.end();
    });
  }

  std::optional<Recompute> batch_norm_of(const StepOp& op) const {
    if (!trains(op) || !is_steady(op)) return std::nullopt;
    Recompute made{needs(op), {op.took.count * kBatchNormShare}, bytes_of(op.makes[0])};
    made.reads.push_back(op.makes[1]);
    made.reads.push_back(op.makes[2]);
    made.rise += bytes_of(op.makes[1]) + bytes_of(op.makes[2]);  // scale and shift, one number per channel each
    return made;
  }

  std::optional<Recompute> recompute_of_op(OpIndex k) const {
    const StepOp& op = step_.ops[k];
    const RecomputeRule rule = recompute_rule_of(op.name, kernels_);
    if (rule == RecomputeRule::Never || op.makes.empty() || built_.hides_own[k] || !is_steady(op)) return std::nullopt;
    if (rule == RecomputeRule::BatchNorm && !trains(op)) return std::nullopt;
    if (rule == RecomputeRule::Blank && !written_over(k)) return std::nullopt;
    if (op.overwrites > 0 && !parts_of(op.name).in_place) return std::nullopt;  // the caller gave the results
    for (std::size_t i = 0; i < op.overwrites; ++i) {
      if (made_outside(op, storage_of(op.makes[i]))) return std::nullopt;
    }
    if (!all_arguments_seen(op.name, detail(op))) return std::nullopt;
    return Recompute{needs(op), op.took, built_.own_rise[k]};
  }
  bool made_outside(const StepOp& op, StorageIndex storage) const {
    return std::ranges::any_of(
        op.reads, [&](ValueIndex one) { return storage_of(one) == storage && step_.values[one].maker == kNone; });
  }

  // Is each value of op k overwritten whole before any op reads it, by an op that does not read it either?
  bool written_over(OpIndex k) const {
    return std::ranges::all_of(step_.ops[k].makes, [&](ValueIndex value) {
      const OpIndex by = step_.values[value].overwritten_by;
      if (by == kNone || !overwrites_all(step_.ops[by].name)) return false;
      const std::vector<TensorUse> arguments = uses_of(detail(step_.ops[by]), false);
      const StorageId storage = step_.storages[storage_of(value)].in_take;
      return arguments.front().how == How::Written && arguments.front().storage == storage &&
             bytes_of_use(arguments.front()) == index_.take.trace.storages[storage.value].bytes &&
             std::ranges::count(arguments, storage, &TensorUse::storage) == 1 && unseen(value, k, by);
    });
  }
  bool unseen(ValueIndex value, OpIndex after, OpIndex before) const {
    for (const OpIndex k : IdRange<OpIndex>{after.next(), before}) {
      const StepOp& op = step_.ops[k];
      if (std::ranges::find(op.reads, value) != op.reads.end() && !is_plain_view(op)) return false;
    }
    return true;
  }

  bool is_plain_view(const StepOp& op) const {
    return is_view(op.name) && op.makes.empty() && op.hides.empty() && op.rise == Bytes{};
  }

  void mark_unread(StepOp& op) const {
    if (is_view(op.name) && !is_plain_view(op)) return;
    const std::vector<StorageId> unread = unread_storages(op.name, detail(op));
    for (std::uint32_t i = 0; i < op.reads.size(); ++i) {
      const StorageId one = step_.storages[storage_of(op.reads[i])].in_take;
      if (std::ranges::find(unread, one) != unread.end()) op.unread.push_back(i);
    }
  }

  const trace::TakeIndex& index_;
  const Kernels kernels_;
  Step& step_;
  BuiltStep& built_;
  Table<StorageIndex, bool> unsteady_;  // its bytes change without a recorded write by an op of the step
};

}  // namespace

void add_recomputes(const trace::TakeIndex& index, Kernels kernels, BuiltStep& built) {
  Recomputes(index, kernels, built).run();
}

}  // namespace ullage::plan
