// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/runtime.h"

#include "ullage/runtime/record/recorder.h"
#include "ullage/runtime/record/rehearsal_sizes.h"
#include "ullage/runtime/session.h"

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

Recorder* recorder() {
  Session* session = Session::current();
  return session == nullptr ? nullptr : session->recorder();
}

}  // namespace

bool active() { return Session::current() != nullptr; }

bool recording() { return recorder() != nullptr; }

void mark_step() {
  if (Session* session = Session::current()) session->mark_step();
}

MemoryStatus memory_status() {
  Session* session = Session::current();
  if (session == nullptr) return {};
  return {session->budget(), session->held(), session->store().counts().live};
}

std::unique_ptr<Charge> charge_outside(Bytes bytes, std::string_view what) {
  Session* session = Session::current();
  if (session == nullptr) return nullptr;
  session->charge(bytes, std::string(what));
  return std::make_unique<HeldCharge>(bytes);
}

void name_parameter(const void* data, std::string_view name) {
  if (Recorder* to = recorder()) to->name_parameter({reinterpret_cast<std::uint64_t>(data)}, name);
}

Phase::Phase(std::string_view name, const std::vector<Knob>& most) {
  if (Recorder* to = recorder()) to->begin_phase(name, most);
}
Phase::~Phase() {
  if (Recorder* to = recorder()) to->end_phase();
}

bool rehearsing() { return recorder() != nullptr && !Session::current()->rehearsal().empty(); }

Rehearsal rehearsal(const RehearsalOffer& offer) {
  if (!rehearsing()) return {};
  recorder()->asked_for(offer.knobs, offer.choices, offer.left_out, offer.sides);
  return {takes_of(Session::current()->rehearsal(), offer.knobs, offer.usual)};
}

Take::Take(const std::vector<Knob>& knobs) {
  if (Recorder* to = recorder()) to->begin_take(knobs);
}
Take::~Take() {
  if (Recorder* to = recorder()) to->end_take();
}

void changes_results(std::string_view what, std::string_view results) {
  Session* session = Session::current();
  if (store::LedgerSlot* slot = session != nullptr ? session->slot() : nullptr) {
    slot->changes.set(slot->changes.get() + std::string(results) + ' ' + std::string(what) + '\n');
  }
  if (Recorder* to = recorder()) to->changes_results({std::string(what), std::string(results)});
}

void report_state(std::string_view sha256) {
  Session* session = Session::current();
  if (session == nullptr || session->slot() == nullptr) return;
  session->slot()->state_sha256.set(sha256);
}

}  // namespace ullage::runtime
