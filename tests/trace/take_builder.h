// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a take op by op, as a recorder does.

#include "ullage/trace/take/take.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ullage::trace::test {

enum class Mode { Grad, NoGrad, Backward };

// One op. It allocates `makes` for its outputs, and frees `scratch` before it ends.
struct OpSpec {
  std::string name;
  std::vector<StorageId> reads{};
  std::vector<StorageId> writes{};
  std::vector<Bytes> makes{};
  std::vector<std::pair<StorageId, SavedKind>> saves{};  // by autograd, before it ends
  std::vector<Bytes> scratch{};
  std::string layer{};
  std::string node{};
  std::string line{};
};

class TakeBuilder final {
 public:
  void mode(Mode mode) { mode_ = mode; }

  StorageId from_before(Bytes bytes);
  StorageId allocate(Bytes bytes);  // outside any op, unless one is open
  void free(StorageId storage);
  std::vector<StorageId> op(const OpSpec& spec);
  StorageId op1(const OpSpec& spec) { return op(spec).at(0); }  // its only output
  OpId open(const OpSpec& spec);                                // ops until close() are inside
  void close(OpId op);
  void save(StorageId storage, SavedKind kind) { add(event::Save{storage, kind}); }
  void unsave(StorageId storage) { add(event::Unsave{storage}); }
  void role(StorageId storage, Role role, std::string name = {});
  void step_told();
  void charge(Bytes bytes) { take_.charges.push_back({now(), static_cast<std::int64_t>(bytes.count)}); }
  void discharge(Bytes bytes) { take_.charges.push_back({now(), -static_cast<std::int64_t>(bytes.count)}); }
  void gap(std::uint64_t events);                                  // adds an event for the gap
  void sizes(StorageId storage, std::vector<std::int64_t> sizes);  // for all uses of the storage, earlier ones too

  std::uint64_t ops() const { return take_.trace.ops.size(); }
  EventId now() const { return take_.trace.end(); }
  Take take(Take::End end = Take::End::Program) const;

 private:
  void add(auto what) { take_.trace.events.push_back({what, {}, {}}); }
  TensorUse use(StorageId storage, TensorUse::How how) const;

  Take take_;
  Mode mode_ = Mode::Grad;
  std::vector<OpId> open_;
  std::map<std::uint64_t, std::vector<std::int64_t>> sizes_;
};

}  // namespace ullage::trace::test
