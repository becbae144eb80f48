// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/meaning/lifetimes.h"

#include "ullage/base/check.h"
#include "ullage/trace/meaning/steps.h"

#include <algorithm>
#include <unordered_map>

namespace ullage::trace {
namespace {

// How many storages of one size are live now, and at most.
struct Crowd {
  std::uint64_t now = 0;
  std::uint64_t most = 0;
};
using Crowds = std::unordered_map<std::uint64_t, Crowd>;  // by bytes

class Lifetimes final {
 public:
  Lifetimes(const Trace& trace, const std::vector<StackMeaning>& meanings, const std::vector<Phase>& by_event)
      : trace_(trace), meanings_(meanings), phases_(by_event) {
    ULLAGE_CHECK(phases_.size() == trace_.events.size(), "phases of another trace");
    calls_.reserve(phases_.size());
    std::uint32_t call = 0;
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      if (i > 0 && phases_[i] != phases_[i - 1]) ++call;
      calls_.push_back(call);
    }
  }

  std::vector<Category> run() {
    categories_.reserve(trace_.storages.size());
    for (const Storage& one : trace_.storages) {
      ULLAGE_CHECK(one.stack.value < meanings_.size(), "meanings of other stacks");
      categories_.push_back(by_lifetime(one));
    }
    const bool recorded = std::ranges::any_of(meanings_, &StackMeaning::certain);
    if (!recorded) {
      hand_over();
      find_replaced_parameters();
      find_parameters();
      find_weight_copies();
    }
    return std::move(categories_);
  }

 private:
  bool never(EventId event) const { return event >= trace_.end(); }
  Phase phase(EventId event) const { return never(event) ? Phase::Unknown : phases_[event.value]; }

  Category by_lifetime(const Storage& one) const {
    const StackMeaning& meaning = meanings_[one.stack.value];
    if (meaning.certain) return meaning.category;
    Phase made = meaning.phase;
    // Without a stack, the phase comes from the events around it. Only the backward pass is sure in this way.
    if (one.stack == StackId{} && !one.from_before && phase(one.born) == Phase::Backward) made = Phase::Backward;
    const bool open = meaning.category == Category::Temporaries || one.stack == StackId{};
    if (made == Phase::Backward && open) {
      return phase(one.tensor_died) == Phase::Backward ? Category::Temporaries : Category::Gradients;
    }
    if (made == Phase::Optimizer && open) {
      const bool in_same_call =
          !one.from_before && !never(one.tensor_died) && calls_[one.born.value] == calls_[one.tensor_died.value];
      return in_same_call ? Category::Temporaries : Category::OptimizerState;
    }
    const bool graph_held_it = phase(one.tensor_died) == Phase::Backward;
    if (meaning.category == Category::Unattributed && graph_held_it) return Category::Activations;
    return meaning.category;
  }

  // An optimizer that does not work in place makes a new parameter and frees the old one, `p.data = p.data - step`. So
  // if it makes a storage that stays, and then frees a parameter or state of the same size, the new one replaces that.
  void hand_over() {
    std::unordered_map<std::uint64_t, std::vector<StorageId>> heirs;  // by bytes, of this call of the optimizer
    for (std::size_t i = 0; i < trace_.events.size(); ++i) {
      if (i > 0 && calls_[i] != calls_[i - 1]) heirs.clear();
      if (phases_[i] != Phase::Optimizer) continue;
      if (const auto* born = std::get_if<event::Allocation>(&trace_.events[i].what)) {
        if (categories_[born->storage.value] != Category::OptimizerState) continue;
        heirs[trace_.storages[born->storage.value].bytes.count].push_back(born->storage);
      } else if (const auto* died = std::get_if<event::Free>(&trace_.events[i].what)) {
        const auto found = heirs.find(trace_.storages[died->storage.value].bytes.count);
        if (found == heirs.end() || found->second.empty()) continue;
        Category old = categories_[died->storage.value];
        // Optimizer state from before the recording has no stack, and neither have gradients from before it. How many
        // new storages of the size wait for a free tells them apart. State is replaced one by one, so at most three
        // wait: two moments and the parameter. Gradients are freed after all new state was made, so more wait.
        const Storage& gone = trace_.storages[died->storage.value];
        const bool unknown = old == Category::Unattributed && gone.from_before && gone.stack == StackId{};
        if (unknown && found->second.size() <= 3) {
          old = categories_[died->storage.value] = Category::OptimizerState;
          chain_of_[died->storage.value] = chains_.size();
          chains_.push_back({died->storage});
        }
        if (old != Category::Parameters && old != Category::OptimizerState) continue;
        const StorageId heir = found->second.back();
        found->second.pop_back();
        categories_[heir.value] = old;
        if (const auto chain = chain_of_.find(died->storage.value); chain != chain_of_.end()) {
          chains_[chain->second].push_back(heir);
          chain_of_[heir.value] = chain->second;
        }
      }
    }
  }

