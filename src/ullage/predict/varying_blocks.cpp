// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/varying_blocks.h"

#include "ullage/predict/thresholds.h"

#include <algorithm>
#include <unordered_map>

namespace ullage::predict {
namespace {

using Blocks = std::vector<StorageId>;

// For each op the storages that it allocates, that die before it ends, and that no op uses; in the order of births.
std::unordered_map<std::uint64_t, Blocks> scratch_by_op(const trace::Take& take) {
  std::vector<bool> used(take.trace.storages.size());
  for (const trace::OpDetail& detail : take.details) {
    for (const trace::TensorUse& use : detail.uses) used[use.storage.value] = true;
  }
  std::unordered_map<std::uint64_t, Blocks> scratch;
  for (const trace::Event& event : take.trace.events) {
    const auto* born = std::get_if<trace::event::Allocation>(&event.what);
    if (born == nullptr || used[born->storage.value]) continue;
    const trace::Storage& storage = take.trace.storages[born->storage.value];
    if (storage.op == trace::kNoOp || storage.died > take.details[storage.op.value].end) continue;
    if (storage.died == take.trace.end()) continue;
    scratch[storage.op.value].push_back(born->storage);
  }
  return scratch;
}

// Aligns the blocks of one op in all takes so that each row of aligned blocks follows a law. Leaves out all others.
// Indices are places in the grid.
class Alignment final {
 public:
  Alignment(const trace::TraceFile& file, const Grid& grid, const std::vector<std::size_t>& order,
            std::vector<const Blocks*> blocks)
      : file_(file), order_(order), blocks_(std::move(blocks)), next_(order.size()), left_out_(order.size()) {
    std::vector<std::int64_t> first;
    for (const Grid::Axis& axis : grid.axes) first.push_back(axis.values.front());
    law_.emplace(grid, first);
  }

  void run() {
    while (!over(next_)) {
      if (lawful(next_)) {
        for (std::size_t& one : next_) ++one;
        continue;
      }
      // Leaves out one block in the takes that have more left, or one in each take. Prefers the first choice if it
      // makes the next row lawful, or if the second does not make it lawful either.
      const std::vector<std::size_t> more = without(true), all = without(false);
      const bool differ = more != next_;
      const auto fine = [&](const std::vector<std::size_t>& at) { return over(at) || lawful(at); };
      leave_out(differ && (fine(more) || !fine(all)) ? more : all);
    }
  }
  const std::vector<Blocks>& left_out() const { return left_out_; }

 private:
  bool over(const std::vector<std::size_t>& at) const {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] < blocks_[i]->size()) return false;
    }
    return true;
  }
  bool lawful(const std::vector<std::size_t>& at) const {
    std::vector<std::int64_t> counts;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] == blocks_[i]->size()) return false;
      counts.push_back(std::int64_t(file_.takes[order_[i]].trace.storages[(*blocks_[i])[at[i]].value].bytes.count));
    }
    return (*law_)(counts).has_value();
  }
  // The next places after skipping one block, in the takes that have more left than others or in all takes.
  std::vector<std::size_t> without(bool where_more) const {
    std::size_t least = SIZE_MAX;
    for (std::size_t i = 0; i < next_.size(); ++i) least = std::min(least, blocks_[i]->size() - next_[i]);
    std::vector<std::size_t> at = next_;
    for (std::size_t i = 0; i < at.size(); ++i) {
      const std::size_t left = blocks_[i]->size() - at[i];
      if (left > (where_more ? least : 0)) ++at[i];
    }
    return at;
  }
  void leave_out(const std::vector<std::size_t>& at) {
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (at[i] > next_[i]) left_out_[i].push_back((*blocks_[i])[next_[i]]);
    }
    next_ = at;
  }

  const trace::TraceFile& file_;
  const std::vector<std::size_t>& order_;
  std::vector<const Blocks*> blocks_;
  std::vector<std::size_t> next_;
  std::vector<Blocks> left_out_;
  std::optional<Evaluator> law_;
};

bool within_bounds(const trace::Take& take, OpId op, const Blocks& blocks) {
  Bytes sum;
  for (const StorageId id : blocks) sum += std::min(take.trace.storages[id.value].bytes, Bytes{1ull << 40});
  return sum <= varying_scratch(take, op);
}

}  // namespace

std::vector<std::vector<bool>> varying_blocks(const trace::TraceFile& file, const Grid& grid,
                                              const std::vector<std::size_t>& order) {
  std::vector<std::vector<bool>> varying;
  std::vector<std::unordered_map<std::uint64_t, Blocks>> scratch;
  std::size_t ops = SIZE_MAX;
  for (const trace::Take& take : file.takes) {
    varying.emplace_back(take.trace.storages.size());
    scratch.push_back(scratch_by_op(take));
    ops = std::min(ops, take.details.size());
  }
  static const Blocks none;
  for (std::size_t op = 0; op < ops; ++op) {
    const std::string& name = file.takes[0].trace.ops[op].name;
    const auto other_name = [&](const trace::Take& take) { return take.trace.ops[op].name != name; };
    if (std::ranges::any_of(file.takes, other_name)) break;  // compare() will report this difference
    std::vector<const Blocks*> blocks;
    Bytes allowed;
    for (const std::size_t take : order) {
      const auto found = scratch[take].find(op);
      blocks.push_back(found == scratch[take].end() ? &none : &found->second);
      if (!blocks.back()->empty()) allowed = std::max(allowed, varying_scratch(file.takes[take], OpId{op}));
    }
    if (allowed == Bytes{}) continue;
    Alignment alignment(file, grid, order, std::move(blocks));
    alignment.run();
    bool bounded = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
      bounded &= within_bounds(file.takes[order[i]], OpId{op}, alignment.left_out()[i]);
    }
    for (std::size_t i = 0; bounded && i < order.size(); ++i) {
      for (const StorageId id : alignment.left_out()[i]) varying[order[i]][id.value] = true;
    }
  }
  return varying;
}

}  // namespace ullage::predict
