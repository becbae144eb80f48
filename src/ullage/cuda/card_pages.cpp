// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/card_pages.h"

#include "ullage/base/check.h"

#include <vector>

namespace ullage::cuda {

using abi::kSuccess;

CardPages::~CardPages() {
  if (reserved_.size == Bytes{}) return;
  static_cast<void>(driver_.synchronize());
  for (const auto& [at, handle] : behind_) {
    driver_.unmap(Address{at}, granularity());
    driver_.release(handle);
  }
  driver_.unreserve(reserved_);
}

Result<store::AddressRange> CardPages::reserve(Bytes wanted) {
  ULLAGE_CHECK(reserved_.size == Bytes{}, "reserve is called once");
  Result<store::AddressRange> range = driver_.reserve(round_up(wanted, granularity()));
  for (Bytes size = wanted / 2; !range && size >= 1_GiB; size = size / 2)
    range = driver_.reserve(round_up(size, granularity()));
  if (range) reserved_ = *range;
  return range;
}

bool CardPages::fill(Address at, Bytes length, store::PageKind kind) {
  if (kind != store::PageKind::Huge) return false;  // a card's pages of 2 MiB are what the store calls huge
  for (Bytes done; done < length; done += granularity()) {
    abi::Handle handle = 0;
    const bool made = driver_.create(handle) == kSuccess;
    if (made && driver_.map(at + done, handle) == kSuccess) {
      behind_.emplace((at + done).value, handle);
      continue;
    }
    if (made) driver_.release(handle);
    drop(at, done);
    return false;
  }
  if (driver_.allow(at, length) == kSuccess) {
    driver_.fresh(at, length);  // no work of the card has used these pages at these addresses yet
    return true;
  }
  drop(at, length);
  return false;
}

bool CardPages::move(Address from, Address to, Bytes length) {
  if (!driver_.synchronize(from, length) || driver_.unmap(from, length) != kSuccess) return false;
  for (Bytes done; done < length; done += granularity()) {
    auto page = behind_.extract((from + done).value);
    ULLAGE_CHECK(!page.empty(), "pages are moved from addresses that have none");
    page.key() = (to + done).value;
    behind_.insert(std::move(page));
  }
  if (map_all(to, length)) {
    driver_.fresh(to, length);
    return true;
  }
  // Maps the pages at `from` again, where the caller expects them.
  for (Bytes done; done < length; done += granularity()) {
    auto page = behind_.extract((to + done).value);
    page.key() = (from + done).value;
    behind_.insert(std::move(page));
  }
  ULLAGE_CHECK(map_all(from, length), "the card did not map pages again where they were before");
  return false;
}

// Maps all pages of the range, or none.
bool CardPages::map_all(Address at, Bytes length) {
  Bytes done;
  while (done < length && driver_.map(at + done, behind_.at((at + done).value)) == kSuccess) done += granularity();
  if (done == length && driver_.allow(at, length) == kSuccess) return true;
  if (done > Bytes{}) driver_.unmap(at, done);
  return false;
}

void CardPages::drop(Address at, Bytes length) {
  if (length == Bytes{}) return;
  // An error means that the card has failed. Then no kernel runs that could still use the pages.
  static_cast<void>(driver_.synchronize(at, length));
  driver_.unmap(at, length);
  for (Bytes done; done < length; done += granularity()) {
    const auto page = behind_.find((at + done).value);
    if (page == behind_.end()) continue;
    driver_.release(page->second);
    behind_.erase(page);
  }
}

}  // namespace ullage::cuda
