// SPDX-License-Identifier: Apache-2.0
// cuDNN's backend descriptors. If the real library is there, it answers. It gets the description of the card, but never
// the program's handle, and nothing is executed. Without the real library, what was set can be read back, and every
// operation graph has one engine without a workspace. The ledger counts the plans made that way.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/cudnn_library.h"
#include "ullage/drycard/card/handles.h"
#include "ullage/drycard/card/process.h"
#include "ullage/drycard/card/streams.h"
#include "ullage/drycard/card/work.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ullage::drycard {
namespace {

// cudnnBackendAttributeName_t, from cudnn_graph.h of 9.20.
constexpr int kHeuristicResults = 202;
constexpr int kConfigurationEngine = 300;
constexpr int kConfigurationWorkspace = 303;
constexpr int kPlanWorkspace = 402;
constexpr int kPackPointers = 1001;  // of a variant pack: where the tensors are
constexpr int kPackWorkspace = 1003;
constexpr int kEngineGlobalIndex = 1301;

// cudnnBackendAttributeType_t
constexpr int kTypeHandle = 0;
constexpr int kTypeBoolean = 2;
constexpr int kTypeDescriptor = 15;

// cudnnBackendDescriptorType_t. card_attribute() returns the attribute through which a descriptor of that type gets the
// card's description; 0 if it takes none.
constexpr int kEngine = 2;
constexpr int kHeuristic = 4;
constexpr int kPlan = 5;
int card_attribute(int descriptor_type) {
  switch (descriptor_type) {
    case kEngine:
      return 1307;  // CUDNN_ATTR_ENGINE_DEVICEPROP
    case kHeuristic:
      return 204;  // CUDNN_ATTR_ENGINEHEUR_DEVICEPROP
    case kPlan:
      return 407;  // CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP
    default:
      return 0;
  }
}

// Descriptors of the real library that still need the card's description before they are finalized.
class UntoldDescriptors final {
 public:
  void add(void* descriptor, int type) {
    const std::lock_guard<std::mutex> guard(mutex_);
    types_[descriptor] = type;
  }
  // Removes the descriptor and returns its type; 0 if it is not here.
  int take(void* descriptor) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = types_.find(descriptor);
    if (found == types_.end()) return 0;
    const int type = found->second;
    types_.erase(found);
    return type;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, int> types_;
};

UntoldDescriptors& untold() {
  static auto* all = new UntoldDescriptors;  // never destroyed: descriptors may be used after main ends
  return *all;
}

// With checks: the addresses that a variant pack was given, until it is executed or destroyed.
class PackAddresses final {
 public:
  void add(void* pack, const void* values, std::int64_t count) {
    if (!checks_work()) return;
    const std::lock_guard<std::mutex> guard(mutex_);
    std::vector<Address>& its = addresses_[pack];
    const auto before = its.size();
    its.resize(before + static_cast<std::size_t>(count));
    std::memcpy(its.data() + before, values, static_cast<std::size_t>(count) * sizeof(Address));
  }
  std::vector<Address> take(void* pack) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = addresses_.find(pack);
    if (found == addresses_.end()) return {};
    std::vector<Address> its = std::move(found->second);
    addresses_.erase(found);
    return its;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, std::vector<Address>> addresses_;
};

PackAddresses& pack_addresses() {
  static auto* all = new PackAddresses;  // never destroyed, as above
  return *all;
}

struct Descriptor {
  struct Value {
    std::int64_t count = 0;
    std::vector<char> bytes;
  };
  int type = 0;
  std::map<int, Value> values;
};

std::size_t attribute_width(int type) {
  switch (type) {
    case 0:   // handle
    case 3:   // 64 bit integer
    case 5:   // double
    case 6:   // pointer
    case 15:  // descriptor
      return 8;
    case kTypeBoolean:
    case 24:  // character
      return 1;
    case 26:  // fraction
      return 16;
    default:
      return 4;
  }
}

int give_number(std::int64_t wanted, std::int64_t* count, void* out, std::int64_t number) {
  if (wanted > 0 && out != nullptr) std::memcpy(out, &number, sizeof number);
  if (count != nullptr) *count = 1;
  return 0;
}

int read_back(const Descriptor& descriptor, int name, int type, std::int64_t wanted, std::int64_t* count, void* out) {
  const auto it = descriptor.values.find(name);
  const std::size_t width = attribute_width(type);
  if (it == descriptor.values.end()) {
    // For a value that was never set, the count is 0 and the bytes are zeros. Descriptors that the caller asks to be
    // filled in stay as they are.
    if (type != kTypeDescriptor && wanted > 0 && out != nullptr) {
      std::memset(out, 0, static_cast<std::size_t>(wanted) * width);
    }
    if (count != nullptr) *count = 0;
    return 0;
  }
  const Descriptor::Value& value = it->second;
  if (wanted > 0 && out != nullptr) {
    const auto bytes = static_cast<std::size_t>(std::min(wanted, value.count)) * width;
    std::memcpy(out, value.bytes.data(), std::min(bytes, value.bytes.size()));
  }
  if (count != nullptr) *count = value.count;
  return 0;
}

}  // namespace

