// SPDX-License-Identifier: Apache-2.0
// Checks the stand-in's promise to allocators: it touches bytes of the card only during an op that has them as an
// argument or made them. Here the bytes are protected (PROT_NONE) outside of ops, so any other access faults.

#include "card_programs.h"
#include "stand_in_card.h"

#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <sys/mman.h>

#include <csignal>
#include <map>
#include <mutex>

namespace card_torch {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

constexpr DispatchKey kKey = DispatchKey::TESTING_ONLY_GenericMode;  // above autograd

class GuardedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return {nullptr, kOnCard};
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TORCH_CHECK(at != MAP_FAILED, "no memory");
    const std::lock_guard lock(lock_);
    blocks_[at] = bytes;
    return {at, at, &GuardedMemory::free, kOnCard};
  }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  void open(const void* at) { protect(at, PROT_READ | PROT_WRITE); }
  void close_all() {
    const std::lock_guard lock(lock_);
    for (const auto& [at, bytes] : blocks_) mprotect(at, bytes, PROT_NONE);
  }
  std::size_t blocks() {
    const std::lock_guard lock(lock_);
    return blocks_.size();
  }

 private:
  static void free(void* at);
  void protect(const void* at, int how) {
    const std::lock_guard lock(lock_);
    const auto found = blocks_.find(const_cast<void*>(at));
    if (found != blocks_.end()) mprotect(found->first, found->second, how);
  }
  std::mutex lock_;
  std::map<void*, std::size_t> blocks_;
};

GuardedMemory& guarded() {
  static auto* const made = new GuardedMemory;  // never freed, because torch keeps it
  return *made;
}

void GuardedMemory::free(void* at) {
  const std::lock_guard lock(guarded().lock_);
  const auto block = guarded().blocks_.extract(at);
  munmap(at, block.mapped());
}

void open_for(const Tensor& tensor) {
  if (tensor.defined() && tensor.is_cuda()) guarded().open(tensor.storage().data());
}

void open_for(const c10::IValue& value) {
  if (value.isTensor()) open_for(value.toTensor());
  if (value.isTensorList())
    for (const Tensor& tensor : value.toTensorVector()) open_for(tensor);
  if (value.isOptionalTensorList())
    for (const std::optional<Tensor> tensor : value.toOptionalTensorList())
      if (tensor) open_for(*tensor);
}

void run_guarded(const c10::OperatorHandle& op, DispatchKeySet keys, torch::jit::Stack* stack) {
  const DispatchKeySet rest = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, kKey);
  const bool recipe = op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
                      !op.hasKernelForDispatchKey(DispatchKey::CUDA);
  if (recipe) return op.redispatchBoxed(rest, stack);
  for (const c10::IValue& argument : torch::jit::last(*stack, op.schema().arguments().size())) open_for(argument);
  {
    const c10::impl::ExcludeDispatchKeyGuard inside(kKey);
    op.redispatchBoxed(rest, stack);
  }
  guarded().close_all();
}

class GuardedCard : public testing::Test {
 protected:
  void SetUp() override {
    install();
    at::globalContext().setSDPUseFlash(false);
    static auto* const fallback = new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
        kKey, c10::KernelFunction::makeFromBoxedFunction<&run_guarded>(), "guards the card's memory"));
    ASSERT_NE(fallback, nullptr);
  }
  void guard(bool on) {
    c10::SetAllocator(c10::DeviceType::CUDA, on ? &guarded() : plain_allocator(), 255);
    c10::impl::tls_set_dispatch_key_included(kKey, on);
  }
  void TearDown() override { guard(false); }
};

TEST_F(GuardedCard, BytesAreTouchedInsideOpsAlone) {
  const Program drops{.dropout = 0.2};
  const Named pictures = train_on_pictures(kOnCard, drops), words = train_on_words(kOnCard, drops),
              series = train_on_series(kOnCard);
  guard(true);
  EXPECT_TRUE(same(pictures, train_on_pictures(kOnCard, drops)));
  EXPECT_TRUE(same(words, train_on_words(kOnCard, drops)));
  EXPECT_TRUE(same(series, train_on_series(kOnCard)));
  EXPECT_EQ(guarded().blocks(), 0u);
}

TEST_F(GuardedCard, NoticesWhoReadsBetweenOps) {
  guard(true);
  const Tensor x = torch::ones({3}, kOnCard);
  EXPECT_EXIT(EXPECT_EQ(*x.const_data_ptr<float>(), 1), testing::KilledBySignal(SIGSEGV), "");
  guard(false);
  guarded().open(x.storage().data());
  EXPECT_EQ(*x.const_data_ptr<float>(), 1);
}

}  // namespace
}  // namespace card_torch
