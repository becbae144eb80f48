// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a shared object for x86-64 without a compiler. It has the functions of a library, under their names and
// versions, which only report that they were called. Each calls one imported function with its own name, and returns
// that function's result:
//
//   name:  lea  name's text, %rdi
//          jmp  *imported function
//
// A variable is 4 KiB of zeros, because an import does not state its size.
//
//   | R: headers .gnu.hash .dynsym .dynstr .gnu.version .gnu.version_d .rela.dyn | RX: .text | RW: .dynamic .got .data
//   |
//
// Sections are there for readelf and similar tools; the loader reads only the program headers.

#include <cstddef>
#include <string>
#include <vector>

namespace ullage::drycard {

struct StubSymbol {
  std::string name;
  // Index of its version in StubLibrary::versions; 0 if the library has none. A name may have several versions; a
  // lookup without a version (dlsym) gets the last of them.
  std::size_t version = 0;
  bool is_variable = false;
};

struct StubLibrary {
  std::string soname;
  std::vector<std::string> needed;    // in this order; a name with a slash is a path
  std::vector<std::string> versions;  // without the base version, which is the soname
  std::vector<StubSymbol> symbols;
  std::string calls;  // the imported function: int calls(const char* name)
};

// Returns the file's bytes. ContractError for an empty name, a symbol that is there twice, or a version that does not
// exist.
std::string write_stub_library(const StubLibrary& library);

}  // namespace ullage::drycard
