// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/runtime.h"

#include "ullage/runtime/session.h"
#include "ullage/store/process_memory.h"

#include <string>

namespace ullage::runtime {
namespace {

class HeldCharge final : public Charge {
 public:
  explicit HeldCharge(Bytes bytes) : bytes_(bytes) {}
  ~HeldCharge() override { Session::current()->discharge(bytes_); }

 private:
  Bytes bytes_;
};

}  // namespace

bool active() { return Session::current() != nullptr; }

void mark_step() {
  if (Session* session = Session::current()) session->mark_step();
}

MemoryStatus memory_status() {
  Session* session = Session::current();
  if (session == nullptr) return {};
  return {session->budget(), store::resident_now(), session->store().counts().live};
}

std::unique_ptr<Charge> charge_outside(Bytes bytes, std::string_view what) {
  Session* session = Session::current();
  if (session == nullptr) return nullptr;
  session->charge(bytes, std::string(what));
  return std::make_unique<HeldCharge>(bytes);
}

void report_state(std::string_view sha256) {
  Session* session = Session::current();
  if (session == nullptr || session->slot() == nullptr) return;
  session->slot()->state_sha256.set(sha256);
}

}  // namespace ullage::runtime
