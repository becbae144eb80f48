// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/card/streams.h"

#include "ullage/drycard/card/process.h"

#include <atomic>
#include <cstring>

namespace ullage::drycard {
namespace {

constexpr int kGreatestPriority = -5;

std::atomic<int> captures{0};  // how many are active; torch asks at every allocation
std::atomic<std::uint64_t> next_stream_id{1};
std::atomic<std::uint64_t> next_capture_id{1};
std::shared_ptr<Capture> latest_capture;

// Returns null for the default streams, whose handles are numbers: 0, cudaStreamLegacy and cudaStreamPerThread.
Stream* object_of(const void* stream) {
  return reinterpret_cast<Address>(stream) < 16 ? nullptr : static_cast<Stream*>(const_cast<void*>(stream));
}

constexpr double kMillisecondsOfTick = 0.01;
std::atomic<std::uint64_t> ticks{0};

Error make_stream(void** stream, unsigned flags, int priority) {
  if (stream == nullptr) return kInvalidValue;
  if (const Error error = use_current(); error != kSuccess) return error;
  auto* made = new Stream;
  made->card = current_card();
  made->flags = flags;
  made->priority = priority < kGreatestPriority ? kGreatestPriority : priority > 0 ? 0 : priority;
  made->id = next_stream_id.fetch_add(1);
  *stream = made;
  return kSuccess;
}

Error synchronize() {
  if (const Error error = use_current(); error != kSuccess) return error;
  ledger().synchronized.fetch_add(1, std::memory_order_relaxed);
  return kSuccess;
}

Error synchronize_stream(const void* stream) {
  finish_stream(stream);
  return synchronize();
}

Error synchronize_all() {
  finish_all();
  return synchronize();
}

Error synchronize_event(const Event* event) {
  if (event != nullptr) finish(event->before);
  return synchronize();
}

Error query_stream(const void* stream) {
  if (const Error error = use_current(); error != kSuccess) return error;
  return is_stream_finished(stream) ? kSuccess : kNotReady;
}

Error query_event(const Event* event) {
  if (const Error error = use_current(); error != kSuccess) return error;
  return event == nullptr || is_finished(event->before) ? kSuccess : kNotReady;
}

Error end_stream(void* stream) {
  if (object_of(stream) != nullptr) forget_stream(stream);
  delete object_of(stream);
  return kSuccess;
}

Error make_event(Event** event, unsigned flags) {
  if (event == nullptr) return kInvalidValue;
  if (const Error error = use_current(); error != kSuccess) return error;
  *event = new Event;
  (*event)->card = current_card();
  (*event)->flags = flags;
  return kSuccess;
}

Error record(Event* event, const void* stream) {
  if (event == nullptr) return kInvalidHandle;
  if (const Error error = use_current(); error != kSuccess) return error;
  const std::lock_guard hold(lock());
  event->recorded = ticks.fetch_add(1) + 1;
  event->capture = active_capture(stream);
  if (event->capture == nullptr) event->before = clock_of(stream);
  return kSuccess;
}

// A stream that waits for an event of a captured stream becomes part of that capture.
Error wait_for(const void* stream, const Event* event) {
  if (event == nullptr) return kInvalidHandle;
  order_after(stream, event->before);
  if (captures.load(std::memory_order_relaxed) == 0) return kSuccess;
  const std::lock_guard hold(lock());
  Stream* object = object_of(stream);
  if (object != nullptr && event->capture != nullptr && event->capture->active) object->capture = event->capture;
  return kSuccess;
}

Error begin_capture(const void* stream, Graph* graph) {
  constexpr auto kUnsupported = static_cast<Error>(900);  // the legacy stream cannot be captured
  constexpr auto kIllegal = static_cast<Error>(901);
  Stream* object = object_of(stream);
  if (object == nullptr) return kUnsupported;
  const std::lock_guard hold(lock());
  if (active_capture(stream) != nullptr) return kIllegal;
  object->capture = std::make_shared<Capture>();
  object->capture->id = next_capture_id.fetch_add(1);
  object->capture->graph = graph != nullptr ? graph : new Graph;
  latest_capture = object->capture;
  captures.fetch_add(1);
  return kSuccess;
}

Error end_capture(const void* stream, Graph** graph) {
  constexpr auto kIllegal = static_cast<Error>(901);
  if (graph != nullptr) *graph = nullptr;
  const std::lock_guard hold(lock());
  const std::shared_ptr<Capture> capture = active_capture(stream);
  if (capture == nullptr) return kIllegal;
  capture->active = false;
  captures.fetch_sub(1);
  if (graph != nullptr) *graph = capture->graph;
  return kSuccess;
}

Error elapsed(float* milliseconds, const Event* from, const Event* to) {
  if (from == nullptr || to == nullptr || from->recorded == 0 || to->recorded == 0) return kInvalidHandle;
  const double difference = static_cast<double>(to->recorded) - static_cast<double>(from->recorded);
  *milliseconds = static_cast<float>(difference * kMillisecondsOfTick);
  return kSuccess;
}

}  // namespace

std::shared_ptr<Capture> active_capture(const void* stream) {
  if (captures.load(std::memory_order_relaxed) == 0) return nullptr;
  const Stream* object = object_of(stream);
  if (object == nullptr) return nullptr;
  const std::lock_guard hold(lock());
  return object->capture != nullptr && object->capture->active ? object->capture : nullptr;
}

void note_work(const void* stream, std::uint64_t kernels) {
  if (const std::shared_ptr<Capture> capture = active_capture(stream)) {
    const std::lock_guard hold(lock());
    ++capture->graph->nodes;
    capture->graph->launches += kernels;
    return;
  }
  if (kernels == 0) return;
  ticks.fetch_add(kernels, std::memory_order_relaxed);
  ledger().launches.fetch_add(kernels, std::memory_order_relaxed);
}

void note_library_work() {
  if (captures.load(std::memory_order_relaxed) == 0) {
    ticks.fetch_add(1, std::memory_order_relaxed);
    ledger().launches.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::lock_guard hold(lock());
  if (latest_capture == nullptr || !latest_capture->active) return;
  ++latest_capture->graph->nodes;
  ++latest_capture->graph->launches;
}

ULLAGE_CARD_API int cudaStreamCreate(void** stream) { return noted(make_stream(stream, 0, 0)); }
ULLAGE_CARD_API int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return noted(make_stream(stream, flags, 0));
}
ULLAGE_CARD_API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return noted(make_stream(stream, flags, priority));
}
ULLAGE_CARD_API int cudaStreamDestroy(void* stream) { return end_stream(stream); }
ULLAGE_CARD_API int cudaStreamQuery(void* stream) { return noted(query_stream(stream)); }
ULLAGE_CARD_API int cudaStreamSynchronize(void* stream) { return noted(synchronize_stream(stream)); }
ULLAGE_CARD_API int cudaDeviceSynchronize() { return noted(synchronize_all()); }
ULLAGE_CARD_API int cudaThreadSynchronize() { return noted(synchronize_all()); }
ULLAGE_CARD_API int cudaStreamWaitEvent(void* stream, Event* event, unsigned) { return noted(wait_for(stream, event)); }
ULLAGE_CARD_API int cudaStreamGetPriority(void* stream, int* priority) {
  *priority = object_of(stream) != nullptr ? object_of(stream)->priority : 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaStreamGetFlags(void* stream, unsigned* flags) {
  *flags = object_of(stream) != nullptr ? object_of(stream)->flags : 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaStreamGetId(void* stream, unsigned long long* id) {
  *id = object_of(stream) != nullptr ? object_of(stream)->id : 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaStreamGetDevice(void* stream, int* card) {
  *card = object_of(stream) != nullptr ? object_of(stream)->card : current_card();
  return kSuccess;
}
ULLAGE_CARD_API int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (const Error error = use_current(); error != kSuccess) return noted(error);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return kSuccess;
}

ULLAGE_CARD_API int cudaEventCreate(Event** event) { return noted(make_event(event, 0)); }
ULLAGE_CARD_API int cudaEventCreateWithFlags(Event** event, unsigned flags) { return noted(make_event(event, flags)); }
ULLAGE_CARD_API int cudaEventDestroy(Event* event) {
  delete event;
  return kSuccess;
}
ULLAGE_CARD_API int cudaEventRecord(Event* event, void* stream) { return noted(record(event, stream)); }
ULLAGE_CARD_API int cudaEventRecordWithFlags(Event* event, void* stream, unsigned) {
  return noted(record(event, stream));
}
ULLAGE_CARD_API int cudaEventQuery(Event* event) { return noted(query_event(event)); }
ULLAGE_CARD_API int cudaEventSynchronize(Event* event) { return noted(synchronize_event(event)); }
ULLAGE_CARD_API int cudaEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  return noted(elapsed(milliseconds, from, to));
}
ULLAGE_CARD_API int cudaEventElapsedTime_v2(float* milliseconds, Event* from, Event* to) {
  return noted(elapsed(milliseconds, from, to));
}
ULLAGE_CARD_API int cudaIpcGetEventHandle(IpcHandle* handle, Event*) {
  std::memset(handle, 0, sizeof *handle);
  return kSuccess;
}
ULLAGE_CARD_API int cudaIpcOpenEventHandle(Event** event, IpcHandle) { return noted(make_event(event, 0)); }

ULLAGE_CARD_API int cudaStreamBeginCapture(void* stream, int) { return noted(begin_capture(stream, nullptr)); }
ULLAGE_CARD_API int cudaStreamBeginCaptureToGraph(void* stream, Graph* graph, void*, void*, std::size_t, int) {
  return noted(begin_capture(stream, graph));
}
ULLAGE_CARD_API int cudaStreamEndCapture(void* stream, Graph** graph) { return noted(end_capture(stream, graph)); }
ULLAGE_CARD_API int cudaStreamIsCapturing(void* stream, int* status) {
  *status = active_capture(stream) != nullptr ? 1 : 0;
  return kSuccess;
}

// Serves all layouts of the call. Edges exist in CUDA 13's and in the third version of CUDA 12's, and are set by the
// callers.
static int capture_info(void* stream, int* status, unsigned long long* id, Graph** graph, const void*** nodes,
                        std::size_t* count) {
  const std::shared_ptr<Capture> capture = active_capture(stream);
  if (status != nullptr) *status = capture != nullptr ? 1 : 0;
  if (id != nullptr) *id = capture != nullptr ? capture->id : 0;
  if (graph != nullptr) *graph = capture != nullptr ? capture->graph : nullptr;
  if (nodes != nullptr) *nodes = nullptr;
  if (count != nullptr) *count = 0;
  return kSuccess;
}
ULLAGE_CARD_API int cudaStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, Graph** graph,
                                                const void*** nodes, const void** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return capture_info(stream, status, id, graph, nodes, count);
}
ULLAGE_CARD_API int cudaStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, Graph** graph,
                                                const void*** nodes, std::size_t* count) {
  return capture_info(stream, status, id, graph, nodes, count);
}
// In CUDA 12 this function has three arguments.
ULLAGE_CARD_API int cudaStreamGetCaptureInfo(void* stream, int* status, unsigned long long* id, Graph** graph,
                                             const void*** nodes, const void** edges, std::size_t* count) {
  if (machine().cuda < 13) return capture_info(stream, status, id, nullptr, nullptr, nullptr);
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count);
}
ULLAGE_CARD_API int cudaStreamUpdateCaptureDependencies() { return kSuccess; }
ULLAGE_CARD_API int cudaThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int own = 0;
  const int before = own;
  own = *mode;
  *mode = before;
  return kSuccess;
}