ULLAGE_CARD_API int cudnnBackendCreateDescriptor(int type, void** descriptor) {
  if (const CudnnLibrary* real = cudnn_library()) {
    const int status = real->create(type, descriptor);
    if (status == 0 && card_attribute(type) != 0) untold().add(*descriptor, type);
    return status;
  }
  *descriptor = new Descriptor{type, {}};
  return 0;
}
ULLAGE_CARD_API int cudnnBackendDestroyDescriptor(void* descriptor) {
  pack_addresses().take(descriptor);
  if (const CudnnLibrary* real = cudnn_library()) {
    untold().take(descriptor);
    return real->destroy(descriptor);
  }
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}
ULLAGE_CARD_API int cudnnBackendInitialize(void*) { return 0; }
ULLAGE_CARD_API int cudnnBackendFinalize(void* descriptor) {
  if (const CudnnLibrary* real = cudnn_library()) {
    if (const int told_by = card_attribute(untold().take(descriptor)); told_by != 0) {
      real->set(descriptor, told_by, kTypeDescriptor, 1, static_cast<const void*>(&real->card));
    }
    return real->finalize(descriptor);
  }
  if (static_cast<Descriptor*>(descriptor)->type == kPlan) ledger().unanswered_plans.fetch_add(1);
  return 0;
}
ULLAGE_CARD_API int cudnnBackendExecute(void* handle, void*, void* pack) {
  note_library_work();
  give_kernel(handle_from(handle)->stream, "a plan of cuDNN", pack_addresses().take(pack));
  return 0;
}
ULLAGE_CARD_API int cudnnBackendSetAttribute(void* descriptor, int name, int type, std::int64_t count,
                                             const void* values) {
  if (name == kPackPointers || name == kPackWorkspace) pack_addresses().add(descriptor, values, count);
  if (const CudnnLibrary* real = cudnn_library()) {
    return type == kTypeHandle ? 0 : real->set(descriptor, name, type, count, values);
  }
  Descriptor::Value& value = static_cast<Descriptor*>(descriptor)->values[name];
  value.count = count;
  const auto* bytes = static_cast<const char*>(values);
  value.bytes.assign(bytes, bytes + static_cast<std::size_t>(count) * attribute_width(type));
  return 0;
}
ULLAGE_CARD_API int cudnnBackendGetAttribute(void* descriptor, int name, int type, std::int64_t wanted,
                                             std::int64_t* count, void* out) {
  if (const CudnnLibrary* real = cudnn_library()) return real->get(descriptor, name, type, wanted, count, out);
  switch (name) {
    case kHeuristicResults:
    case kConfigurationEngine:
      if (count != nullptr) *count = 1;
      return 0;
    case kConfigurationWorkspace:
    case kPlanWorkspace:
    case kEngineGlobalIndex:
      return give_number(wanted, count, out, 0);
    default:
      return read_back(*static_cast<Descriptor*>(descriptor), name, type, wanted, count, out);
  }
}

}  // namespace ullage::drycard
