// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compares two takes event by event, for compare(). Storages are paired in the order of their births. Storages from
// before the take are paired when they are first used.
//
// Consecutive deaths, with the Unsave events among them, may come in any order, because containers free their tensors
// in no fixed order. So may births and deaths of several threads within one op:
//
//   first   ... OpBegin  born a  born b  died a  OpEnd      A run: births and deaths with no other event between them.
//   other   ... OpBegin  born x  born y  died y  OpEnd      Compared as sets if workers take part: threads that run no
//                                                           op themselves while another thread runs one.
//
// A process makes some storages once and keeps them, so a later take of the same process has them from before. So a
// birth of the first take is skipped on three conditions. The storage outlives the first take. The other take has an
// unpaired storage of the same size from before. And the other take's next event is not the birth of a storage that
// outlives that take.

#include "ullage/predict/sequence.h"

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ullage::predict {

class Comparison final {
 public:
  // `left_out`: storages to skip (varying_blocks.h), by StorageId. `index` is that of the other take, for messages. The
  // comparison keeps references to the takes and lists.
  Comparison(const trace::Take& first, const std::vector<bool>& left_out, const trace::Take& other,
             const std::vector<bool>& other_left_out, std::size_t index);

  // Returns the first difference; nothing if the takes do the same. Call once; the getters are valid afterwards.
  std::optional<Difference> run();

  // The other take's storage for each storage of the first take, or kNoPartner. Index: StorageId of the first take.
  const std::vector<StorageId>& partners() const { return partner_; }
  // The runs of the first take's events that were compared as sets.
  const std::vector<EventRange>& unordered() const { return unordered_; }

 private:
  struct Side {
    Side(const trace::Take& take, const std::vector<bool>& left_out);
    bool skips(std::size_t event) const;

    const trace::Take& take;
    const std::vector<bool>& left_out;
    std::vector<bool> by_worker;  // index: EventId; a birth on a thread without an op while another thread runs one
    std::size_t at = 0;
    std::size_t role = 0, border = 0, charge = 0;  // index of the next of Take::roles, borders, charges to compare
  };
  static std::size_t end_of_run(const trace::Take& take, std::size_t from);
  static bool any_worker(const Side& side, std::size_t end);

  bool said(const char* detail);
  bool pair(StorageId mine, StorageId theirs);
  bool same_tensors(OpId op, bool outputs);
  bool same_op(OpId op, OpId other);
  bool same_event(const trace::Event& mine, const trace::Event& theirs);
  bool same_notes();
  bool same_role(const trace::RoleSeen& mine, const trace::RoleSeen& theirs);
  bool same_run(std::size_t end, std::size_t other_end);
  bool same_deaths();
  bool pass_over_kept();
  void skip_left_out();
  bool step();
  Difference difference() const;

  Side first_, other_;
  std::size_t index_;
  std::size_t run_end_ = 0;  // where the current run of births and deaths in the first take ends
  std::vector<StorageId> partner_, partner_of_other_;
  std::vector<EventRange> unordered_;
  std::unordered_multimap<std::uint64_t, StorageId> spare_;  // the other take's storages from before it, by bytes
  std::string detail_;                                       // more on the first difference, if the event is not enough
};

}  // namespace ullage::predict
