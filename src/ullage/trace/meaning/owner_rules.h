// SPDX-License-Identifier: Apache-2.0
#pragma once

// The table behind trace/meaning/owners.h: which frames of PyTorch and of well-known libraries tell what a stack
// allocated for. A new library is a new row in owner_rules.cpp.

#include "ullage/trace/meaning/owners.h"

#include <optional>
#include <span>
#include <string_view>

namespace ullage::trace {

struct OwnerRule {
  enum class Frames {
    Python,  // of anybody
    Own,     // Python frames of the person's own program
    Root,    // the outermost Python frame
    Native,  // C++, and the open ops of a profiler's trace
    Weak,    // as Native, asked only where no other rule knows the phase
  };
  Frames frames = Frames::Python;
  std::string_view file;      // part of the path with forward slashes; empty: any
  std::string_view function;  // a '*' at either end stands for anything; empty: any
  Phase phase = Phase::Unknown;
  std::optional<Category> category;  // holds only where the stack's phase is this rule's, if it names one
  std::string_view name;             // of the owner, where it says more than the person's own frame
};

// The first row that a frame of the stack matches gives the category; rows of phases: see owners.cpp.
std::span<const OwnerRule> owner_rules();

// Is it a frame of a Python program or library, not of C++?
bool is_python(const Frame& frame);
// Of the person's own: not of an installed package, the interpreter or generated code.
bool is_own(const Frame& frame);
// `path` has forward slashes.
bool matches(const OwnerRule& rule, std::string_view path, std::string_view function);

}  // namespace ullage::trace
