// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values that a random program works on, and which of them it may write in place. Choices depend on the seed and on
// these rules, never on contents or addresses. So every step and every run of one seed is the same sequence of ops.

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace random_program {

using torch::Tensor;

// Pictures with all channels, with half of them, or with half the side.
enum class Kind { Full, Half, Small };

// The facts that all values in one storage share.
struct Block {
  bool fixed = false;  // must not be written: autograd saved its bytes, or torch forbids a write through some view
};

struct Value {
  Tensor tensor;
  Kind kind = Kind::Full;
  std::shared_ptr<Block> block = std::make_shared<Block>();
};

class Values final {
 public:
  Values(std::mt19937_64& random, std::size_t most) : random_(random), most_(most) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t percent) { return below(100) < percent; }

  // Picks a value of the kind; there is always one.
  Value any(Kind kind);
  Value any() { return any(static_cast<Kind>(below(3))); }
  // Picks a value that may be written in place; null if there is none.
  Value* writable();

  // Adds a value. If there are many already, it replaces another of its kind, whose tensor is released.
  void put(Tensor tensor, Kind kind) { put(Value{std::move(tensor), kind, std::make_shared<Block>()}); }
  void put(Value value);
  // As put(), for a tensor that autograd saved because the op that made it needs its output in backward.
  void put_fixed(Tensor tensor, Kind kind) { put(Value{std::move(tensor), kind, std::make_shared<Block>(true)}); }
  // `tensor` is a view of `of`.
  void put_view(Tensor tensor, Kind kind, const Value& of) { put(Value{std::move(tensor), kind, of.block}); }

  // Call this when autograd is switched on. Storages with views that were made without it are not written any more.
  void fix_views();
  std::vector<Value>& all() { return values_; }
  // Means of some of the replaced values. The loss uses them, so that backward runs through the ops that made those.
  const std::vector<Tensor>& means() const { return means_; }

 private:
  std::mt19937_64& random_;
  const std::size_t most_;
  std::vector<Value> values_;
  std::vector<Tensor> means_;
};

}  // namespace random_program
