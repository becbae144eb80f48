// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/c_api.h"

#include "ullage/base/sizes.h"
#include "ullage/runtime/runtime.h"
#include "ullage/runtime/session.h"

#include <string>

int ullage_active() { return ullage::runtime::active() ? 1 : 0; }

void ullage_memory_status(ullage_memory* out) {
  if (out == nullptr) return;
  const ullage::runtime::MemoryStatus now = ullage::runtime::memory_status();
  *out = {now.budget.count, now.resident.count, now.live.count};
}

const char* ullage_begin(const char* memory, const char* spill, const char* record) {
  thread_local std::string why;
  const auto text = [](const char* given) { return std::string(given != nullptr ? given : ""); };
  const ullage::Result<ullage::Bytes> bytes = ullage::parse_bytes(text(memory));
  const ullage::Status begun =
      bytes ? ullage::runtime::begin_budget(*bytes, text(spill), text(record)) : ullage::Status(bytes.error());
  if (begun) return nullptr;
  const ullage::Error& error = begun.error();
  why = error.where.starts_with("--") ? error.message : error.text();  // the caller gave no command-line option
  return why.c_str();
}

void ullage_lift() { ullage::runtime::lift_budget(); }

void ullage_name_parameter(const void* data, const char* name) {
  if (name != nullptr) ullage::runtime::name_parameter(data, name);
}

int ullage_casts() {
  const ullage::runtime::Session* session = ullage::runtime::Session::current();
  return session != nullptr && session->casts() ? 1 : 0;
}

void ullage_mark_step() { ullage::runtime::mark_step(); }
