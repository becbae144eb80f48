// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/op_info.h"

#include "ullage/plan/model/recompute_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/OperatorOptions.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace ullage::runtime {
namespace {

constexpr std::size_t kSlots = 512;     // in a thread's direct-mapped cache; a step runs a few hundred operators
constexpr std::size_t kFewInputs = 16;  // compared one by one; more are sorted
constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * kOdd;
  return hash ^ (hash >> 29);
}

std::size_t key_of(const c10::OperatorHandle& op) { return std::hash<c10::OperatorHandle>{}(op); }

// Infos are never freed: names and running calls point into them.
struct Registry {
  std::mutex mutex;
  std::unordered_map<std::size_t, const OpInfo*> infos;
  std::atomic<std::uint64_t> generation{1};  // grows when an operator is deregistered: its address may be reused
};

class Forget final : public c10::OpRegistrationListener {
 public:
  explicit Forget(Registry& registry) : registry_(registry) {}
  void onOperatorRegistered(const c10::OperatorHandle&) override {}
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    const std::lock_guard lock(registry_.mutex);
    registry_.infos.erase(key_of(op));
    registry_.generation.fetch_add(1, std::memory_order_release);
  }

 private:
  Registry& registry_;
};

Registry& registry() {
  static Registry* made = [] {
    auto* r = new Registry;
    new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Forget>(*r)));
    return r;
  }();
  return *made;
}

// Does each returned value alias an argument that the op does not write?
bool returns_only_views(const c10::FunctionSchema& schema) {
  const auto is_view = [](const c10::Argument& one) {
    return one.alias_info() != nullptr && !one.alias_info()->isWrite();
  };
  return !schema.returns().empty() && std::all_of(schema.returns().begin(), schema.returns().end(), is_view);
}

bool picks_by_indices(const std::string& schema_name) {
  static constexpr std::array kAll = {"aten::embedding",    "aten::_embedding_bag", "aten::_embedding_bag_forward_only",
                                      "aten::index_select", "aten::index",          "aten::gather",
                                      "aten::take"};
  return std::find(kAll.begin(), kAll.end(), schema_name) != kAll.end();
}

// Could a value of this type hold tensors? If the schema leaves the type open, each call's value is looked at.
bool may_hold_tensors(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      return may_hold_tensors(type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType:
      return may_hold_tensors(type->expectRef<c10::ListType>().getElementType());
    case c10::TypeKind::TensorType:
    case c10::TypeKind::AnyType:
    case c10::TypeKind::TupleType:
    case c10::TypeKind::StorageType:
      return true;
    default:
      return false;
  }
}

const OpInfo* describe(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  auto* info = new OpInfo{.handle = op, .name = schema.name(), .tensors = {}, .list_op = {}};
  if (!schema.overload_name().empty()) info->name += "." + schema.overload_name();
  info->seed = mix(kOdd, key_of(op));
  info->says_all_writes = plan::writes_what_it_says(info->name);
  // An op with a kernel of its own for the CPU or CUDA is not composite, even if it is made of other ops elsewhere.
  info->composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
                    !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
                    !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  info->only_views = returns_only_views(schema);
  info->copies = info->name == "aten::copy_";
  info->is_collective = info->name.starts_with("c10d::") || info->name.starts_with("_c10d_functional");
  info->picks = picks_by_indices(schema.name());
  info->arguments = schema.arguments().size();
  info->returns = schema.returns().size();
  for (std::size_t i = 0; i < info->arguments; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    if (may_hold_tensors(argument.real_type())) info->tensors.push_back({i, written});
  }
  info->list_op = ListOp::of(op);
  return info;
}

struct Cache {
  struct Slot {
    std::size_t key = 0;
    const OpInfo* info = nullptr;
  };
  std::uint64_t generation = 0;
  std::array<Slot, kSlots> slots;
};

const OpInfo* look_up(const c10::OperatorHandle& op, std::size_t key) {
  Registry& r = registry();
  {
    const std::lock_guard lock(r.mutex);
    if (const auto found = r.infos.find(key); found != r.infos.end()) return found->second;
  }
  const OpInfo* made = describe(op);
  const std::lock_guard lock(r.mutex);
  return r.infos.try_emplace(key, made).first->second;
}

std::atomic<c10::Device> followed{c10::Device(c10::kCPU)};

bool is_followed(const c10::StorageImpl& storage) { return storage.device_type() == followed_device().type(); }