  // Suppose that the optimizer replaced three blocks for each gradient, and that no other block can be the gradient's
  // parameter. Then the three are two moments and the parameter. The parameter is the block that is replaced last,
  // because its new value is computed from the new moments.
  void find_replaced_parameters() {
    Crowds gradients = crowds(Category::Gradients);
    Crowds known = crowds(Category::Parameters);
    for (const auto& [bytes, blocks] : unknown_from_before()) known[bytes].most += blocks.size();
    std::unordered_map<std::uint64_t, std::vector<const std::vector<StorageId>*>> replaced;  // chains, by bytes
    for (const std::vector<StorageId>& chain : chains_) {
      const std::uint64_t bytes = trace_.storages[chain.front().value].bytes.count;
      if (chain.size() > 1 && known[bytes].most == 0) replaced[bytes].push_back(&chain);
    }
    for (auto& [bytes, chains] : replaced) {
      if (chains.size() != 3 * gradients[bytes].most) continue;
      std::ranges::sort(chains, {}, [&](const auto* chain) { return trace_.storages[(*chain)[1].value].born; });
      for (std::size_t i = 2; i < chains.size(); i += 3) {
        for (const StorageId id : *chains[i]) categories_[id.value] = Category::Parameters;
      }
    }
  }

  Crowds crowds(Category category) const {
    Crowds crowds;
    const auto count = [&](StorageId id, int step) {
      if (categories_[id.value] != category) return;
      Crowd& crowd = crowds[trace_.storages[id.value].bytes.count];
      crowd.now += std::uint64_t(step);
      crowd.most = std::max(crowd.most, crowd.now);
    };
    for (std::size_t i = 0; i < trace_.storages.size(); ++i) {
      if (trace_.storages[i].from_before) count(StorageId{i}, 1);
    }
    for (const Event& one : trace_.events) {
      if (const auto* born = std::get_if<event::Allocation>(&one.what)) count(born->storage, 1);
      if (const auto* died = std::get_if<event::Free>(&one.what)) count(died->storage, -1);
    }
    return crowds;
  }

  static bool take_one(Crowds& crowds, Bytes bytes) {
    const auto found = crowds.find(bytes.count);
    if (found == crowds.end() || found->second.most == 0) return false;
    --found->second.most;
    return true;
  }

  // Finds parameters from before by size: each gradient has a parameter of its size, and so has optimizer state. If
  // the optimizer's call frees a block from before that has the size of a gradient, that block is a gradient itself.
  void find_parameters() {
    Crowds gradients = crowds(Category::Gradients);
    Crowds states = crowds(Category::OptimizerState);
    const Crowds known = crowds(Category::Parameters);
    for (const auto& [bytes, crowd] : known) {
      for (std::uint64_t i = 0; i < crowd.most; ++i) {
        take_one(gradients, Bytes{bytes});
        take_one(states, Bytes{bytes});
      }
    }
    for (std::size_t i = 0; i < trace_.storages.size(); ++i) {
      const Storage& one = trace_.storages[i];
      if (!one.from_before || one.stack != StackId{} || categories_[i] != Category::Unattributed) continue;
      if (phase(one.tensor_died) == Phase::Optimizer && gradients.contains(one.bytes.count)) {
        categories_[i] = Category::Gradients;
      } else if (never(one.tensor_died)) {
        const bool has_gradient = take_one(gradients, one.bytes);
        const bool has_state = take_one(states, one.bytes);
        if (has_gradient || has_state) categories_[i] = Category::Parameters;
      }
    }
  }

