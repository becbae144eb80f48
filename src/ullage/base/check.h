// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of contracts between parts of Ullage. They stay on in release builds. If a contract is broken, the counts of
// bytes may be wrong, and the program must not go on silently.

#include <stdexcept>
#include <string>

namespace ullage {

// Thrown if a caller breaks a contract of the callee. Bad input from a person gives an Error (result.h) instead.
class ContractError final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void contract_broken(const char* what, const char* file, int line) {
  throw ContractError(std::string(file) + ":" + std::to_string(line) + ": contract broken: " + what);
}

}  // namespace ullage

#define ULLAGE_CHECK(condition, what) \
  (static_cast<bool>(condition) ? void(0) : ::ullage::contract_broken(what, __FILE__, __LINE__))
