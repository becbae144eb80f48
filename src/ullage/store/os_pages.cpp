// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/os_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace ullage::store {
namespace {

// Constants from the kernel's uapi headers, which Debian 12's C library headers may lack.
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14
constexpr int kDontUnmap = 4;       // MREMAP_DONTUNMAP, Linux 5.7

constexpr int kReserveFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer(Address a) { return reinterpret_cast<void*>(a.value); }

// Puts a fresh mapping without access in place of whatever is there. That frees the pages. With strict overcommit it
// also gives back their commit charge. Neighbouring empty mappings are alike, so the kernel merges them into one.
bool make_empty(Address at, Bytes length) {
  return mmap(pointer(at), length.count, PROT_NONE, kReserveFlags | MAP_FIXED, -1, 0) != MAP_FAILED;
}

bool touch_every_page(Address at, Bytes length) {
  auto* bytes = static_cast<volatile char*>(pointer(at));
  for (std::uint64_t i = 0; i < length.count; i += kSmallPage.count) bytes[i] = 0;
  return true;
}

// Makes pages resident now instead of at the first touch. So the pool's count of its bytes is the operating system's
// count too, and what the process holds outside the pool is an exact difference.
bool populate(Address at, Bytes length) {
  while (madvise(pointer(at), length.count, kPopulateWrite) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) return touch_every_page(at, length);  // a kernel before 5.14
    return false;
  }
  return true;
}

}  // namespace

OsPages::~OsPages() {
  if (reserved_.size > Bytes{}) munmap(pointer(reserved_.begin), reserved_.size.count);
}

Result<AddressRange> OsPages::reserve(Bytes wanted) {
  ULLAGE_CHECK(reserved_.size == Bytes{}, "reserve is called once");
  for (Bytes size = round_up(wanted, kHugePage); size >= 1_GiB; size = round_down(size / 2, kHugePage)) {
    // Reserves one huge page more, so that the range can start at a multiple of a huge page.
    void* at = mmap(nullptr, (size + kHugePage).count, PROT_NONE, kReserveFlags, -1, 0);
    if (at == MAP_FAILED) continue;
    const Address got{reinterpret_cast<std::uint64_t>(at)};
    const Address begin{round_up(Bytes{got.value}, kHugePage).count};
    if (begin > got) munmap(at, (begin - got).count);
    munmap(pointer(begin + size), (kHugePage - (begin - got)).count);
    reserved_ = {begin, size};
    return reserved_;
  }
  return Error{Error::Kind::System,
               std::string("cannot reserve even 1 GiB of address space (") + std::strerror(errno) +
                   "); raise 'ulimit -v' or allow overcommit",
               "pool"};
}

bool OsPages::fill(Address at, Bytes length, PageKind kind) {
  if (mprotect(pointer(at), length.count, PROT_READ | PROT_WRITE) != 0) return false;
  // If a kernel has huge pages always on, it may back a range of small pages by a huge page. That would make addresses
  // beside the range resident too. NOHUGEPAGE forbids that.
  madvise(pointer(at), length.count, kind == PageKind::Huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (populate(at, length)) return true;
  drop(at, length);
  return false;
}

bool OsPages::move(Address from, Address to, Bytes length) {
  // DONTUNMAP keeps the source mapped. Without it the source would be a hole in the reservation, where an mmap of
  // another thread could land.
  void* moved =
      mremap(pointer(from), length.count, length.count, MREMAP_MAYMOVE | MREMAP_FIXED | kDontUnmap, pointer(to));
  if (moved == MAP_FAILED) {
    make_empty(to, length);  // the kernel may already have unmapped the target
    return false;
  }
  if (!make_empty(from, length)) mprotect(pointer(from), length.count, PROT_NONE);
  return true;
}

void OsPages::drop(Address at, Bytes length) {
  if (make_empty(at, length)) return;
  // It failed because the process has too many mappings to split one more (vm.max_map_count). So frees the pages within
  // the mapping that is there.
  madvise(pointer(at), length.count, MADV_DONTNEED);
  mprotect(pointer(at), length.count, PROT_NONE);
}

bool OsPages::protect(Address at, Bytes length, Access access) {
  const int bits = access == Access::None ? PROT_NONE : access == Access::Read ? PROT_READ : PROT_READ | PROT_WRITE;
  return mprotect(pointer(at), length.count, bits) == 0;
}

}  // namespace ullage::store
