// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <future>

namespace ullage::cli {

void side_by_side(const std::vector<std::function<void()>>& work, std::size_t at_once) {
  std::atomic<std::size_t> next{0};
  const auto do_pieces = [&] {
    std::exception_ptr first;
    for (std::size_t i = next++; i < work.size(); i = next++) {
      try {
        work[i]();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  };
  std::vector<std::future<void>> helpers;
  for (std::size_t i = 1; i < std::min(at_once, work.size()); ++i)
    helpers.push_back(std::async(std::launch::async, do_pieces));
  do_pieces();  // if this throws, the futures still wait for their threads
  for (std::future<void>& helper : helpers) helper.get();
}

}  // namespace ullage::cli
