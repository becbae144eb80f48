// SPDX-License-Identifier: Apache-2.0
// cuDNN's backend descriptors: what is set can be read back; every operation graph has one engine, which takes no
// workspace. A later version asks the real library, which answers for cards that are described and not there.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/streams.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace ullage::drycard {
namespace {

// cudnnBackendAttributeName_t, of cudnn_graph.h 9.20.
constexpr int kHeuristicResults = 202;
constexpr int kConfigurationEngine = 300;
constexpr int kConfigurationWorkspace = 303;
constexpr int kPlanWorkspace = 402;
constexpr int kEngineGlobalIndex = 1301;

// cudnnBackendAttributeType_t
constexpr int kTypeBoolean = 2;

constexpr int kTypeDescriptor = 15;

struct Descriptor {
  struct Value {
    std::int64_t count = 0;
    std::vector<char> bytes;
  };
  int type = 0;
  std::map<int, Value> values;
};

std::size_t width_of(int type) {
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
  const std::size_t width = width_of(type);
  if (it == descriptor.values.end()) {
    // Of what was never set there is none. Callers hand in descriptors to be filled, which stay as they are.
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
  *descriptor = new Descriptor{type, {}};
  return 0;
}
ULLAGE_CARD_API int cudnnBackendDestroyDescriptor(void* descriptor) {
  delete static_cast<Descriptor*>(descriptor);
  return 0;
}
ULLAGE_CARD_API int cudnnBackendInitialize(void*) { return 0; }
ULLAGE_CARD_API int cudnnBackendFinalize(void*) { return 0; }
ULLAGE_CARD_API int cudnnBackendExecute(void*, void*, void*) {
  note_library_work();
  return 0;
}
ULLAGE_CARD_API int cudnnBackendSetAttribute(void* descriptor, int name, int type, std::int64_t count,
                                             const void* values) {
  Descriptor::Value& value = static_cast<Descriptor*>(descriptor)->values[name];
  value.count = count;
  const auto* bytes = static_cast<const char*>(values);
  value.bytes.assign(bytes, bytes + static_cast<std::size_t>(count) * width_of(type));
  return 0;
}
ULLAGE_CARD_API int cudnnBackendGetAttribute(void* descriptor, int name, int type, std::int64_t wanted,
                                             std::int64_t* count, void* out) {
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
