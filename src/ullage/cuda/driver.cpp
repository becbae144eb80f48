// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/driver.h"

#include "ullage/base/find_symbol.h"
#include "ullage/base/sizes.h"

#include <utility>

namespace ullage::cuda {

using abi::kSuccess;

// The functions of the library. find() has the names that it exports. If a name ends in _v2, cuda.h maps the plain name
// to it.
struct Driver::Functions {
  abi::Result (*init)(unsigned flags);
  abi::Result (*error_string)(abi::Result error, const char** text);
  abi::Result (*device)(abi::Device* device, int ordinal);
  abi::Result (*bus_id)(char* text, int size, abi::Device device);
  abi::Result (*retain_context)(abi::Context* context, abi::Device device);
  abi::Result (*release_context)(abi::Device device);
  abi::Result (*push_context)(abi::Context context);
  abi::Result (*pop_context)(abi::Context* context);
  abi::Result (*synchronize)();
  abi::Result (*memory_info)(std::size_t* free, std::size_t* total);
  abi::Result (*granularity)(std::size_t* bytes, const abi::AllocationProperties* wanted, int which);
  abi::Result (*reserve)(abi::Pointer* at, std::size_t size, std::size_t alignment, abi::Pointer wanted,
                         unsigned long long flags);
  abi::Result (*unreserve)(abi::Pointer at, std::size_t size);
  abi::Result (*create)(abi::Handle* handle, std::size_t size, const abi::AllocationProperties* wanted,
                        unsigned long long flags);
  abi::Result (*release)(abi::Handle handle);
  abi::Result (*map)(abi::Pointer at, std::size_t size, std::size_t offset, abi::Handle handle,
                     unsigned long long flags);
  abi::Result (*unmap)(abi::Pointer at, std::size_t size);
  abi::Result (*allow)(abi::Pointer at, std::size_t size, const abi::AccessDescription* who, std::size_t count);
  abi::Result (*make_stream)(abi::Stream* stream, unsigned flags);
  abi::Result (*end_stream)(abi::Stream stream);
  abi::Result (*wait_for_stream)(abi::Stream stream);
  abi::Result (*copy_out)(void* into, abi::Pointer from, std::size_t size, abi::Stream stream);
  abi::Result (*copy_in)(abi::Pointer into, const void* from, std::size_t size, abi::Stream stream);
  abi::Result (*pin)(void* host, std::size_t size, unsigned flags);
  abi::Result (*unpin)(void* host);

