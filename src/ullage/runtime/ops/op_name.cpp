// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/ops/op_name.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <cctype>
#include <string_view>

namespace ullage::runtime {
namespace {

constexpr int kDeepest = 256;

// "_ZN2at4_ops20convolution_backward4callE..." -> "convolution_backward"; empty for any other symbol.
std::string_view op_of_symbol(std::string_view symbol) {
  constexpr std::string_view kPrefix = "_ZN2at4_ops";
  if (!symbol.starts_with(kPrefix)) return {};
  symbol.remove_prefix(kPrefix.size());
  std::size_t length = 0;
  while (!symbol.empty() && std::isdigit(static_cast<unsigned char>(symbol.front()))) {
    length = length * 10 + static_cast<std::size_t>(symbol.front() - '0');
    symbol.remove_prefix(1);
  }
  return symbol.substr(0, length);
}

bool makes_tensors_only(std::string_view op) {
  for (const std::string_view factory : {"empty", "new_empty", "resize_"}) {
    if (op.starts_with(factory)) return true;
  }
  return false;
}

}  // namespace

std::string op_on_the_stack() {
  std::array<void*, kDeepest> frames{};
  const int depth = backtrace(frames.data(), kDeepest);
  std::string factory;
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0 || info.dli_sname == nullptr) continue;
    const std::string_view op = op_of_symbol(info.dli_sname);
    if (op.empty()) continue;
    if (!makes_tensors_only(op)) return "aten::" + std::string(op);
    if (factory.empty()) factory = "aten::" + std::string(op);
  }
  return factory.empty() ? std::string(kOutsideOps) : factory;
}

}  // namespace ullage::runtime