ULLAGE_CARD_API int cuStreamCreate(void** stream, unsigned flags) { return make_stream(stream, flags, 0); }
ULLAGE_CARD_API int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return make_stream(stream, flags, priority);
}
ULLAGE_CARD_API int cuStreamDestroy_v2(void* stream) { return cudaStreamDestroy(stream); }
ULLAGE_CARD_API int cuStreamQuery(void* stream) { return query_stream(stream); }
ULLAGE_CARD_API int cuStreamSynchronize(void* stream) { return synchronize_stream(stream); }
ULLAGE_CARD_API int cuStreamWaitEvent(void* stream, Event* event, unsigned) { return wait_for(stream, event); }
ULLAGE_CARD_API int cuStreamGetPriority(void* stream, int* priority) { return cudaStreamGetPriority(stream, priority); }
ULLAGE_CARD_API int cuStreamGetFlags(void* stream, unsigned* flags) { return cudaStreamGetFlags(stream, flags); }
ULLAGE_CARD_API int cuStreamGetId(void* stream, unsigned long long* id) { return cudaStreamGetId(stream, id); }
ULLAGE_CARD_API int cuStreamBeginCapture_v2(void* stream, int) { return begin_capture(stream, nullptr); }
ULLAGE_CARD_API int cuStreamEndCapture(void* stream, Graph** graph) { return end_capture(stream, graph); }
ULLAGE_CARD_API int cuStreamIsCapturing(void* stream, int* status) { return cudaStreamIsCapturing(stream, status); }
ULLAGE_CARD_API int cuStreamGetCaptureInfo_v2(void* stream, int* status, unsigned long long* id, Graph** graph,
                                              const void*** nodes, std::size_t* count) {
  return capture_info(stream, status, id, graph, nodes, count);
}
ULLAGE_CARD_API int cuStreamGetCaptureInfo_v3(void* stream, int* status, unsigned long long* id, Graph** graph,
                                              const void*** nodes, const void** edges, std::size_t* count) {
  return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, nodes, edges, count);
}
ULLAGE_CARD_API int cuThreadExchangeStreamCaptureMode(int* mode) { return cudaThreadExchangeStreamCaptureMode(mode); }
ULLAGE_CARD_API int cuEventCreate(Event** event, unsigned flags) { return make_event(event, flags); }
ULLAGE_CARD_API int cuEventDestroy_v2(Event* event) { return cudaEventDestroy(event); }
ULLAGE_CARD_API int cuEventRecord(Event* event, void* stream) { return record(event, stream); }
ULLAGE_CARD_API int cuEventRecordWithFlags(Event* event, void* stream, unsigned) { return record(event, stream); }
ULLAGE_CARD_API int cuEventQuery(Event* event) { return query_event(event); }
ULLAGE_CARD_API int cuEventSynchronize(Event* event) { return synchronize_event(event); }
ULLAGE_CARD_API int cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
  return elapsed(milliseconds, from, to);
}

}  // namespace ullage::drycard
