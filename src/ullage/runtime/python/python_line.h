// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the line of a Python program that called an op, for recordings. Like python_process.h, this is not linked
// against Python.

#include <string_view>

namespace ullage::runtime {

// Returns the innermost line of this thread that is neither torch's nor the standard library's: "train.py:57". The path
// is relative to the current folder or to a folder of packages, else it is whole. Empty if the thread runs no Python,
// or has no such line. The text lives for ever, and the same line is always at the same address. Takes the interpreter
// lock: hold no lock that Python's threads may wait for.
std::string_view python_line();

}  // namespace ullage::runtime
