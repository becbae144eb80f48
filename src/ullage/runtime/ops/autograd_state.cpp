// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/autograd_state.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <c10/util/Type.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/version.h>

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>

namespace ullage::runtime {
namespace {

// How many regions this thread is inside that autograd records as a whole.
thread_local int wholes = 0;

// Names a node by its type. The node's own name() may call into Python, and so take locks that must not be taken here.
std::string name_of_type(const std::type_info& type) {
  std::string name = c10::demangle(type.name());
  if (name.find("PyNode") != name.npos) return "a function of Python";
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

// Is this a thread of the autograd engine, which has one for each card? Torch gives them names that begin like this.
bool is_of_the_engine() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string_view(name).starts_with("pt_autograd_");
}

std::string_view known_name(const std::type_info& type) {
  static std::mutex lock;
  static auto* names = new std::unordered_map<std::type_index, std::string>;  // never freed: views live for ever
  const std::lock_guard guard(lock);
  const auto [found, is_new] = names->try_emplace(type);
  if (is_new) found->second = name_of_type(type);
  return found->second;
}

}  // namespace

std::uint32_t thread_of_work(bool in_op) {
  static std::atomic<std::uint32_t> next{0};
  static std::atomic<std::uint32_t> last{0};  // the thread of the program that ran an op last
  thread_local const bool engines = is_of_the_engine();
  thread_local std::uint32_t number = engines ? last.load() : next.fetch_add(1);
  if (!engines) {
    if (in_op) last.store(number, std::memory_order_relaxed);
    return number;
  }
  thread_local int pass = -1;  // the backward pass that this thread works on
  if (const int now = torch::autograd::get_current_graph_task_id(); now != pass) {
    pass = now;
    if (now != -1) number = last.load();
  }
  return number;
}

bool in_backward() { return torch::autograd::get_current_graph_task_id() != -1; }

bool grad_mode() { return c10::GradMode::is_enabled() || wholes > 0; }

void recorded_as_a_whole(bool enters) { wholes += enters ? 1 : -1; }

std::string_view node_being_run() {
  if (!in_backward()) return {};
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr) return {};
  const torch::autograd::Node& one = *node;
  thread_local const std::type_info* last = nullptr;
  thread_local std::string_view last_name;
  if (last != &typeid(one)) {
    last_name = known_name(typeid(one));
    last = &typeid(one);
  }
  return last_name;
}

bool is_trained_leaf(const c10::TensorImpl& tensor) {
  const auto* meta = static_cast<const torch::autograd::AutogradMeta*>(tensor.autograd_meta());
  return meta != nullptr && meta->requires_grad_ && meta->grad_fn_ == nullptr && !meta->is_view_;
}

bool uses_onednn() { return at::globalContext().userEnabledMkldnn(); }

std::string torch_version() { return TORCH_VERSION; }

}  // namespace ullage::runtime
