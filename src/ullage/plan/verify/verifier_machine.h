// SPDX-License-Identifier: Apache-2.0
#pragma once

// The machine on which the verifier carries a schedule out: of each value where its bytes are, of each storage of the
// program which value it has. One call for each thing that happens, in the order of the timeline (step.h). The first
// thing that must not happen ends it.

#include "ullage/base/result.h"
#include "ullage/plan/verify/verifier.h"
#include "ullage/plan/verify/verifier_pool.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::plan {

class VerifierMachine final {
 public:
  // ContractError: the step's own numbers do not fit together. `step` must outlive the machine.
  explicit VerifierMachine(const Step& step);

  // All return false once something must not be; refused() says what.
  bool begin_step(const std::vector<ValueIndex>& away);  // the first one; a later one begins as the last ended
  bool pass_gap(GapIndex gap);
  bool enter(OpIndex op);  // what follows is before it
  bool act(const Action& action);
  bool run(OpIndex op);  // what follows is after it
  bool end_step();

  const Error& refused() const { return *refused_; }
  const Verified& figures() const { return figures_; }  // of this step; peak: of all so far

 private:
  enum class Home {
    None,
    Program,  // in its storage of the program, which may have died and be held
    Own,      // in a storage that Ullage made for it
  };
  enum class State { There, Out, Coming };  // Coming: read ahead, counted as present, but not to be used
  enum class Gone { NotYet, Overwritten, Died, Dropped, Recomputed };
  struct Where {
    Home home = Home::None;
    State state = State::There;
    bool copy = false;     // the spill file has it
    bool writing = false;  // WriteAhead: being written
    Gone gone = Gone::NotYet;
    OpIndex gone_at = kNone;
  };
  struct Storage {
    bool alive = false;
    bool held = false;
    std::optional<ValueIndex> newest;  // none: nothing of the step ever looks at it
  };

  // verifier_words.cpp
  bool refuse(const std::string& message);
  bool refuse(const Action& action, const std::string& message);
  std::string text(OpIndex op) const;
  std::string text(ValueIndex value) const;
  std::string text(const Action& action) const;
  std::string why_not(ValueIndex value) const;  // it is not there

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
  Table<StorageIndex, std::optional<ValueIndex>> first_;  // the value that no op makes
  Table<ValueIndex, Where> where_;
  Table<StorageIndex, Storage> storages_;
  VerifierPool pool_;
  Bytes level_;
  Verified figures_;
  Table<StorageIndex, bool> away_;
  bool begun_ = false;
  OpIndex at_ = kNone;   // the op that the timeline is at; in a gap, the next one
  bool in_gap_ = false;  // before that op's "before"
  bool ran_ = false;     // that op
  std::optional<Error> refused_;
};

}  // namespace ullage::plan
