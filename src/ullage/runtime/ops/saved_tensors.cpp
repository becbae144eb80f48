// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/saved_tensors.h"

#include "ullage/runtime/ops/op_info.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/SequenceNumber.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/csrc/autograd/variable.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <type_traits>
#include <utility>

namespace ullage::runtime {
namespace {

namespace autograd = torch::autograd;
using c10::DispatchKey;
using c10::DispatchKeySet;
// An intrusive_ptr since torch 2.13, a shared_ptr before.
using NodePtr = std::decay_t<decltype(std::declval<const at::Tensor&>().grad_fn())>;

std::atomic<SavedListener*> listener{nullptr};
thread_local bool hooks_off = false;
thread_local bool looking_for_hooking = false;  // leads_to_hooking() runs: our engine only notes that it was asked
thread_local bool found_hooking = false;        // our engine was asked

// Tensors with one of these keys must be copied by the layers of torch that they belong to (by detach()).
constexpr DispatchKeySet kWrapped =
    DispatchKeySet({DispatchKey::Python, DispatchKey::FuncTorchBatched, DispatchKey::FuncTorchGradWrapper,
                    DispatchKey::Functionalize, DispatchKey::NestedTensor});

const autograd::AutogradMeta* meta_of(const at::Tensor& tensor) {
  return static_cast<const autograd::AutogradMeta*>(tensor.unsafeGetTensorImpl()->autograd_meta());
}

bool is_leaf(const autograd::AutogradMeta* meta) { return meta == nullptr || meta->grad_fn_ == nullptr; }

SavedKind kind_of(const at::Tensor& tensor) {
  const autograd::AutogradMeta* meta = meta_of(tensor);
  if (is_leaf(meta)) return meta != nullptr && meta->requires_grad_ ? SavedKind::Parameter : SavedKind::Constant;
  if (meta->is_view_) {
    const auto* view = static_cast<const autograd::DifferentiableViewMeta*>(meta);
    if (view->has_bw_view() && is_leaf(meta_of(view->get_backward_view().base_))) return SavedKind::Parameter;
  }
  return SavedKind::Activation;
}

// Returns a tensor with the same bytes and the same version counter, but without the autograd history. An output's
// history would lead back to the node that saves it. For a plain tensor nothing is dispatched, not even under Python's
// modes.
at::Tensor without_history(const at::Tensor& tensor) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (impl.key_set().has_any(kWrapped) || !impl.unsafe_storage()) {
    try {
      return tensor.detach();
    } catch (const std::exception&) {
      return tensor;  // as torch keeps inputs; for an output this makes a reference cycle
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard no_modes(DispatchKey::Python);
  return at::Tensor(impl.shallow_copy_and_detach(impl.version_counter(), /*allow_tensor_metadata_change=*/false));
}

class Hook final : public autograd::SavedVariableHooks {
 public:
  Hook() = default;
  ~Hook() override {
    if (told_ == Address{}) return;
    if (SavedListener* to = listener.load(std::memory_order_acquire)) to->released(told_);
  }
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

  void call_pack_hook(const at::Tensor& tensor) override {
    const autograd::AutogradMeta* meta = meta_of(tensor);
    version_ = tensor.unsafeGetTensorImpl()->version_counter().current_version();
    if (is_leaf(meta)) {
      kept_ = tensor;
    } else {
      kept_ = without_history(tensor);
      original_ = c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr());
      is_output_ = meta->grad_fn_->sequence_nr() + 1 == at::sequence_number::peek();
      if (!meta->is_view_) made_by_ = meta->grad_fn_.get();
      output_ = meta->output_nr_;
    }
    SavedListener* to = listener.load(std::memory_order_acquire);
    if (to == nullptr) return;
    if (const std::optional<StorageUse> use = storage_use(*kept_.unsafeGetTensorImpl())) {
      to->saved(*use, kind_of(tensor));
      told_ = use->begin;
    }
  }

  at::Tensor call_unpack_hook() override {
    const std::uint32_t now = kept_.unsafeGetTensorImpl()->version_counter().current_version();
    if (now != version_) refuse(now);
    if (SavedListener* to = listener.load(std::memory_order_acquire); to != nullptr && told_ != Address{}) {
      if (const std::optional<StorageUse> use = storage_use(*kept_.unsafeGetTensorImpl())) to->unpacking(*use);
    }
    return kept_;
  }

 private:
  // The node that torch names in its error. For an input it is the grad_fn that the tensor has now, if the tensor
  // lives; for an output, the node that saves it. The raw pointer is valid, because the saved variable holds an input's
  // maker, and an output is unpacked by its own maker. Views have no such pointer, because their makers are replaced at
  // every change; a view that is gone stays unnamed.
  NodePtr culprit() const {
    if (!is_output_) {
      if (auto original = original_.lock()) return at::Tensor(std::move(original)).grad_fn();
    }
    return made_by_ == nullptr ? NodePtr() : made_by_->getptr();
  }

  // Throws torch's own error, whose text changes from version to version. To get it, makes the same mismatch of
  // versions for a saved variable without hooks, and unpacks it.
  [[noreturn]] void refuse(std::uint32_t now) const {
    const bool were_off = std::exchange(hooks_off, true);
    const NodePtr maker = culprit();
    const at::Tensor stand_in = maker ? autograd::make_variable(kept_, autograd::Edge(maker, output_))
                                      : autograd::make_variable(kept_, /*requires_grad=*/false);
    autograd::impl::set_version_counter(stand_in, c10::VariableVersion(version_));
    const autograd::SavedVariable saved(stand_in, /*is_output=*/false);
    hooks_off = were_off;
    autograd::impl::set_version_counter(stand_in, c10::VariableVersion(now));
    (void)saved.unpack();
    TORCH_CHECK(false,
                "one of the variables needed for gradient computation has been modified by an inplace operation");
    std::abort();  // not reached: the line above throws
  }

  at::Tensor kept_;
  Address told_{};  // the address that saved() got; zero: it was not called
  // All following members except version_ serve only the error's text.
  c10::weak_intrusive_ptr<c10::TensorImpl> original_{c10::intrusive_ptr<c10::TensorImpl>()};
  autograd::Node* made_by_ = nullptr;
  std::uint32_t output_ = 0;
  std::uint32_t version_ = 0;
  bool is_output_ = false;  // the tensor is an output of the node that saves it, as far as the order of nodes shows
};

// Torch asks its default engine for saved-tensor hooks, and to run backward. This engine gives hooks if the engine
// before it has none, and passes all else on to that engine.
class HookingEngine final : public autograd::Engine {
 public:
  explicit HookingEngine(autograd::Engine& before) : before_(&before) {}
  ~HookingEngine() override { stop(); }

