// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state that the verifier simulates: where the bytes of each value are, and which value each storage of the program
// has. There is one call for each thing that happens, in the order of the timeline (step.h). The first thing that is
// not allowed ends the simulation.

#include "ullage/base/result.h"
#include "ullage/plan/verify/verifier.h"
#include "ullage/plan/verify/verifier_pool.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

class VerifierMachine final {
 public:
  // ContractError if the step's own numbers do not fit together. `step` must outlive the machine.
  explicit VerifierMachine(const Step& step);

  // All of these return false if something is not allowed; only then may refused() be called, which says what.

  // The first begin_step() spills the values in `away` before the step. Later ones ignore `away`, because storages that
  // live from step to step stay where the last step left them.
  bool begin_step(const std::vector<ValueIndex>& away);
  bool pass_gap(GapIndex gap);
  bool enter(OpIndex op);  // actions from here on are before it
  bool act(const Action& action);
  bool run(OpIndex op);  // actions from here on are after it
  bool end_step();

  const Error& refused() const { return *refused_; }
  // Those of the current step; `peak` and `peak_at` are those of all steps so far.
  const Verified& figures() const { return figures_; }

 private:
  enum class Home {
    None,
    Program,  // in its storage of the program; if the program freed that, Ullage holds it (Storage::held)
    Own,      // in a storage that Ullage made for it
  };
  enum class State { There, Out, Coming };  // Out: spilled; Coming: read ahead, counts as present, not usable yet
  enum class Gone { NotYet, Overwritten, Died, Dropped, Recomputed };
  struct Where {
    Home home = Home::None;
    State state = State::There;
    bool copy = false;     // the tier has it
    bool writing = false;  // by WriteAhead
    Gone gone = Gone::NotYet;
    OpIndex gone_at = kNone;
  };
  struct Storage {
    bool alive = false;
    bool held = false;
    std::optional<ValueIndex> newest;  // none: the step does not use it
  };

  // verifier_words.cpp
  bool refuse(const std::string& message);
  bool refuse(const Action& action, const std::string& message);
  std::string text(OpIndex op) const;
  std::string text(ValueIndex value) const;
  std::string text(const Action& action) const;
  std::string why_not(ValueIndex value) const;  // what to say after "it": where the value is, or why it is gone

  // verifier_machine.cpp
  Bytes bytes_of(ValueIndex value) const;
  void check_step() const;
  bool send_away(const std::vector<ValueIndex>& away);
  bool dies(StorageIndex storage);
  bool unfinished(ValueIndex value, std::string& what) const;
  bool look_at_reads(OpIndex op);
  void born(StorageIndex storage, std::optional<ValueIndex> value);
  void lose(ValueIndex value, Gone gone);
  void note(Bytes level);

  // verifier_actions.cpp
  bool drop(const Action& action);
  bool hold(const Action& action);
  bool spill(const Action& action);
  bool restore(const Action& action);
  bool recompute(const Action& action);
  bool may_keep(const Action& action);
  bool has_what_it_reads(const Action& action, const Recompute& way);
  void recompute_in_place(const Action& action, ValueIndex before, ValueIndex made);
  void put(ValueIndex made);
  std::optional<ValueIndex> overwritten(const StepOp& op, std::size_t made) const;

  const Step& step_;
  Table<StorageIndex, std::optional<ValueIndex>>
      first_;  // the value with which the storage begins the step; none: an op makes its first
  Table<ValueIndex, Where> where_;
  Table<StorageIndex, Storage> storages_;
  VerifierPool pool_;
  Bytes level_;
  Verified figures_;
  Table<StorageIndex, bool> away_;
  bool begun_ = false;
  OpIndex at_ = kNone;   // the current op; in a gap, the next one
  bool in_gap_ = false;  // in the gap before that op
  bool ran_ = false;     // the current op has run
  std::optional<Error> refused_;
};

}  // namespace ullage::plan
