// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prepares a plan for being carried out: what to do before and after each op, and which ops to keep on tape. This
// header includes no torch.
//
// Ops that neither read nor make a storage of the pool are left out, because programs call them in any number and
// order. For example, a DataLoader unpacks batches as its workers deliver them. Ops on storages too small to move are
// left out too. Examples are ops on texts, whose lengths differ from batch to batch, and sums of losses. They stay in
// if the plan acts at them, or recomputes an op that reads what they read or make. They also stay in if a run could
// take them for the next op that stays.

#include "ullage/base/result.h"
#include "ullage/plan/file/plan_file.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ullage::runtime {

class PlanProgram final {
 public:
  // `plan` is verified, or read from a file.
  PlanProgram(plan::Sites sites, const plan::Plan& plan);

  // For a build of torch whose kernels read all their inputs: no input is `unread` any more.
  void read_everything();
  // For a build of torch whose batch norm TapedOp::recompute_batch_norm() does not reproduce: the op is run again.
  void run_batch_norms_again();

  plan::OpIndex end() const { return sites_.ops.next_id(); }  // one past the last op
  const plan::Sites::Op& op(plan::OpIndex at) const { return sites_.ops[at]; }
  const plan::Sites& sites() const { return sites_; }
  std::span<const plan::Action> before(plan::OpIndex op) const { return at(op, false); }
  std::span<const plan::Action> after(plan::OpIndex op) const { return at(op, true); }
  // The key of the last op that reads from the pool and is not small (Sites::Op::small).
  std::uint64_t last_key() const { return last_key_; }
  // Is the value made by an op that was left out? Then its storage is small, and known only once an op reads it.
  bool is_loose(plan::ValueIndex value) const { return loose_[value]; }
  // `action`: a Drop from before() or after(). True if the step does not make that value again.
  bool is_last(const plan::Action& action) const { return last_[static_cast<std::size_t>(&action - actions_.data())]; }
  // Does the plan run this op again?
  bool taped(plan::OpIndex op) const { return taped_[op]; }
  // The ops that the plan runs again and that read this value.
  std::span<const plan::OpIndex> taped_readers(plan::ValueIndex value) const { return taped_readers_[value]; }
  // The op that makes this value; plan::kNone: it was there before the step.
  plan::OpIndex maker(plan::ValueIndex value) const { return makers_[value]; }

  // The plan's figures for one step. peak() counts the requested bytes of tensors that are present at once. step() is
  // the time of the step that the plan was made for. overhead() is the extra time, bound() the least extra time that
  // any plan can cost (zero if not computed).
  Bytes peak() const { return peak_; }
  Seconds step() const { return step_; }
  Seconds overhead() const { return overhead_; }
  Seconds bound() const { return bound_; }
  std::uint64_t recomputes() const { return recomputes_; }  // ops that a step runs again
  std::uint64_t spills() const { return spills_; }

 private:
  std::span<const plan::Action> at(plan::OpIndex op, bool after) const;
  Table<plan::ValueIndex, bool> needed_again() const;
  void leave_idle_ops_out();
  Table<plan::OpIndex, bool> not_told_apart(const std::function<bool(plan::OpIndex)>& idle) const;
  void find_last();

  plan::Sites sites_;
  std::vector<plan::Action> actions_;
  std::uint64_t last_key_ = 0;
  std::vector<bool> last_;            // index: as actions_
  std::vector<std::uint32_t> first_;  // index of the first action before op i: at 2 i; of those after it: at 2 i + 1
  Table<plan::ValueIndex, plan::OpIndex> makers_;
  Table<plan::ValueIndex, bool> loose_;
  Table<plan::OpIndex, bool> taped_;
  Table<plan::ValueIndex, std::vector<plan::OpIndex>> taped_readers_;
  Bytes peak_;
  Seconds step_, overhead_, bound_;
  std::uint64_t recomputes_ = 0, spills_ = 0;
};

// Reads a plan's file. NotFound: it cannot be opened. BadFile: it holds no plan of this version. BadArgument if it has
// nothing to carry out (no plan was needed, or none was found), or was made with another torch or device.
Result<std::shared_ptr<PlanProgram>> read_program(const std::string& file, const std::string& torch,
                                                  const std::string& device);

}  // namespace ullage::runtime
