// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/interceptor.h"

#include "ullage/runtime/ops/op_info.h"
#include "ullage/runtime/ops/whole_copy.h"
#include "ullage/runtime/python/python_process.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

namespace ullage::runtime {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

// The key lies above autograd, autocast, functorch and Python's modes, so that one place sees what the program calls.
constexpr DispatchKey kKey = DispatchKey::TESTING_ONLY_GenericMode;
// Layers that dispatch the op again, maybe as other ops on other tensors. Those ops are intercepted instead. Python's
// modes and subclasses dispatch again too, but torch hides kKey from the ops that they call. So for these the op is
// intercepted before it reaches them.
constexpr DispatchKeySet kRunsAgain({DispatchKey::FuncTorchDynamicLayerFrontMode, DispatchKey::Functionalize});

// Layers that look at the arguments of an op, or note them, before its kernel does.
constexpr DispatchKeySet kNotesArguments({DispatchKey::Tracer, DispatchKey::Python, DispatchKey::PythonTLSSnapshot});

using Listeners = std::vector<OpListener*>;

// The listeners of the installed interceptor. Lists are never freed: ops in flight on other threads may read them.
std::atomic<const Listeners*> listeners{nullptr};
std::atomic<bool> by_key{false};     // enabled, by the dispatch key
std::atomic<bool> by_record{false};  // enabled, by RecordFunction
bool key_is_ours = false;            // the fallback stays registered for good once it is

thread_local OpCall* innermost = nullptr;
thread_local int slicing = 0;  // how many list ops run slice by slice here, one inside another

bool included() { return c10::impl::tls_local_dispatch_key_set().included_.has(kKey); }
bool excluded() { return c10::impl::tls_local_dispatch_key_set().excluded_.has(kKey); }

// An op between begin() and end() of its listeners. Each begin() that returned is followed by one end().
class Flight final {
 public:
  Flight(const Listeners& told, OpCall& call) : told_(told), call_(call) {
    call_.outer = std::exchange(innermost, &call_);
    try {
      for (; begun_ < told_.size(); ++begun_) told_[begun_]->begin(call_);
    } catch (...) {
      land({}, false);
      throw;
    }
  }
  ~Flight() {
    if (!landed_) land({}, false);
  }
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  void land(std::span<const c10::IValue> outputs, bool returned) noexcept {
    landed_ = true;
    while (begun_ != 0) told_[--begun_]->end(call_, outputs, returned);
    innermost = call_.outer;
  }

 private:
  const Listeners& told_;
  OpCall& call_;
  std::size_t begun_ = 0;
  bool landed_ = false;
};

struct Slicing final {
  Slicing() { ++slicing; }
  ~Slicing() { --slicing; }
  Slicing(const Slicing&) = delete;
  Slicing& operator=(const Slicing&) = delete;
};

bool fit(const Listeners& told, const OpCall& call) {
  for (OpListener* listener : told)
    if (!listener->fits(call)) return false;
  return true;
}

std::span<const c10::IValue> last(const torch::jit::Stack& stack, std::size_t count) {
  return std::span(stack).last(count);
}

void intercept(const c10::OperatorHandle& op, DispatchKeySet keys, torch::jit::Stack* stack) {
  const DispatchKeySet rest = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kKey);
  const Listeners* told = listeners.load(std::memory_order_acquire);
  if (told == nullptr || !by_key.load(std::memory_order_relaxed)) {
    c10::impl::tls_set_dispatch_key_included(kKey, false);
    op.redispatchBoxed(rest, stack);
    return;
  }
  const OpInfo& info = info_of(op);
  if (info.composite || rest.has_any(kRunsAgain) || c10::autocast_dispatch_keyset.has(rest.highestPriorityTypeId())) {
    op.redispatchBoxed(rest, stack);
    return;
  }
  OpCall call;
  call.handle = &info.handle;
  call.name = info.name;
  call.arguments = last(*stack, info.arguments);
  call.sliced = slicing > 0;
  gather(info, call.arguments, call);
  if (info.list_op) {
    if (const std::size_t length = list_length(*info.list_op, op, *stack); length > 1) {
      if (!fit(*told, call)) {
        call.inputs.clear();  // the slices hold the storages that they use
        const Slicing here;
        run_in_halves(*info.list_op, op, *stack, length);
        return;
      }
      mark_sliceable(*info.list_op, call, length);
    }
  }
  if (info.copies && !rest.has_any(kNotesArguments)) call.whole_copy = whole_copy_of(call);
  // The ops that listeners or the kernel run are not intercepted.
  const c10::impl::ExcludeDispatchKeyGuard unseen(kKey);
  Flight flight(*told, call);
  if (call.copied) copy_to_itself(std::span(*stack).last(info.arguments));
  call.arguments = {};
  op.redispatchBoxed(rest, stack);
  flight.land(last(*stack, info.returns), true);
}

