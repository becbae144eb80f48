// SPDX-License-Identifier: Apache-2.0
// One device with a default stream, a few other streams, and events. All work is done when the call that launched it
// returns, so a wait has nothing to wait for and is only counted.

#include "card_parts.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <utility>

namespace card_torch {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

constexpr c10::StreamId kDefaultStream = 0;
constexpr c10::StreamId kPoolStreams = 8;  // handed out in turn, as CUDA does with 32 of each priority

thread_local c10::StreamId current_stream = kDefaultStream;

Stream stream_of(c10::StreamId id) { return Stream(Stream::UNSAFE, kCard, id); }

struct Event {
  std::chrono::steady_clock::time_point recorded;
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
  DeviceIndex deviceCount() const noexcept override { return 1; }

  Device exchangeDevice(Device to) const override {
    setDevice(to);
    return kCard;
  }
  Device getDevice() const override { return kCard; }
  void setDevice(Device to) const override {
    TORCH_CHECK(to.is_cuda() && to.index() <= 0, "the stand-in card is cuda:0, not ", to);
  }
  void uncheckedSetDevice(Device /*to*/) const noexcept override {}

  Stream getStream(Device /*on*/) const override { return stream_of(current_stream); }
  Stream getDefaultStream(Device /*on*/) const override { return stream_of(kDefaultStream); }
  Stream getStreamFromGlobalPool(Device /*on*/, bool /*high_priority*/) const override { return next_stream(); }
  Stream getNewStream(Device /*on*/, int /*priority*/) const override { return next_stream(); }
  Stream exchangeStream(Stream to) const override { return stream_of(std::exchange(current_stream, to.id())); }
  bool queryStream(const Stream& /*stream*/) const override { return true; }
  void synchronizeStream(const Stream& /*stream*/) const override { ++counters().synchronizations; }
  void synchronizeDevice(DeviceIndex /*index*/) const override { ++counters().synchronizations; }
  void recordDataPtrOnStream(const c10::DataPtr& /*at*/, const Stream& /*stream*/) const override {
    ++counters().streams_recorded;
  }

  void record(void** event, const Stream& /*on*/, DeviceIndex /*index*/, c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->recorded = std::chrono::steady_clock::now();
    ++counters().events_recorded;
  }
  void block(void* event, const Stream& /*waits*/) const override {
    if (event != nullptr) ++counters().events_blocked;
  }
  bool queryEvent(void* /*event*/) const override { return true; }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) ++counters().synchronizations;
  }
  void destroyEvent(void* event, DeviceIndex /*index*/) const noexcept override { delete static_cast<Event*>(event); }
  // Milliseconds.
  double elapsedTime(void* from, void* to, DeviceIndex /*index*/) const override {
    TORCH_CHECK(from != nullptr && to != nullptr, "both events must be recorded before their time is asked for");
    const auto between = static_cast<Event*>(to)->recorded - static_cast<Event*>(from)->recorded;
    return std::chrono::duration<double, std::milli>(between).count();
  }

 private:
  static Stream next_stream() {
    static std::atomic<c10::StreamId> handed_out{0};
    return stream_of(1 + handed_out++ % kPoolStreams);
  }
};

}  // namespace

void register_guard() { c10::impl::registerDeviceGuard(c10::DeviceType::CUDA, new Guard); }

}  // namespace card_torch
