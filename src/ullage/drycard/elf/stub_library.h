// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a shared object for x86-64 without a compiler: functions that have a library's names and versions, and only
// report that somebody called them. Each calls one imported function with its own name, and returns what that returns:
//
//   name:  lea  name's text, %rdi
//          jmp  *imported function
//
//   | R: headers .gnu.hash .dynsym .dynstr .gnu.version .gnu.version_d .rela.dyn | RX: .text | RW: .dynamic .got |
//
// The sections are for readelf and its like; the loader reads the program headers alone.

#include <cstddef>
#include <string>
#include <vector>

namespace ullage::drycard {

struct StubFunction {
  std::string name;
  // Which of the library's versions it has; without versions 0. One name may be there with several versions: who asks
  // for none (dlsym) gets the last of them.
  std::size_t version = 0;
};

struct StubLibrary {
  std::string soname;
  std::vector<std::string> needed;    // in this order; a path, if one has a slash
  std::vector<std::string> versions;  // that it has besides the base version, which is its soname
  std::vector<StubFunction> functions;
  std::string calls;  // int calls(const char* name)
};

// The file's bytes. ContractError: an empty name, a function twice, a version that is not there.
std::string write_stub_library(const StubLibrary& library);

}  // namespace ullage::drycard
