// SPDX-License-Identifier: Apache-2.0
#include "ullage/cuda/card_pages.h"

#include "ullage/base/check.h"

namespace ullage::cuda {

using abi::kSuccess;

CardPages::~CardPages() {
  if (reserved_.size == Bytes{}) return;
  static_cast<void>(driver_.synchronize());
  for (const auto& [at, handle] : behind_) {
    driver_.unmap(Address{at}, granularity());
    driver_.release(handle);
  }
  for (const abi::Handle handle : unmapped_) driver_.release(handle);
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
  if (!unmap(from, length)) return false;
  if (remap(to, length)) return true;
  ULLAGE_CHECK(remap(from, length), "the card did not map pages again where they were before");
  return false;
}

bool CardPages::unmap(Address at, Bytes length) {
  if (!driver_.synchronize(at, length) || driver_.unmap(at, length) != kSuccess) return false;
  for (Bytes left = length; left > Bytes{};) {
    left -= granularity();
    const auto page = behind_.extract((at + left).value);
    ULLAGE_CHECK(!page.empty(), "pages are taken off addresses that have none");
    unmapped_.push_back(page.mapped());
  }
  return true;
}

bool CardPages::remap(Address at, Bytes length) {
  const std::size_t pages = length.count / granularity().count;
  ULLAGE_CHECK(pages <= unmapped_.size(), "fewer pages are unmapped");
  Bytes done;
  for (; done < length; done += granularity()) {
    if (driver_.map(at + done, unmapped_[unmapped_.size() - 1 - done.count / granularity().count]) != kSuccess) break;
  }
  if (done < length || driver_.allow(at, length) != kSuccess) {
    if (done > Bytes{}) driver_.unmap(at, done);
    return false;
  }
  for (Bytes given; given < length; given += granularity()) {
    behind_.emplace((at + given).value, unmapped_.back());
    unmapped_.pop_back();
  }
  driver_.fresh(at, length);
  return true;
}

void CardPages::drop_unmapped(Bytes length) {
  for (Bytes done; done < length; done += granularity()) {
    driver_.release(unmapped_.back());
    unmapped_.pop_back();
  }
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
