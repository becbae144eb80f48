// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program may ask of Ullage's runtime and tell it. No torch in this header. Every call is safe and cheap in a
// plain run (one not started by `ullage run`): then active() is false and the calls do nothing.

#include "ullage/base/bytes.h"

#include <cstdint>
#include <memory>
#include <string_view>

namespace ullage::runtime {

// True when a budgeted pool stands behind torch's CPU allocator in this process.
bool active();

// A step of the program ended. Counts steps and their times; the summary and the "steps left" warning rest on it.
void mark_step();

struct MemoryStatus {
  Bytes budget;    // stated; zero: unlimited
  Bytes resident;  // of the process, as the operating system counts it
  Bytes live;      // of tensors in the pool
};
// As of now; zeros in a plain run.
MemoryStatus memory_status();

// Bytes that a library is about to take outside the pool (an image decoder's buffer). While the charge lives the pool
// keeps that much free for them. Throws c10::OutOfMemoryError when the budget has no room. Null in a plain run.
class Charge {
 public:
  virtual ~Charge() = default;
};
std::unique_ptr<Charge> charge_outside(Bytes bytes, std::string_view what);

// For the report: the SHA-256 of the program's final state, 64 hexadecimal digits.
void report_state(std::string_view sha256);

}  // namespace ullage::runtime
