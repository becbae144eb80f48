// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/os_file_pages.h"

#include "ullage/store/page_map.h"
#include "ullage/store/process_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>

namespace ullage::store {
namespace {

// Sets the access past the preload, which stands before mprotect() and would take this for the program's call.
bool set_access(Address at, Bytes size, int access) {
  return ::syscall(SYS_mprotect, at.value, size.count, access) == 0;
}

void* first_page(Address a) { return reinterpret_cast<void*>(a.value); }

using Entries = std::array<PageMap::Entry, PageMap::kMost>;

// Calls f(address, entries) for the pages of a range of whole pages, up to PageMap::kMost at a time. False: the kernel
// did not tell about all of them.
template <class F>
bool each_entries(const PageMap& map, Address at, Bytes size, const F& f) {
  Entries entries;
  for (Bytes done{}; done < size;) {
    const std::uint64_t pages = std::min<std::uint64_t>(entries.size(), (size - done).count / kSmallPage.count);
    const std::span<PageMap::Entry> some(entries.data(), pages);
    if (!map.read(at + done, some)) return false;
    f(at + done, some);
    done += kSmallPage * pages;
  }
  return true;
}

// Nothing: the kernel does not tell.
std::optional<FilePages::Count> count_in(const PageMap& map, Address at, Bytes size) {
  FilePages::Count sum;
  const auto add = [&sum](Address, std::span<const PageMap::Entry> entries) {
    for (const PageMap::Entry entry : entries) {
      if (entry.is_there()) sum.there += kSmallPage;
      if (entry.is_of_file()) sum.of_file += kSmallPage;
    }
  };
  if (!each_entries(map, at, size, add)) return std::nullopt;
  return sum;
}

// Lets go of each run of pages that were not written. Pages that are not in memory may lie in a run: they cost nothing.
// False: some pages may have stayed.
bool let_go_unwritten(const PageMap& map, Address at, Bytes size) {
  bool all = true;
  all &= each_entries(map, at, size, [&all](Address from, std::span<const PageMap::Entry> entries) {
    for (std::size_t i = 0; i < entries.size();) {
      std::size_t end = i;
      while (end < entries.size() && !entries[end].is_written()) ++end;
      const Bytes row = kSmallPage * (end - i);
      if (end > i) all &= ::madvise(first_page(from + kSmallPage * i), row.count, MADV_DONTNEED) == 0;
      i = end + 1;
    }
  });
  return all;
}

}  // namespace

template <class F>
void OsFilePages::each_part(AddressRange range, const F& f) const {
  const Address begin{round_down(Bytes{range.begin.value}, kSmallPage).count};
  const Address end{round_up(Bytes{range.end().value}, kSmallPage).count};
  auto it = mappings_.upper_bound(begin);
  if (it != mappings_.begin()) --it;
  for (; it != mappings_.end() && it->first < end; ++it) {
    const Address from = std::max(begin, it->first), to = std::min(end, it->first + it->second.size);
    if (from < to) f(from, to - from, it->second.writable);
  }
}

void OsFilePages::mapped_at(Address at, Bytes size, bool writable) {
  const std::lock_guard hold(lock_);
  remove(at, round_up(size, kSmallPage));
  mappings_[at] = {round_up(size, kSmallPage), writable};
  mapped_ += round_up(size, kSmallPage).count;
}

bool OsFilePages::unmapped_at(Address at, Bytes size) {
  if (mapped() == Bytes{}) return false;
  const std::lock_guard hold(lock_);
  const std::uint64_t before = mapped_.load();
  remove(at, round_up(size, kSmallPage));
  return mapped_.load() < before;
}

// Cuts [at, at + size) out of the mappings.
void OsFilePages::remove(Address at, Bytes size) {
  const Address end = at + size;
  auto it = mappings_.upper_bound(at);
  if (it != mappings_.begin()) --it;
  while (it != mappings_.end() && it->first < end) {
    const auto [begin, mapping] = *it;
    const Address mapping_end = begin + mapping.size;
    if (mapping_end <= at) {
      ++it;
      continue;
    }
    mapped_ -= mapping.size.count;
    it = mappings_.erase(it);
    if (begin < at) {
      mappings_[begin] = {at - begin, mapping.writable};
      mapped_ += (at - begin).count;
    }
    if (end < mapping_end) {
      mappings_[end] = {mapping_end - end, mapping.writable};
      mapped_ += (mapping_end - end).count;
    }
  }
}

bool OsFilePages::holds(Address at) const {
  if (mapped() == Bytes{}) return false;
  const std::lock_guard hold(lock_);
  const auto after = mappings_.upper_bound(at);
  if (after == mappings_.begin()) return false;
  const auto& [begin, mapping] = *std::prev(after);
  return at < begin + mapping.size;
}

Bytes OsFilePages::all_there() const { return resident_pages_of(::getpid()).files; }

std::vector<AddressRange> OsFilePages::mappings() const {
  const std::lock_guard hold(lock_);
  std::vector<AddressRange> all;
  for (const auto& [begin, mapping] : mappings_) all.push_back({begin, mapping.size});
  return all;
}

// The map of pages is opened each time, because a forked child must see its own.
FilePages::Count OsFilePages::count(AddressRange range) const {
  const std::lock_guard hold(lock_);
  const PageMap map;
  Count sum;
  each_part(range, [&](Address at, Bytes size, bool) {
    const Count part = count_in(map, at, size).value_or(Count{});
    sum.there += part.there;
    sum.of_file += part.of_file;
  });
  return sum;
}

// A write to a page between the look at it and its going would be lost. So what was mapped as writable is read-only
// meanwhile. (What the program gives another access by mprotect() is no longer taken for a file.)
Bytes OsFilePages::let_go(AddressRange range) {
  const std::lock_guard hold(lock_);
  const PageMap map;
  Bytes left;
  bool any = false;
  each_part(range, [&](Address at, Bytes size, bool writable) {
    any = true;
    const bool still = !writable || set_access(at, size, PROT_READ);
    const bool all = still && let_go_unwritten(map, at, size);
    if (writable) set_access(at, size, PROT_READ | PROT_WRITE);
    if (all) return;
    const std::optional<Count> now = count_in(map, at, size);
    left += now ? now->of_file : size;
  });
  return any ? left : range.size;
}

}  // namespace ullage::store
