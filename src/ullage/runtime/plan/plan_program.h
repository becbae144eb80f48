// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan made ready to be carried out: what to do before and after each op, and which ops to keep on tape for it. No
// torch here.

#include "ullage/base/result.h"
#include "ullage/plan/file/plan_file.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ullage::runtime {

class PlanProgram final {
 public:
  // As verified, or as read from a file.
  PlanProgram(plan::Sites sites, const plan::Plan& plan);

  // For a build of torch whose kernels look at all that they are given.
  void read_everything();
  // For one whose batch norm cannot be recomputed by TapedOp::recompute_batch_norm(): it is run again.
  void run_batch_norms_again();

  plan::OpIndex end() const { return sites_.ops.next_id(); }  // one behind the last op
  const plan::Sites::Op& op(plan::OpIndex at) const { return sites_.ops[at]; }
  const plan::Sites& sites() const { return sites_; }
  std::span<const plan::Action> before(plan::OpIndex op) const { return at(op, false); }
  std::span<const plan::Action> after(plan::OpIndex op) const { return at(op, true); }
  // Of a Drop: the step does not make that value again.
  bool is_last(const plan::Action& action) const { return last_[static_cast<std::size_t>(&action - actions_.data())]; }
  // The plan runs it again.
  bool taped(plan::OpIndex op) const { return taped_[op]; }
  // Ops that it runs again and that read this value.
  std::span<const plan::OpIndex> taped_readers(plan::ValueIndex value) const { return taped_readers_[value]; }
  // The op that makes it; none: it comes from outside.
  plan::OpIndex maker(plan::ValueIndex value) const { return makers_[value]; }

  Bytes peak() const { return peak_; }
  Seconds overhead() const { return overhead_; }
  Seconds bound() const { return bound_; }
  std::uint64_t recomputes() const { return recomputes_; }  // ops that a step runs again
  std::uint64_t spills() const { return spills_; }

 private:
  std::span<const plan::Action> at(plan::OpIndex op, bool after) const;
  void find_last();

  plan::Sites sites_;
  std::vector<plan::Action> actions_;
  std::vector<bool> last_;            // index: as actions_
  std::vector<std::uint32_t> first_;  // of the actions before op i: at 2 i, after it: at 2 i + 1
  Table<plan::ValueIndex, plan::OpIndex> makers_;
  Table<plan::OpIndex, bool> taped_;
  Table<plan::ValueIndex, std::vector<plan::OpIndex>> taped_readers_;
  Bytes peak_;
  Seconds overhead_, bound_;
  std::uint64_t recomputes_ = 0, spills_ = 0;
};

// From a plan's file. BadFile, NotFound; BadArgument for one that needs nothing or cannot be met, or was made with
// another torch.
Result<std::shared_ptr<PlanProgram>> read_program(const std::string& file, const std::string& torch,
                                                  const std::string& device);

}  // namespace ullage::runtime