  // Looks all of them up. Returns the name of the first that is missing; null if none is.
  const char* find(void* library);
};

const char* Driver::Functions::find(void* library) {
  SymbolFinder take(library);
  take(init, "cuInit");
  take(error_string, "cuGetErrorString");
  take(device, "cuDeviceGet");
  take(bus_id, "cuDeviceGetPCIBusId");
  take(retain_context, "cuDevicePrimaryCtxRetain");
  take(release_context, "cuDevicePrimaryCtxRelease_v2");
  take(push_context, "cuCtxPushCurrent_v2");
  take(pop_context, "cuCtxPopCurrent_v2");
  take(synchronize, "cuCtxSynchronize");
  take(memory_info, "cuMemGetInfo_v2");
  take(granularity, "cuMemGetAllocationGranularity");
  take(reserve, "cuMemAddressReserve");
  take(unreserve, "cuMemAddressFree");
  take(create, "cuMemCreate");
  take(release, "cuMemRelease");
  take(map, "cuMemMap");
  take(unmap, "cuMemUnmap");
  take(allow, "cuMemSetAccess");
  take(make_stream, "cuStreamCreate");
  take(end_stream, "cuStreamDestroy_v2");
  take(wait_for_stream, "cuStreamSynchronize");
  take(copy_out, "cuMemcpyDtoHAsync_v2");
  take(copy_in, "cuMemcpyHtoDAsync_v2");
  take(pin, "cuMemHostRegister_v2");
  take(unpin, "cuMemHostUnregister");
  return take.missing();
}

// Makes the primary context current on this thread for as long as the object lives.
class Driver::InContext final {
 public:
  explicit InContext(const Driver& driver) : driver_(driver), pushed_(driver.call_->push_context(driver.context_)) {}
  ~InContext() {
    abi::Context ours = nullptr;
    if (pushed_ == kSuccess) driver_.call_->pop_context(&ours);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  const Driver& driver_;
  const abi::Result pushed_;
};

Result<std::unique_ptr<Driver>> Driver::open(int device, const std::string& library) {
  auto driver = std::unique_ptr<Driver>(new Driver);
  ULLAGE_TRY(driver->begin(device, library));
  return driver;
}

Status Driver::begin(int device, const std::string& library) {
  // The library is never closed, because torch's own runtime uses it too.
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr)
    return Error{Error::Kind::NotFound, "no NVIDIA driver on this machine: " + std::string(dlerror()), ""};
  auto functions = std::make_unique<Functions>();
  if (const char* missing = functions->find(loaded))
    return Error{Error::Kind::BadArgument, "the driver is too old, it has no " + std::string(missing), library};
  call_ = std::move(functions);
  if (const abi::Result done = call_->init(0); done != kSuccess) return error("the driver does not start", done);
  if (call_->device(&device_, device) != kSuccess)
    return Error{Error::Kind::NotFound, "no card with number " + std::to_string(device), ""};
  if (const abi::Result done = call_->retain_context(&context_, device_); done != kSuccess)
    return error("cannot open the context of card " + std::to_string(device), done);
  const InContext here(*this);
  std::size_t page = 0;
  const abi::AllocationProperties wanted{.location = {abi::kOnDevice, device_}};
  if (const abi::Result done = call_->granularity(&page, &wanted, abi::kLeast); done != kSuccess)
    return error("card " + std::to_string(device) + " has no virtual memory management", done);
  page_ = Bytes{page};
  if (const abi::Result done = call_->make_stream(&stream_, abi::kNonBlocking); done != kSuccess)
    return error("cannot make a stream for copies", done);
  return success();
}

Driver::~Driver() {
  if (context_ == nullptr) return;
  if (stream_ != nullptr) {
    const InContext here(*this);
    call_->end_stream(stream_);
  }
  call_->release_context(device_);
}

Result<Driver::Memory> Driver::memory() {
  const InContext here(*this);
  std::size_t free = 0, total = 0;
  if (const abi::Result done = call_->memory_info(&free, &total); done != kSuccess)
    return error("the driver does not report the card's free memory", done);
  return Memory{Bytes{free}, Bytes{total}};
}

Result<std::string> Driver::bus_id() {
  char text[32] = {};
  if (const abi::Result done = call_->bus_id(text, sizeof text, device_); done != kSuccess)
    return error("the driver does not report the card's PCI address", done);
  return std::string(text);
}

Result<store::AddressRange> Driver::reserve(Bytes size) {
  abi::Pointer at = 0;
  if (const abi::Result done = call_->reserve(&at, size.count, page_.count, 0, 0); done != kSuccess)
    return error("cannot reserve " + to_string(size) + " of the card's addresses", done);
  return store::AddressRange{Address{at}, size};
}

void Driver::unreserve(store::AddressRange range) { call_->unreserve(range.begin.value, range.size.count); }

abi::Result Driver::create(abi::Handle& handle) {
  count(store::DriverCall::Create);
  const abi::AllocationProperties wanted{.location = {abi::kOnDevice, device_}};
  return call_->create(&handle, page_.count, &wanted, 0);
}

void Driver::release(abi::Handle handle) {
  count(store::DriverCall::Release);
  call_->release(handle);
}

abi::Result Driver::map(Address at, abi::Handle handle) {
  count(store::DriverCall::Map);
  return call_->map(at.value, page_.count, 0, handle, 0);
}

abi::Result Driver::unmap(Address at, Bytes size) {
  count(store::DriverCall::Unmap);
  return call_->unmap(at.value, size.count);
}

abi::Result Driver::allow(Address at, Bytes size) {
  count(store::DriverCall::Allow);
  const abi::AccessDescription here{.location = {abi::kOnDevice, device_}};
  return call_->allow(at.value, size.count, &here, 1);
}

store::DriverCalls Driver::calls() const {
  store::DriverCalls calls{};
  for (std::size_t i = 0; i < calls.size(); ++i) calls[i] = called_[i].load(std::memory_order_relaxed);
  return calls;
}

Status Driver::synchronize() {
  const InContext here(*this);
  if (const abi::Result done = call_->synchronize(); done != kSuccess) return error("the card's work failed", done);
  return success();
}

Status Driver::synchronize(Address at, Bytes size) {
  Work* const work = work_.load();
  return work != nullptr && work->done(at, size) ? success() : synchronize();
}

void Driver::fresh(Address at, Bytes size) {
  if (Work* const work = work_.load()) work->fresh(at, size);
}

Status Driver::copy_out(Address from, void* into, Bytes size, store::CopyGate* gate) {
  using Answer = store::CopyGate::Answer;
  abi::Result done = kSuccess;
  for (Answer answer = Answer::WaitAgain; answer != Answer::Begun;) {
    ULLAGE_TRY(synchronize(from, size));
    const InContext here(*this);
    const auto begin = [&] { done = call_->copy_out(into, from.value, size.count, stream_); };
    answer = gate != nullptr ? gate->pass(begin) : (begin(), Answer::Begun);
    if (answer == Answer::Never) return Error{Error::Kind::BadArgument, "the bytes are in use", ""};
  }
  const InContext here(*this);
  if (done == kSuccess) done = call_->wait_for_stream(stream_);
  return done == kSuccess ? success() : error("cannot copy " + to_string(size) + " from the card", done);
}

Status Driver::copy_in(const void* from, Address into, Bytes size) {
  ULLAGE_TRY(synchronize(into, size));
  const InContext here(*this);
  abi::Result done = call_->copy_in(into.value, from, size.count, stream_);
  if (done == kSuccess) done = call_->wait_for_stream(stream_);
  return done == kSuccess ? success() : error("cannot copy " + to_string(size) + " to the card", done);
}

Status Driver::pin(void* host, Bytes size) {
  const InContext here(*this);
  if (const abi::Result done = call_->pin(host, size.count, abi::kPortable); done != kSuccess)
    return error("cannot lock " + to_string(size) + " of the host's memory", done);
  return success();
}

void Driver::unpin(void* host) {
  const InContext here(*this);
  call_->unpin(host);
}

std::string Driver::text(abi::Result result) const {
  const char* words = nullptr;
  if (call_->error_string(result, &words) != kSuccess || words == nullptr) words = "unknown error";
  return std::string(words) + " (" + std::to_string(result) + ")";
}

Error Driver::error(const std::string& what, abi::Result result) const {
  return {Error::Kind::System, what + ": " + text(result), ""};
}

}  // namespace ullage::cuda