// ---- by RecordFunction

struct Recorded final : at::ObserverContext {
  OpCall call;
  std::optional<Flight> flight;
  std::size_t returns = 0;
};

std::unique_ptr<at::ObserverContext> record_begin(const at::RecordFunction& record) {
  const Listeners* told = listeners.load(std::memory_order_acquire);
  // Torch also reports the ops that an intercepted op calls; they are not intercepted.
  if (told == nullptr || !by_record.load(std::memory_order_relaxed)) return nullptr;
  if (innermost != nullptr || excluded()) return nullptr;
  const std::optional<c10::OperatorName> name = record.operator_name();
  if (!name) return nullptr;
  const std::optional<c10::OperatorHandle> op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) return nullptr;
  const OpInfo& info = info_of(*op);
  const c10::ArrayRef<const c10::IValue> inputs = record.inputs();
  if (info.composite || inputs.size() < info.arguments) return nullptr;
  auto recorded = std::make_unique<Recorded>();
  recorded->call.handle = &info.handle;
  recorded->call.name = info.name;
  recorded->call.arguments = std::span(inputs.data(), inputs.size()).last(info.arguments);
  recorded->returns = info.returns;
  gather(info, recorded->call.arguments, recorded->call);
  try {
    recorded->flight.emplace(*told, recorded->call);
  } catch (const std::exception&) {
    // Torch would swallow the exception and log a page about it. The op runs, and page faults bring its inputs back.
    return nullptr;
  }
  recorded->call.arguments = {};
  return recorded;
}

void record_end(const at::RecordFunction& record, at::ObserverContext* context) {
  if (context == nullptr) return;
  auto* recorded = static_cast<Recorded*>(context);
  const std::vector<c10::IValue>& outputs = record.outputs();  // empty where the op threw
  const bool returned = outputs.size() >= recorded->returns;
  recorded->flight->land(returned ? last(outputs, recorded->returns) : std::span<const c10::IValue>{}, returned);
}

// Registers the fallback for the key. False: somebody else has the key.
bool take_key() {
  if (key_is_ours) return true;
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  if (dispatcher.hasBackendFallbackForDispatchKey(kKey)) return false;
  // Registered for good: otherwise a thread that is still armed would find no kernel for the key.
  new c10::RegistrationHandleRAII(dispatcher.registerFallback(
      kKey, c10::KernelFunction::makeFromBoxedFunction<&intercept>(), "ullage: every op passes here"));
  return key_is_ours = true;
}

std::uint64_t add_callback() {
  const std::uint64_t callback = at::addGlobalCallback(at::RecordFunctionCallback(&record_begin, &record_end)
                                                           .needsInputs(true)
                                                           .needsOutputs(true)
                                                           .scopes({at::RecordScope::FUNCTION}));
  at::disableCallback(callback);
  return callback;
}

}  // namespace

Result<std::unique_ptr<Interceptor>> Interceptor::install(std::vector<OpListener*> told, Way wanted) {
  if (listeners.load() != nullptr)
    return Error{Error::Kind::System, "an interceptor is installed in this process already", ""};
  const Way way = wanted == Way::DispatchKey && take_key() ? Way::DispatchKey : Way::RecordFunction;
  const std::uint64_t callback = way == Way::RecordFunction ? add_callback() : 0;
  listeners.store(new Listeners(std::move(told)), std::memory_order_release);
  return std::unique_ptr<Interceptor>(new Interceptor(way, callback));
}

Interceptor::~Interceptor() {
  disable();
  if (way_ == Way::RecordFunction) at::removeCallback(callback_);
  listeners.store(nullptr);
}

void Interceptor::enable() {
  prepare_python_later();
  if (way_ == Way::DispatchKey) {
    by_key.store(true);
    arm_this_thread();
  } else if (!by_record.exchange(true)) {
    at::reenableCallback(callback_);
  }
}

void Interceptor::disable() {
  by_key.store(false);
  if (by_record.exchange(false)) at::disableCallback(callback_);
}

bool Interceptor::enabled() {
  return by_key.load(std::memory_order_relaxed) || by_record.load(std::memory_order_relaxed);
}

void Interceptor::arm_this_thread() {
  if (!by_key.load(std::memory_order_relaxed) || included()) return;
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

bool Interceptor::sees_this_thread() {
  if (excluded() || !enabled()) return false;
  return included() || by_record.load(std::memory_order_relaxed);
}

const OpCall* Interceptor::current() { return innermost; }

UnseenOps::UnseenOps() : was_(excluded()) { c10::impl::tls_set_dispatch_key_excluded(kKey, true); }
UnseenOps::~UnseenOps() { c10::impl::tls_set_dispatch_key_excluded(kKey, was_); }

}  // namespace ullage::runtime
