// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table of rules for owners.h: the frames of PyTorch and of well-known libraries that show what a stack allocated
// for. To support a new library, add rows in owner_rules.cpp.

#include "ullage/trace/meaning/owners.h"

#include <optional>
#include <span>
#include <string_view>

namespace ullage::trace {

struct OwnerRule {
  // Which frames the rule applies to.
  enum class Frames {
    Python,  // all Python frames
    Own,     // Python frames of the person's own program
    Root,    // the outermost Python frame
    Native,  // C++ frames, and the open ops of a profiler trace
    Weak,    // as Native, but only if no other rule gives the phase
  };
  Frames frames = Frames::Python;
  std::string_view file;      // a part of the path, with forward slashes; empty: any
  std::string_view function;  // '*' stands for anything: at the begin, at the end, once between; empty: any function
  Phase phase = Phase::Unknown;
  std::optional<Category> category;  // applies if `phase` is Unknown or equals the phase decided for the stack
  std::string_view name;             // of the owner, if it says more than the person's own frame would
};

// PhaseVote in owners.cpp decides between the phases of the rows that match a frame of the stack. Then the category is
// that of the first such row, in the order of the table, whose category applies. The order of the frames does not
// matter.
std::span<const OwnerRule> owner_rules();

// Whether it is a Python frame rather than a C++ frame.
bool is_python(const Frame& frame);
// Whether it is a Python frame of the person's own: not of an installed package, the interpreter or generated code.
bool is_own(const Frame& frame);
// Whether a frame matches the rule's file and function. `path` has forward slashes.
bool matches(const OwnerRule& rule, std::string_view path, std::string_view function);

}  // namespace ullage::trace