  // Returns, by their bytes, the storages of no known category that are there from the recording's begin to its end.
  std::unordered_map<std::uint64_t, std::vector<StorageId>> unknown_from_before() const {
    std::unordered_map<std::uint64_t, std::vector<StorageId>> found;
    for (std::size_t i = 0; i < trace_.storages.size(); ++i) {
      const Storage& one = trace_.storages[i];
      const bool unknown = categories_[i] == Category::Unattributed && one.stack == StackId{};
      if (one.from_before && unknown && never(one.tensor_died)) found[one.bytes.count].push_back(StorageId{i});
    }
    return found;
  }

  // Autocast copies each fp32 weight once and keeps the copy until autocast ends, or until the backward pass if the
  // graph holds it. So at most one copy of a parameter is live, of half its size. Other arguments are cast at the same
  // place, but not kept. If no gradient was made, only such a copy shows that a block from before the recording is a
  // parameter.
  void find_weight_copies() {
    if (std::ranges::none_of(meanings_,
                             [](const StackMeaning& one) { return one.autocast_cast || one.autocast_exit; })) {
      return;
    }
    Crowds weights = crowds(Category::Parameters);
    std::unordered_map<std::uint64_t, std::vector<StorageId>> unknown = unknown_from_before();
    Crowds copies;
    std::vector<bool> counted(categories_.size());
    const auto open = [&](StorageId id) {
      const Category now = categories_[id.value];
      return now == Category::Activations || now == Category::Temporaries || now == Category::Unattributed;
    };
    for (const Event& one : trace_.events) {
      if (const auto* born = std::get_if<event::Allocation>(&one.what)) {
        const Storage& storage = trace_.storages[born->storage.value];
        const std::uint64_t bytes = storage.bytes.count;
        if (!meanings_[storage.stack.value].autocast_cast || !open(born->storage) || bytes > UINT64_MAX / 2) continue;
        std::uint64_t& weights_of_size = weights[2 * bytes].most;
        if (copies[bytes].now >= weights_of_size) {
          const auto guess = unknown.find(2 * bytes);
          const bool kept = never(storage.tensor_died) || phase(storage.tensor_died) == Phase::Backward;
          if (!kept || guess == unknown.end() || guess->second.empty()) continue;
          categories_[guess->second.back().value] = Category::Parameters;
          guess->second.pop_back();
          ++weights_of_size;
        }
        ++copies[bytes].now;
        counted[born->storage.value] = true;
        categories_[born->storage.value] = Category::WeightCopies;
      } else if (const auto* freed = std::get_if<event::FreeRequest>(&one.what)) {
        if (meanings_[one.stack.value].autocast_exit && open(freed->storage)) {
          categories_[freed->storage.value] = Category::WeightCopies;
        }
      } else if (const auto* died = std::get_if<event::Free>(&one.what)) {
        if (counted[died->storage.value]) --copies[trace_.storages[died->storage.value].bytes.count].now;
      }
    }
  }

  const Trace& trace_;
  const std::vector<StackMeaning>& meanings_;
  const std::vector<Phase>& phases_;
  std::vector<std::uint32_t> calls_;  // index: EventId; a number that grows when the phase changes
  std::vector<Category> categories_;
  std::vector<std::vector<StorageId>> chains_;  // a block from before, and those that replaced it one after another
  std::unordered_map<std::uint32_t, std::size_t> chain_of_;  // by StorageId: index of its chain
};

}  // namespace

std::vector<Category> categories(const Trace& trace, const std::vector<StackMeaning>& meanings) {
  const std::vector<Phase> by_event = phases(trace, meanings);
  return categories(trace, meanings, by_event);
}

std::vector<Category> categories(const Trace& trace, const std::vector<StackMeaning>& meanings,
                                 const std::vector<Phase>& by_event) {
  return Lifetimes(trace, meanings, by_event).run();
}

}  // namespace ullage::trace
