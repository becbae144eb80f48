// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes takes by hand. A small program is "run" at given knobs, and what it does is put into a take as the recorder
// would do it.

#include "ullage/trace/take/take.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ullage::predict {

class Program {
 public:
  explicit Program(std::vector<Knob> knobs);

  std::int64_t knob(const std::string& name) const;

  StorageId from_before(std::uint64_t bytes);
  StorageId make(std::uint64_t bytes);            // made by the running op, if there is one
  StorageId make_on_worker(std::uint64_t bytes);  // on a thread without an op
  void free(StorageId id);
  OpId begin(const std::string& name, const std::vector<trace::TensorUse>& inputs = {}, std::uint32_t thread = 0);
  void end(OpId op, const std::vector<trace::TensorUse>& outputs = {});
  // Calls begin(), make() and end().
  StorageId op(const std::string& name, std::uint64_t bytes, const std::vector<trace::TensorUse>& inputs = {});
  void save(StorageId id);
  void unsave(StorageId id);
  void role(StorageId id, trace::Role role, const std::string& name = {});
  void step_end();
  void phase(const std::string& name, const std::vector<Knob>& knobs = {});
  void phase_end();
  void charge(std::int64_t bytes);
  void lose(std::uint64_t events);
  void refuse(std::uint64_t bytes);

  trace::Take take();

 private:
  EventId next() const { return take_.trace.end(); }
  template <class T>
  void add(T event) {
    trace::Event one;
    one.what = event;
    one.at = trace::Microseconds{std::int64_t(take_.trace.events.size())};
    take_.trace.events.push_back(one);
  }
  StorageId born(std::uint64_t bytes, OpId op);

  trace::Take take_;
  std::vector<OpId> running_;
};

trace::TensorUse reads(StorageId id, std::vector<std::int64_t> sizes);
trace::TensorUse gives(StorageId id, std::vector<std::int64_t> sizes);

using Does = std::function<void(Program&)>;

// Returns one take of the program for each entry of `knobs`.
trace::TraceFile takes(const std::vector<std::vector<Knob>>& knobs, const Does& run);
// Returns one take for each batch.
trace::TraceFile takes_by_batch(const Does& run, std::vector<std::int64_t> batches = {2, 3, 4});

}  // namespace ullage::predict