// The tensor's storage; null if it has no bytes on the followed device. Calls no accessor that checks, throws or
// dispatches.
c10::StorageImpl* followed_storage(const c10::TensorImpl& tensor) {
  c10::StorageImpl* storage = tensor.unsafe_storage().unsafeGetStorageImpl();
  if (storage == nullptr || !is_followed(*storage)) return nullptr;
  return storage->_mutable_data_ptr_no_checks().get() == nullptr ? nullptr : storage;
}

StorageUse use_of(c10::StorageImpl* storage, bool written) {
  const auto begin = reinterpret_cast<std::uint64_t>(storage->_mutable_data_ptr_no_checks().get());
  const std::int64_t size = storage->sym_nbytes().maybe_as_int().value_or(0);
  return {.begin = Address{begin},
          .size = Bytes{static_cast<std::uint64_t>(size)},
          .written = written,
          .storage = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(storage)};
}

void add_tensor(const at::TensorBase& tensor, bool written, OpCall& call) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  c10::StorageImpl* storage = followed_storage(impl);
  if (storage == nullptr) return;
  const auto type = static_cast<std::uint64_t>(impl.dtype().toScalarType());
  const c10::SymIntArrayRef sizes = impl.sym_sizes_default();
  std::uint64_t hash = mix(call.signature.shapes, type);
  for (const c10::SymInt& size : sizes) hash = mix(hash, static_cast<std::uint64_t>(size.as_int_unchecked()));
  call.signature = {hash, mix(call.signature.kind, type ^ (sizes.size() << 8))};
  if (call.inputs.size() <= kFewInputs) {
    for (StorageUse& known : call.inputs) {
      if (known.storage.get() != storage) continue;
      known.written |= written;
      return;
    }
  }
  StorageUse use = use_of(storage, written);
  if (use.size != Bytes{}) call.inputs.push_back(std::move(use));
}

void add_value(const c10::IValue& value, bool written, OpCall& call) {
  each_tensor(value, [&](const at::Tensor& tensor) { add_tensor(tensor, written, call); });
  if (!value.isStorage()) return;
  c10::StorageImpl* storage = value.toStorage().unsafeGetStorageImpl();
  if (storage == nullptr || !is_followed(*storage)) return;
  StorageUse use = use_of(storage, written);
  if (use.begin != Address{} && use.size != Bytes{}) call.inputs.push_back(std::move(use));
}

// For long lists: keeps each storage once, in the order of the StorageImpls' addresses.
void merge(OpCall& call) {
  std::sort(call.inputs.begin(), call.inputs.end(),
            [](const StorageUse& a, const StorageUse& b) { return a.storage.get() < b.storage.get(); });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.inputs[i].storage == call.inputs[kept].storage) {
      call.inputs[kept].written |= call.inputs[i].written;
    } else if (++kept != i) {
      call.inputs[kept] = std::move(call.inputs[i]);
    }
  }
  call.inputs.pop_back_n(call.inputs.size() - (kept + 1));
}

}  // namespace

const OpInfo& info_of(const c10::OperatorHandle& op) {
  thread_local Cache cache;
  const std::uint64_t generation = registry().generation.load(std::memory_order_acquire);
  if (cache.generation != generation) {
    cache.slots.fill({});
    cache.generation = generation;
  }
  const std::size_t key = key_of(op);
  Cache::Slot& slot = cache.slots[(key >> 4) * kOdd >> 55];
  if (slot.key != key) slot = {key, look_up(op, key)};
  return *slot.info;
}

void gather(const OpInfo& info, std::span<const c10::IValue> arguments, OpCall& call) {
  call.signature = info.seed;
  for (const OpInfo::TensorArgument& tensor : info.tensors) add_value(arguments[tensor.position], tensor.written, call);
  if (call.inputs.size() > kFewInputs) merge(call);
}

c10::Device followed_device() { return followed.load(std::memory_order_relaxed); }

void follow_device(c10::Device device) { followed.store(device); }

Address bytes_of(const c10::TensorImpl& tensor) {
  c10::StorageImpl* storage = followed_storage(tensor);
  return {storage == nullptr ? 0 : reinterpret_cast<std::uint64_t>(storage->_mutable_data_ptr_no_checks().get())};
}

std::optional<StorageUse> storage_use(const c10::TensorImpl& tensor) {
  c10::StorageImpl* storage = followed_storage(tensor);
  if (storage == nullptr) return std::nullopt;
  StorageUse use = use_of(storage, false);
  if (use.size == Bytes{}) return std::nullopt;
  return use;
}

}  // namespace ullage::runtime
