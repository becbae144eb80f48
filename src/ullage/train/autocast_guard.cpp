// SPDX-License-Identifier: Apache-2.0
#include "ullage/train/autocast_guard.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include <algorithm>
#include <string>

namespace ullage::train {
namespace {

using at::DeviceType;
using at::ScalarType;

bool knows_autocast(DeviceType device) {
  const auto& devices = at::autocast::_AUTOCAST_SUPPORTED_DEVICES;
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

}  // namespace

Status can_autocast(DeviceType device, std::optional<ScalarType> dtype) {
  const std::string name = c10::DeviceTypeName(device, /*lower_case=*/true);
  if (!knows_autocast(device))
    return Error{Error::Kind::BadArgument, "torch has no autocast for " + name + "; cpu and cuda have it", ""};
  if (device == DeviceType::CUDA && !at::globalContext().hasCUDA())
    return Error{Error::Kind::BadArgument,
                 "autocast was asked for cuda, but this machine has no CUDA device; cpu has autocast too", ""};
  const ScalarType wanted = dtype.value_or(at::autocast::get_autocast_dtype(device));
  if (wanted != ScalarType::BFloat16 && wanted != ScalarType::Half) {
    return Error{Error::Kind::BadArgument,
                 std::string("autocast cannot cast to ") + c10::toString(wanted) + " on " + name +
                     "; give BFloat16 or Half (torch::kBFloat16, torch::kHalf)",
                 ""};
  }
  return success();
}

AutocastGuard::AutocastGuard(DeviceType device, std::optional<ScalarType> dtype, bool enabled,
                             std::optional<bool> cache_enabled)
    : device_(device), cache_enabled_before_(at::autocast::is_autocast_cache_enabled()) {
  if (enabled) {
    if (const Status able = can_autocast(device, dtype); !able) throw ContractError(able.error().text());
  }
  enabled_before_ = at::autocast::is_autocast_enabled(device);
  dtype_before_ = at::autocast::get_autocast_dtype(device);
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_dtype(device, dtype.value_or(dtype_before_));
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(cache_enabled.value_or(cache_enabled_before_));
}

AutocastGuard::~AutocastGuard() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, enabled_before_);
  at::autocast::set_autocast_dtype(device_, dtype_before_);
  at::autocast::set_autocast_cache_enabled(cache_enabled_before_);
}

}  // namespace ullage::train
