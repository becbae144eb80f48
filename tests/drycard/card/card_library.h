// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads the library of the dry card as a program would, and calls its functions by name. A process has one machine, so
// each case runs in a process of its own and first says what the machine is.

#include "ullage/drycard/ledger.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

namespace ullage::drycard {

inline constexpr std::size_t kMib = std::size_t{1} << 20;
inline constexpr std::size_t kGib = std::size_t{1} << 30;

class CardLibrary final {
 public:
  // `environment` describes the machine: names and values of variables. Also makes a ledger file for the case.
  explicit CardLibrary(std::initializer_list<std::pair<const char*, std::string>> environment);
  ~CardLibrary();

  template <typename... Arguments>
  int operator()(const char* name, Arguments... arguments) const {
    return reinterpret_cast<int (*)(Arguments...)>(find(name))(arguments...);
  }
  void* find(const char* name) const;
  const CardLedger& ledger() const { return *ledger_; }
  std::string ledger_path() const { return path_; }

  // Calls cudaMalloc. Returns 0 if it is refused.
  std::uintptr_t allocate(std::size_t bytes) const;
  int free(std::uintptr_t at) const { return (*this)("cudaFree", reinterpret_cast<void*>(at)); }
  std::size_t free_bytes() const;

 private:
  std::string path_;
  void* handle_ = nullptr;
  const CardLedger* ledger_ = nullptr;
};

}  // namespace ullage::drycard
