// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two takes, event by event: the walk behind compare(). Storages are known again by the order of their births; those
// from before by what is first done to them.
//
// Deaths with nothing else between them (and what is given up with them) come in any order: containers that are let go
// at once keep none. So do births and deaths of several threads within one op:
//
//   first   ... OpBegin  born a  born b  died a  OpEnd      within one op, between other events: a run of births
//   other   ... OpBegin  born x  born y  died y  OpEnd      and deaths; as sets where threads without an op take part
//
// A process makes some storages once and keeps them. A later take of the same process has them from before; so a birth
// of the first take that the other one lacks, of a storage that outlives the take, is passed over where the other has
// one of the same size from before that nobody was paired with.

#include "ullage/predict/sequence.h"

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ullage::predict {

class Comparison final {
 public:
  // `index` of the other take, for messages. Takes and what is left out of them (varying_blocks.h; index: StorageId)
  // must outlive the comparison.
  Comparison(const trace::Take& first, const std::vector<bool>& left_out, const trace::Take& other,
             const std::vector<bool>& other_left_out, std::size_t index);

  // None: they do the same. To be called once; the rest may be asked for afterwards.
  std::optional<Difference> run();

  // Index: StorageId of the first.
  const std::vector<StorageId>& partners() const { return partner_; }
  const std::vector<EventRange>& unordered() const { return unordered_; }

 private:
  struct Side {
    Side(const trace::Take& take, const std::vector<bool>& left_out);
    bool skips(std::size_t event) const;

    const trace::Take& take;
    const std::vector<bool>& left_out;
    std::vector<bool> by_worker;  // index: EventId; a birth on a thread with no op, while an op is running elsewhere
    std::size_t at = 0;
    std::size_t role = 0, border = 0, charge = 0;  // next to be compared
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
  std::size_t run_end_ = 0;  // of the run that the first is in
  std::vector<StorageId> partner_, partner_of_other_;
  std::vector<EventRange> unordered_;
  std::unordered_multimap<std::uint64_t, StorageId> spare_;  // from before in the other, by bytes
  std::string detail_;                                       // of the first difference, if the event does not tell
};

}  // namespace ullage::predict
