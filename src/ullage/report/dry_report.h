// SPDX-License-Identifier: Apache-2.0
#pragma once

// The result of a dry run: a CUDA program that ran without a card, on stand-ins for CUDA's libraries.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace ullage::report {

struct DryReport {
  // Where in the program something happened. An empty `file` means that it is not known.
  struct Place {
    std::string file;
    int line = 0;
    std::string function;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Failure {
    std::string type;  // "torch.OutOfMemoryError"
    std::string text;
    Place place;
  };
  struct Refused {
    int card = 0;
    Bytes request;  // bytes that the program asked for
    Place place;
  };
  // A size that depended on values of the card, which are not known.
  struct Bound {
    std::string function;  // torch's function: "nonzero"
    std::string how;       // what was assumed for the size: "the most", "one of each"
    Place place;           // the place of the first call
    std::uint64_t calls = 0;

    bool is_the_most() const { return how == "the most"; }  // if false, the true size may be larger
  };
  // The peaks of one card. `taken` is what nvidia-smi would show: `used` plus the contexts of the processes. `used` is
  // what torch's allocator and others took from the driver. `requested`, `allocated` and `reserved` are torch's
  // figures, the largest of any process; zero if torch gave none.
  struct Card {
    Bytes taken, used, context, requested, allocated, reserved;
  };
  // The result of further dry runs at other values of the knob named `of`: the largest value that fits and the smallest
  // that does not. A value is missing if no such size was found, or if the program failed for another reason.
  struct Largest {
    std::string of;
    std::optional<std::int64_t> fits, too_large;
  };
  // The steps that called this many optimizers. A program may go on with others, such as one for each parameter.
  struct Steps {
    std::uint64_t steps = 0, optimizers = 0;
  };
  enum class EndedBy { Program, Steps, Seconds };
  // How much the program's processes grew until they were seen at this place, since they were seen before.
  struct Growth {
    Place place;
    Bytes bytes;
  };
  // Why the program was ended before the kernel killed something: it had filled this machine's memory.
  struct HostFilled {
    Bytes left, most;            // what could still be taken, of all there is
    std::int32_t process = 0;    // the one that held most
    std::string command;         // its words
    Bytes held;                  // by it, without `files`
    Bytes files;                 // pages of files that it had. The kernel can drop them, so they take nothing
    Bytes pinned;                // locked for the card by all processes, whether used or not
    Place place;                 // where its main thread was
    std::vector<Growth> growth;  // in the order of the first places
  };

  std::vector<std::string> command;
  std::string card_name, card_word;  // "NVIDIA A100-SXM4-80GB"; "a100-80gb", or "cuda:24GiB"
  Bytes card_memory;                 // bytes of each card, as the driver reports them
  bool only_size_known = false;      // nothing else is known of the card; false: it is one of the table
  std::vector<Card> cards;           // all cards that the program sees

  std::string torch;  // torch's version; empty: no Python process of the program imported torch
  int exit_code = 0;
  EndedBy ended_by = EndedBy::Program;
  std::vector<Steps> steps_of;  // in the order of their first steps; empty: no optimizer's step was seen
  Seconds wall;
  Bytes host_peak;   // peak of the resident bytes of the program's processes on this machine
  Bytes host_total;  // memory of this machine, or the limit of the control group if that is less
  // The program was killed for lack of this machine's memory: Ullage ended it (`host_filled`), or the control groups
  // counted a kill by the kernel. If neither is so, it is assumed when SIGKILL ended the program with `host_peak` at
  // three quarters of `host_total` or more.
  bool host_ran_out = false;
  // None: the program was not ended for this. If there is one, host_ran_out is true.
  std::optional<HostFilled> host_filled;
  Bytes pinned_peak;             // peak of the host memory that the program locked for the card
  std::vector<Refused> refused;  // requests that torch could not serve
  std::optional<Failure> error;  // the exception that ended the program
  std::uint64_t reads = 0;       // copies of unknown bytes from a card, which gave zeros
  Bytes read_bytes;
  std::vector<Bound> bounds;                   // in the order of the first calls
  std::vector<std::string> unknown_functions;  // functions that the program called and the dry card does not have
  std::vector<std::string> notes;              // notes of the stand-ins: what they left out or could not answer
  std::optional<Largest> largest;
  std::optional<std::string> history_file;  // torch's memory history, for `ullage explain`

  // The number of cards on which the program took any memory.
  std::size_t used_cards() const;
  std::uint64_t steps() const;
  Bytes most_taken() const;  // the largest `taken` of any card
  // Returns whether the program failed for lack of the card's memory: its exception says so, or it left no exception
  // and a request was refused.
  bool ran_out() const;
  bool used_the_card() const { return used_cards() > 0; }
  // Whether the time was over before any step ended. The program may take more later.
  bool is_cut_short() const { return ended_by == EndedBy::Seconds && steps() == 0; }
  // Nothing: that is not known, because the program took nothing of a card, failed for another reason, or was cut
  // short.
  std::optional<bool> fits() const {
    if (!used_the_card()) return std::nullopt;
    if (ran_out()) return false;
    return exit_code == 0 && !is_cut_short() ? std::optional(true) : std::nullopt;
  }
};

// Says that the program was ended, what filled the memory, and what to do; one text for each line.
std::vector<std::string> host_filled_lines(const DryReport::HostFilled& filled);
// Writes the verdict, then what was taken and what is not known. Every line begins with `prefix`.
void write_terminal(const DryReport& report, const std::string& prefix, std::ostream& out);
// Writes "ullage-dry", version 1 (docs/cli.md).
void write_json(const DryReport& report, std::ostream& out);

}  // namespace ullage::report
