// SPDX-License-Identifier: Apache-2.0
#include "ullage/predict/cuda.h"
#include "ullage/predict/cuda_rules.h"
#include "ullage/predict/thresholds.h"
#include "ullage/trace/take/take_meaning.h"
#include "ullage/trace/take/tensor_use.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

namespace ullage::predict {
namespace {

using trace::Take;

constexpr Bytes kLargeCard{70ull << 30};  // only Hopper and later cards are sold with this much, except one A100

class Translator final {
 public:
  Translator(const trace::TraceFile& file, const Take& take, std::optional<Bytes> capacity)
      : take_(take), large_card_(capacity && *capacity >= kLargeCard) {
    Take copy = take;
    meaning_ = trace::understand(copy);
    threads_met_.resize(cuda_rules().size());
    for (std::size_t category = 0; category < trace::kCategories; ++category)
      history_.rows.push_back({std::string(name(static_cast<trace::Category>(category))), {}, ""});
    const bool lists = std::any_of(take.trace.ops.begin(), take.trace.ops.end(), [](const trace::Op& op) {
      return op.name.starts_with("aten::_foreach_") || op.name.starts_with("aten::_fused_");
    });
    holds_lists_ = is_python(file) && !lists;
    block_of_.resize(take.trace.storages.size(), kNone);
    measure_outside();
    optimizer_until_.resize(take.trace.events.size());
    for (std::size_t i = optimizer_until_.size(); i-- > 0;) {
      const bool here = phase(EventId{i}) == trace::Phase::Optimizer;
      optimizer_until_[i] = !here ? i : i + 1 < optimizer_until_.size() ? optimizer_until_[i + 1] : i + 1;
    }
  }