  autograd::variable_list execute(const autograd::edge_list& roots, const autograd::variable_list& inputs,
                                  bool keep_graph, bool create_graph, bool accumulate_grad,
                                  const autograd::edge_list& outputs) override {
    return before().execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }
  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(const std::shared_ptr<autograd::GraphTask>& task,
                                                                 NodePtr root,
                                                                 autograd::InputBuffer&& buffer) override {
    return before().execute_with_graph_task(task, std::move(root), std::move(buffer));
  }
  std::unique_ptr<autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return before().make_anomaly_metadata();
  }
  std::unique_ptr<autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (hooks_off) return nullptr;
    if (looking_for_hooking) {
      found_hooking = true;
      return nullptr;
    }
    if (auto hooks = before().get_default_saved_variable_hooks()) return hooks;
    if (listener.load(std::memory_order_relaxed) == nullptr) return nullptr;
    if (at::SavedTensorDefaultHooks::get_tls_state().is_tracing) return nullptr;
    // Torch detaches what hooks return, and a mode would see that as one more op.
    if (c10::impl::TorchDispatchModeTLS::any_modes_set()) return nullptr;
    return std::make_unique<Hook>();
  }

  autograd::Engine& before() const { return *before_.load(std::memory_order_acquire); }
  void put_before(autograd::Engine& engine) { before_.store(&engine, std::memory_order_release); }

 private:
  std::atomic<autograd::Engine*> before_;
};

// Made at the first install and never destroyed: torch may ask it until the process ends.
HookingEngine* hooking = nullptr;
std::mutex placing;

// Would `first`, if it has no hooks of its own, ask our engine? The engine of ullage::train would. While torch traces,
// no engine gives hooks of its own. If each of two engines asked the other, the calls would never end.
bool leads_to_hooking(autograd::Engine& first) {
  const bool was_tracing = at::SavedTensorDefaultHooks::set_tracing(true);
  looking_for_hooking = true, found_hooking = false;
  (void)first.get_default_saved_variable_hooks();
  looking_for_hooking = false;
  at::SavedTensorDefaultHooks::set_tracing(was_tracing);
  return found_hooking;
}

void take_first_place() {
  const std::lock_guard lock(placing);
  autograd::Engine& first = autograd::Engine::get_default_engine();
  if (&first == hooking) return;
  if (hooking == nullptr) {
    hooking = new HookingEngine(first);
  } else if (leads_to_hooking(first)) {
    return;
  } else {
    hooking->put_before(first);
  }
  autograd::set_default_engine_stub([]() -> autograd::Engine& { return *hooking; });
}

void give_back_first_place() {
  const std::lock_guard lock(placing);
  if (&autograd::Engine::get_default_engine() != hooking) return;
  autograd::set_default_engine_stub([]() -> autograd::Engine& { return hooking->before(); });
}

}  // namespace

Result<std::unique_ptr<SavedTensorHooks>> SavedTensorHooks::install(SavedListener& to) {
  SavedListener* none = nullptr;
  if (!listener.compare_exchange_strong(none, &to))
    return Error{Error::Kind::System, "saved-tensor hooks are on in this process already", ""};
  take_first_place();
  return std::unique_ptr<SavedTensorHooks>(new SavedTensorHooks);
}

SavedTensorHooks::~SavedTensorHooks() {
  give_back_first_place();
  listener.store(nullptr);
}

void SavedTensorHooks::renew() { take_first_place(); }

}  // namespace ullage::runtime
