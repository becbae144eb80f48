// SPDX-License-Identifier: Apache-2.0
#include "card_generator.h"

#include "card_parts.h"

#include <ATen/EmptyTensor.h>

#include <cstring>
#include <mutex>

namespace card_torch {
namespace {

constexpr std::uint64_t kStep = 4;  // of the offset; CUDA, too, counts its draws in fours
constexpr std::size_t kStateBytes = 2 * sizeof(std::uint64_t);

// splitmix64 (Steele, Lea and Flood 2014), so that neighbouring offsets give very different seeds.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

}  // namespace

CardGenerator::CardGenerator(std::uint64_t seed)
    : GeneratorImpl(kCard, c10::DispatchKeySet(c10::DispatchKey::CUDA)), place_(new Place{seed}) {}

std::uint64_t CardGenerator::next_cpu_seed() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t made = mixed(mixed(place_->seed) ^ place_->offset);
  place_->offset += kStep;
  ++counters().draws;
  return made;
}

void CardGenerator::set_current_seed(std::uint64_t seed) { *place_ = {seed}; }

std::uint64_t CardGenerator::seed() {
  set_current_seed(c10::detail::getNonDeterministicRandom());
  return place_->seed;
}

void CardGenerator::set_offset(std::uint64_t offset) {
  TORCH_CHECK(offset % kStep == 0, "an offset must be a multiple of ", kStep, ", not ", offset);
  place_->offset = offset;
}

void CardGenerator::set_state(const c10::TensorImpl& state) {
  TORCH_CHECK(state.device().is_cpu() && state.dtype() == caffe2::TypeMeta::Make<std::uint8_t>() &&
                  static_cast<std::size_t>(state.numel()) == kStateBytes && state.is_contiguous(),
              "the state of a generator of the card is ", kStateBytes, " bytes on the CPU, not ", state.numel(),
              " elements of ", state.dtype(), " on ", state.device());
  std::uint64_t words[2];
  std::memcpy(words, state.data(), kStateBytes);
  place_->seed = words[0];
  set_offset(words[1]);
}

c10::intrusive_ptr<c10::TensorImpl> CardGenerator::get_state() const {
  const at::TensorBase state = at::detail::empty_cpu({static_cast<std::int64_t>(kStateBytes)}, at::kByte);
  const std::uint64_t words[2] = {place_->seed, place_->offset};
  std::memcpy(state.mutable_data_ptr(), words, kStateBytes);
  return state.getIntrusivePtr();
}

CardGenerator* CardGenerator::clone_impl() const {
  auto* made = new CardGenerator;
  *made->place_ = *place_;
  return made;
}

void CardGenerator::graphsafe_set_state(const c10::intrusive_ptr<c10::GeneratorImpl>& state) {
  const auto* given = dynamic_cast<const CardGenerator*>(state.get());
  TORCH_CHECK(given != nullptr, "the state of a generator of the card is a generator of the card");
  place_ = given->place_;
}

c10::intrusive_ptr<c10::GeneratorImpl> CardGenerator::graphsafe_get_state() const {
  auto made = c10::make_intrusive<CardGenerator>();
  made->place_ = place_;
  return made;
}

const at::Generator& default_generator() {
  static const auto* made = new at::Generator(at::make_generator<CardGenerator>());
  return *made;
}

}  // namespace card_torch
