// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a Python program stands, for recordings: the line that called an op. As python_process.h, nothing here is
// linked against Python.

#include <string_view>

namespace ullage::runtime {

// The innermost line of this thread that is neither torch's nor the standard library's: "train.py:57", below the
// current folder or a folder of packages, else the whole path. Lives for ever, and one line is at one address. Empty
// where the thread runs no Python. Takes the interpreter lock: hold no lock that Python's threads may wait for.
std::string_view python_line();

}  // namespace ullage::runtime
