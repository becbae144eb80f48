// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a dry run said: a CUDA program that ran with no card, on stand-ins for CUDA's libraries.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

struct DryReport {
  // Where in the program something happened; `file` empty: not known.
  struct Place {
    std::string file;
    int line = 0;
    std::string function;
  };
  struct Failure {
    std::string type;  // "torch.OutOfMemoryError"
    std::string text;
    Place place;
  };
  struct Refused {
    int card = 0;
    Bytes request;  // as the program asked
    Place place;
  };
  // A size that hung on values of the card which nobody knows.
  struct Bound {
    std::string function;  // of torch: "nonzero"
    std::string how;       // what the size was taken as: "the most", "one of each"
    Place place;           // of the first call
    std::uint64_t calls = 0;

    bool is_the_most() const { return how == "the most"; }  // else the true size may be larger
  };
  // Peaks of one card. `taken` is what nvidia-smi would show: `used`, which torch's allocator and others took of the
  // driver, and the contexts of the processes. `requested`, `allocated` and `reserved` are torch's own words, the
  // largest of any process; zero where torch said nothing.
  struct Card {
    Bytes taken, used, context, requested, allocated, reserved;
  };
  // What other dry runs found of a size that the user asked about: the largest that fits, the least that does not.
  // None: no such size was met, or the program failed there for another reason.
  struct Largest {
    std::string of;
    std::optional<std::int64_t> fits, too_large;
  };
  enum class EndedBy { Program, Steps, Seconds };

  std::vector<std::string> command;
  std::string card_name, card_word;  // "NVIDIA A100-SXM4-80GB"; "a100-80gb", or "cuda:24GiB"
  Bytes card_memory;                 // of each, as the driver reports it
  bool only_size_known = false;      // of the card; else it is one of the table
  std::vector<Card> cards;           // all that the program was shown

  std::string torch;  // its version; empty: no Python of the program imported torch
  int exit_code = 0;
  EndedBy ended_by = EndedBy::Program;
  std::uint64_t steps = 0, optimizers = 0;
  Seconds wall;
  Bytes host_peak;               // resident bytes of the program's processes on this machine
  Bytes host_total;              // of this machine, or of the control group
  bool host_ran_out = false;     // the kernel killed the program for lack of this machine's memory
  Bytes pinned_peak;             // of these, locked for the card
  std::vector<Refused> refused;  // requests that torch could not serve
  std::optional<Failure> error;  // the exception that ended it
  std::uint64_t reads = 0;       // copies from a card of bytes that nobody knows: zeros were given
  Bytes read_bytes;
  std::vector<Bound> bounds;                   // in the order of the calls
  std::vector<std::string> unknown_functions;  // that the program called and the dry card does not have
  std::vector<std::string> notes;              // of the stand-ins
  std::optional<Largest> largest;
  std::optional<std::string> history_file;  // torch's memory history, for `ullage explain`

  // The most cards at once that anything was taken of.
  std::size_t used_cards() const;
  bool ran_out() const;  // the program died of it
  bool used_the_card() const { return used_cards() > 0; }
};

// One line: "dry run: ..." and what is not known, each line with `prefix` before it.
void write_terminal(const DryReport& report, const std::string& prefix, std::ostream& out);
// "ullage-dry", version 1 (docs/cli.md).
void write_json(const DryReport& report, std::ostream& out);

}  // namespace ullage::report