  CudaHistory run() && {
    for (std::size_t i = 0; i < take_.trace.storages.size(); ++i)
      if (take_.trace.storages[i].from_before) born(StorageId{i}, EventId{});
    for (std::size_t i = 0; i < take_.trace.events.size(); ++i) add_event(EventId{i});
    let_go(take_.trace.end());
    add_outside();
    return std::move(history_);
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  void add_event(EventId at) {
    if (phase(at) != trace::Phase::Optimizer) let_go(at);
    const auto& what = take_.trace.events[at.value].what;
    if (const auto* birth = std::get_if<trace::event::Allocation>(&what)) {
      born(birth->storage, at);
    } else if (const auto* death = std::get_if<trace::event::Free>(&what)) {
      died(death->storage, at);
    } else if (const auto* begin = std::get_if<trace::event::OpBegin>(&what)) {
      op_begins(begin->op, at);
    } else if (const auto* end = std::get_if<trace::event::OpEnd>(&what)) {
      op_ends(end->op, at);
    }
  }

  trace::Phase phase(EventId at) const {
    return at.value < meaning_.phases.size() ? meaning_.phases[at.value] : trace::Phase::Unknown;
  }

  // The op that a storage was born in. If its thread has no op, that is the innermost one running.
  OpId op_of(StorageId id) const {
    const OpId own = take_.trace.storages[id.value].op;
    if (own != trace::kNoOp || running_.empty()) return own;
    return running_.back();
  }

  // Is it memory that only the CPU's kernels take, by a rule that removes it?
  bool removed(StorageId id) const {
    const trace::Storage& storage = take_.trace.storages[id.value];
    const OpId op = op_of(id);
    if (storage.from_before || op.value >= take_.details.size() || storage.died > take_.details[op.value].end)
      return false;
    const std::string_view name = base_name(take_.trace.ops[op.value].name);
    for (const CudaRule& rule : cuda_rules()) {
      if (!listed(rule.ops, name)) continue;
      if (rule.effect == CudaEffect::RemoveWithin) return true;
      if (rule.effect == CudaEffect::RemoveNumbers && storage.bytes <= rule.bytes) return true;
      if (rule.effect == CudaEffect::RemoveVarying && storage.bytes <= varying_scratch(take_, op)) return true;
    }
    return false;
  }

  // Is it a temporary of one call of an optimizer that takes lists of parameters?
  bool held(StorageId id) const {
    const trace::Storage& storage = take_.trace.storages[id.value];
    return holds_lists_ && !storage.from_before && storage.born < storage.died &&
           storage.born.value < optimizer_until_.size() && storage.died.value < optimizer_until_[storage.born.value];
  }
  // Is it a temporary that such an optimizer does not make, because it works in place there?
  bool in_place(StorageId id) const {
    const OpId op = take_.trace.storages[id.value].op;
    if (!held(id) || op.value >= take_.trace.ops.size()) return false;
    const std::string_view name = base_name(take_.trace.ops[op.value].name);
    return std::any_of(cuda_rules().begin(), cuda_rules().end(), [&](const CudaRule& rule) {
      return rule.effect == CudaEffect::HoldInLists && listed(rule.ops, name);
    });
  }

  trace::Category category(StorageId id) const {
    return id.value < meaning_.categories.size() ? meaning_.categories[id.value] : trace::Category::Unattributed;
  }

  // A parameter that is not the pool's (one of a mapped file) has no bytes in a take. A card holds it, with the bytes
  // of its first use: later ones may be views.
  void measure_outside() {
    for (const trace::OpDetail& detail : take_.details) {
      for (const trace::TensorUse& use : detail.uses) {
        if (take_.trace.storages[use.storage.value].bytes > Bytes{}) continue;
        if (category(use.storage) != trace::Category::Parameters) continue;
        outside_.try_emplace(use.storage.value, trace::bytes_of(use));
      }
    }
  }

  void born(StorageId id, EventId at) {
    const trace::Storage& storage = take_.trace.storages[id.value];
    const auto outside = outside_.find(id.value);
    const Bytes bytes = outside != outside_.end() ? outside->second : storage.bytes;
    if (bytes == Bytes{} || removed(id) || in_place(id)) return;
    block_of_[id.value] = add(bytes, static_cast<std::size_t>(category(id)), at);
  }

  void died(StorageId id, EventId at) {
    const std::size_t block = block_of_[id.value];
    if (block == kNone) return;
    block_of_[id.value] = kNone;
    if (held(id)) {
      held_.push_back(block);
    } else {
      free(block, at);
    }
  }

  void op_begins(OpId op, EventId at) {
    running_.push_back(op);
    const std::string_view name = base_name(take_.trace.ops[op.value].name);
    for (std::size_t i = 0; i < cuda_rules().size(); ++i) {
      const CudaRule& rule = cuda_rules()[i];
      if (!listed(rule.ops, name)) continue;
      if (rule.effect == CudaEffect::AddForThread && threads_met_[i].insert(take_.details[op.value].backward).second)
        add(large_card_ ? rule.large_card : rule.bytes, row_of(rule), at);
      if (rule.effect == CudaEffect::AddWithin) within_.push_back({op, add(rule.bytes, row_of(rule), at)});
    }
  }

  void op_ends(OpId op, EventId at) {
    std::erase(running_, op);
    std::erase_if(within_, [&](const Within& within) {
      if (within.op == op) free(within.block, at);
      return within.op == op;
    });
  }

  void let_go(EventId at) {
    for (const std::size_t block : held_) free(block, at);
    held_.clear();
  }

  std::size_t row_of(const CudaRule& rule) {
    const auto found =
        std::find_if(history_.rows.begin(), history_.rows.end(), [&](const Row& row) { return row.name == rule.row; });
    if (found != history_.rows.end()) return static_cast<std::size_t>(found - history_.rows.begin());
    history_.rows.push_back({std::string(rule.row), {}, std::string(rule.source)});
    return history_.rows.size() - 1;
  }

  std::size_t add(Bytes bytes, std::size_t row, EventId at) {
    history_.blocks.push_back({bytes, row});
    history_.requests.push_back({at, history_.blocks.size() - 1, false});
    return history_.blocks.size() - 1;
  }
  void free(std::size_t block, EventId at) { history_.requests.push_back({at, block, true}); }

  void add_outside() {
    for (const CudaRule& rule : cuda_rules()) {
      const bool concerns =
          rule.ops == "*" || std::any_of(take_.trace.ops.begin(), take_.trace.ops.end(),
                                         [&](const trace::Op& op) { return listed(rule.ops, base_name(op.name)); });
      if (!concerns || (rule.effect != CudaEffect::AddToProcess && rule.effect != CudaEffect::Unknown)) continue;
      const Bytes bytes = rule.effect == CudaEffect::AddToProcess ? rule.bytes : Bytes{};
      history_.outside += bytes;
      history_.outside_rows.push_back({std::string(rule.row), bytes, std::string(rule.source)});
    }
  }

  struct Within {
    OpId op;
    std::size_t block;
  };

  const Take& take_;
  const bool large_card_;
  trace::TakeMeaning meaning_;
  bool holds_lists_ = false;
  CudaHistory history_;
  std::unordered_map<std::uint64_t, Bytes> outside_;  // parameters without bytes in the take, by StorageId
  std::vector<std::size_t> block_of_;                 // index: StorageId
  std::vector<std::uint64_t> optimizer_until_;        // index: EventId; first event from it on outside Phase::Optimizer
  std::vector<OpId> running_;                         // innermost last
  std::vector<Within> within_;                        // blocks that live as long as an op
  std::vector<std::size_t> held_;                     // dead temporaries that live on until the optimizer's call ends
  std::vector<std::set<bool>> threads_met_;           // index: rule; contains OpDetail::backward of the threads met
};

}  // namespace

bool is_python(const trace::TraceFile& file) {
  if (file.command.empty()) return false;
  const std::string& program = file.command.front();
  return program.substr(program.rfind('/') + 1).starts_with("python") || program.ends_with(".py");
}

CudaHistory cuda_history(const trace::TraceFile& file, const Take& take, std::optional<Bytes> capacity) {
  return Translator(file, take, capacity).run();
}

}  // namespace ullage::predict
