// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recomputer with known results. It fills a new storage with words that a seed determines, and hands its pages over
// to the dropped storage.

#include "ullage/store/pager.h"

#include <functional>
#include <map>
#include <mutex>
#include <variant>

namespace ullage::store {

class Refill final : public Recomputer {
 public:
  using Fill = std::function<void(Address at, Bytes size, std::uint64_t seed)>;
  Refill(Pager& pager, Fill fill) : pager_(pager), fill_(std::move(fill)) {}

  void know(Address at, Bytes size, std::uint64_t seed) {
    const std::lock_guard guard(lock_);
    known_[at] = {size, seed};
  }
  bool recompute(Address at, bool at_fault) override {
    Known known;
    {
      const std::lock_guard guard(lock_);
      ++calls_;
      at_faults_ += at_fault ? 1 : 0;
      const auto found = known_.find(at);
      if (found == known_.end()) return false;
      known = found->second;
    }
    const auto placed = pager_.allocate(known.size);
    const Address* from = std::get_if<Address>(&placed);
    if (from == nullptr) return false;
    fill_(*from, known.size, known.seed);
    const bool adopted = pager_.planned().adopt(at, *from);
    pager_.free(*from);
    return adopted;
  }

  std::uint64_t calls() const { return look(calls_); }
  std::uint64_t at_faults() const { return look(at_faults_); }

 private:
  struct Known {
    Bytes size;
    std::uint64_t seed = 0;
  };
  std::uint64_t look(const std::uint64_t& count) const {
    const std::lock_guard guard(lock_);
    return count;
  }

  Pager& pager_;
  const Fill fill_;
  mutable std::mutex lock_;
  std::map<Address, Known> known_;
  std::uint64_t calls_ = 0;
  std::uint64_t at_faults_ = 0;
};

}  // namespace ullage::store
