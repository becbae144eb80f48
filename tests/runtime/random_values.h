// SPDX-License-Identifier: Apache-2.0
#pragma once

// The values that a random program works on, and what it may still do with each: which are written in place, which
// autograd holds as they are. Choices depend on the seed and on these rules, never on numbers or addresses, so that
// every step and every run of one seed is the same sequence of ops.

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace random_program {

using torch::Tensor;

// Pictures: of all channels, of half of them, of half the side.
enum class Kind { Full, Half, Small };

// Of one storage.
struct Block {
  bool fixed = false;  // autograd holds its bytes, or a view of it that torch does not let be written behind its back
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

  // One of the kind; there is always one.
  Value any(Kind kind);
  Value any() { return any(static_cast<Kind>(below(3))); }
  // One that may be written in place, or nothing.
  Value* writable();

  // Takes the place of another of its kind once there are many: that one's tensor goes.
  void put(Tensor tensor, Kind kind) { put(Value{std::move(tensor), kind, std::make_shared<Block>()}); }
  void put(Value value);
  // Autograd holds it too: what made it needs its output in backward.
  void put_fixed(Tensor tensor, Kind kind) { put(Value{std::move(tensor), kind, std::make_shared<Block>(true)}); }
  // `tensor` is a view of `of`.
  void put_view(Tensor tensor, Kind kind, const Value& of) { put(Value{std::move(tensor), kind, of.block}); }

  // From here on autograd watches: what was viewed without it is not written any more.
  void fix_views();
  std::vector<Value>& all() { return values_; }
  // Of some of those that are gone, so that backward goes through what made them.
  const std::vector<Tensor>& means() const { return means_; }

 private:
  std::mt19937_64& random_;
  const std::size_t most_;
  std::vector<Value> values_;
  std::vector<Tensor> means_;
};

}  // namespace random_program
