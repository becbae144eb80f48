// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/spill_file.h"

#include "ullage/base/sizes.h"
#include "ullage/store/checksum.h"
#include "ullage/store/descriptor.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ullage::store {
namespace {

using Way = UnnamedFile::Way;

constexpr Bytes kCopyChunk = 1_MiB;
// 8 TiB. The usual file systems allow files of at least this length (ext4: 16 TiB, with blocks of 4 KiB).
constexpr Bytes kLongestFile = 8_GiB * 1024;

#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(ULLAGE_CHECKSUMS)
constexpr bool kDebugBuild = true;
#else
constexpr bool kDebugBuild = false;
#endif

char* bytes_at(Address a) { return reinterpret_cast<char*>(a.value); }

// The longest that the file may become. Beyond the process's limit, writing would raise a signal (SIGXFSZ) instead of
// returning an error.
Bytes longest_file(Bytes most) {
  struct rlimit limit = {};
  const Bytes wanted = std::max(kLongestFile, most);
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return round_down(std::min(wanted, Bytes{limit.rlim_cur}), kSmallPage);
}

// A buffer for one chunk, mapped from the system because the heap may be the very thing that is short. It is filled
// through a pipe: if pages are gone, the system call returns an error, whereas a plain copy would raise a signal.
class CopyBuffer final {
 public:
  CopyBuffer() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    out_ = Descriptor(ends[0]), in_ = Descriptor(ends[1]);
    at_ = ::mmap(nullptr, kCopyChunk.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  CopyBuffer(const CopyBuffer&) = delete;
  CopyBuffer& operator=(const CopyBuffer&) = delete;
  ~CopyBuffer() {
    if (!failed()) ::munmap(at_, kCopyChunk.count);
  }
  bool failed() const { return at_ == MAP_FAILED; }
  Address address() const { return {reinterpret_cast<std::uint64_t>(at_)}; }

  // False: pages are gone.
  bool take(Address from, Bytes size) {
    for (Bytes done; done < size;) {
      // Writes as much as the pipe holds. If the kernel finds the pages gone, the call fails. This is a raw system
      // call, because the thread sanitizer would report a race with the thread that took the pages away.
      const ssize_t sent = ::syscall(SYS_write, in_.number(), bytes_at(from + done), (size - done).count);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      for (Bytes end = done + Bytes{static_cast<std::uint64_t>(sent)}; done < end;) {
        const ssize_t got = ::read(out_.number(), bytes_at(address() + done), (end - done).count);
        if (got < 0 && errno == EINTR) continue;
        ULLAGE_CHECK(got > 0, "a pipe gives what was written to it");
        done += Bytes{static_cast<std::uint64_t>(got)};
      }
    }
    return true;
  }

 private:
  Descriptor out_, in_;
  void* at_ = MAP_FAILED;
};

}  // namespace

bool checksums_by_default() { return kDebugBuild; }

// One read or write in progress. It begins under the lock, so that none begins while a fork is prepared.
class SpillFile::Work final {
 public:
  Work(SpillFile& file, Way way, const SpillSlot& slot) : file_(file), way_(way) {
    const std::lock_guard lock(file.mutex_);
    content_ = file.space_.find(slot);
    ULLAGE_CHECK(content_ != nullptr, "the slot is not in use");
    file.under_way_.fetch_add(1);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() {
    const auto passed = std::chrono::steady_clock::now() - begin_;
    (way_ == Way::Write ? file_.write_us_ : file_.read_us_) +=
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(passed).count());
    if (file_.under_way_.fetch_sub(1) == 1) file_.under_way_.notify_all();
  }
  SpillContent& content() { return *content_; }

 private:
  SpillFile& file_;
  Way way_;
  SpillContent* content_ = nullptr;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Result<std::unique_ptr<SpillFile>> SpillFile::open(const SpillPlace& place, const Options& options) {
  ULLAGE_TRY_VALUE(std::unique_ptr<UnnamedFile> file, UnnamedFile::open(place.folder, options.calls));
  return std::make_unique<SpillFile>(place, options, std::move(file));
}

SpillFile::SpillFile(SpillPlace place, const Options& options, std::unique_ptr<UnnamedFile> file)
    : place_(std::move(place)),
      checksums_(options.checksums),
      bridge_(options.bridge),
      file_(std::move(file)),
      space_(place_.most, longest_file(place_.most)) {}

Error SpillFile::limit_reached(Bytes size) const {
  std::string used = to_string(space_.in_use()) + " of " + with_count(space_.most()) + " in use";
  if (space_.held() > Bytes{}) used += " and " + to_string(space_.held()) + " held for forked children";
  return file_->error(Error::Kind::BadArgument, "no room for " + with_count(size) + " more in the spill file, " + used +
                                                    "; raise its bound with --spill DIR:SIZE");
}

Result<SpillSlot> SpillFile::take(Bytes size) {
  ULLAGE_CHECK(size > Bytes{} && size.count % kSmallPage.count == 0, "a slot is whole pages");
  if (is_child_) return no_spilling_here();
  {
    const std::lock_guard lock(mutex_);
    space_.release(children_.look());
    if (const std::optional<SpillSlot> slot = space_.reuse(size)) return *slot;
  }
  return grow(size);
}

Result<SpillSlot> SpillFile::grow(Bytes size) {
  const std::lock_guard growing(growing_);
  Bytes excess;
  {
    const std::lock_guard lock(mutex_);
    if (const std::optional<SpillSlot> slot = space_.reuse(size)) return *slot;  // freed meanwhile
    if (!space_.fits(size)) return limit_reached(size);
    excess = space_.excess(size);
  }
  ULLAGE_TRY(empty_gaps(excess));
  std::optional<SpillSlot> slot;
  {
    const std::lock_guard lock(mutex_);
    if (space_.excess(size) > Bytes{}) return limit_reached(size);  // others took the gaps meanwhile
    slot = space_.grow(size);
  }
  if (!slot) {
    return file_->error(Error::Kind::System, "no room for " + with_count(size) +
                                                 " in one piece within the limit on the length of files; raise "
                                                 "'ulimit -f'");
  }
  if (Status found = find_blocks(*slot); !found) {
    const std::lock_guard lock(mutex_);
    space_.undo(*slot);
    return found.error();
  }
  return *slot;
}

// Asks the disk for the slot's blocks now, so that a full disk is noticed before anything relies on the slot. Writing
// inside the file is also faster than writing past its end. If the disk is full, gives it the blocks of gaps and tries
// again.
Status SpillFile::find_blocks(const SpillSlot& slot) {
  int error = file_->promise_blocks(slot.offset, slot.size);
  if (UnnamedFile::is_full(error) && empty_gaps(slot.size).ok()) error = file_->promise_blocks(slot.offset, slot.size);
  if (error == 0) return success();
  return file_->refusal(Way::Write, slot.size, error);
}

// Gives the blocks of `size` bytes of gaps back to the disk. Gaps keep their blocks until the bound or a full disk
// requires this.
Status SpillFile::empty_gaps(Bytes size) {
  std::vector<AddressRange> ranges;
  {
    const std::lock_guard lock(mutex_);
    ranges = space_.take_from_gaps(size);
  }
  int error = 0;
  for (const AddressRange& range : ranges) {
    const int refused = file_->give_back_blocks(range.begin.value, range.size);
    const std::lock_guard lock(mutex_);
    refused == 0 ? space_.emptied(range) : space_.kept(range);
    error = std::max(error, refused);
  }
  if (error == 0) return success();
  return file_->error(Error::Kind::System,
                      std::string("the spill file is in pieces that cannot be joined, because its file system cannot "
                                  "take blocks back (") +
                          std::strerror(error) + "); raise its bound with --spill DIR:SIZE");
}

Status SpillFile::write_copied(SpillContent& content, Address from, CopyGate* gate) {
  CopyBuffer buffer;
  const SpillSlot& slot = content.slot;
  if (buffer.failed()) return file_->refusal(Way::Write, slot.size, errno);
  Checksum sum;
  for (Bytes done; done < slot.size; done += kCopyChunk) {
    const Bytes chunk = std::min(slot.size - done, kCopyChunk);
    if (bridge_ != nullptr) {
      ULLAGE_TRY(bridge_->copy_out(from + done, bytes_at(buffer.address()), chunk, gate));
    } else if (!buffer.take(from + done, chunk)) {
      return file_->error(Error::Kind::NotFound, "the pages to write were taken away meanwhile");
    }
    if (checksums_) sum.add(bytes_at(buffer.address()), chunk.count);
    ULLAGE_TRY(file_->transfer(Way::Write, slot.offset + done.count, buffer.address(), chunk));
  }
  content.checksum = sum.value();
  content.checked = checksums_;
  return success();
}

Status SpillFile::write(const SpillSlot& slot, Address from, Sharing sharing, CopyGate* gate) {
  if (is_child_) return no_spilling_here();
  Work work(*this, Way::Write, slot);
  work.content().whole = false;
  work.content().checked = false;
  const bool by_copy = checksums_ || bridge_ != nullptr || sharing == Sharing::WithAFork;
  Status done =
      by_copy ? write_copied(work.content(), from, gate) : file_->transfer(Way::Write, slot.offset, from, slot.size);
  if (!done) return done;
  work.content().whole = true;
  written_ += slot.size.count;
  return done;
}

Status SpillFile::read_copied(const SpillContent& content, Address into) {
  CopyBuffer buffer;
  const SpillSlot& slot = content.slot;
  if (buffer.failed()) return file_->refusal(Way::Read, slot.size, errno);
  Checksum sum;
  for (Bytes done; done < slot.size; done += kCopyChunk) {
    const Bytes chunk = std::min(slot.size - done, kCopyChunk);
    ULLAGE_TRY(file_->transfer(Way::Read, slot.offset + done.count, buffer.address(), chunk));
    if (content.checked) sum.add(bytes_at(buffer.address()), chunk.count);
    ULLAGE_TRY(bridge_->copy_in(bytes_at(buffer.address()), into + done, chunk));
  }
  if (content.checked && sum.value() != content.checksum) return other_bytes(slot);
  return success();
}

Error SpillFile::other_bytes(const SpillSlot& slot) const {
  return file_->error(Error::Kind::BadFile, "the spill file returned other bytes than were written to it (" +
                                                to_string(slot.size) + " at offset " + std::to_string(slot.offset) +
                                                "); the disk is at fault, or another program wrote to the file");
}

Status SpillFile::read(const SpillSlot& slot, Address into) {
  Work work(*this, Way::Read, slot);
  if (!work.content().whole)
    return file_->error(Error::Kind::BadFile, "the spill file holds no whole copy of these bytes");
  Status done =
      bridge_ != nullptr ? read_copied(work.content(), into) : file_->transfer(Way::Read, slot.offset, into, slot.size);
  if (!done) return done;
  if (bridge_ == nullptr && work.content().checked) {
    Checksum sum;
    sum.add(bytes_at(into), slot.size.count);
    if (sum.value() != work.content().checksum) return other_bytes(slot);
  }
  read_ += slot.size.count;
  return done;
}

void SpillFile::give(const SpillSlot& slot) {
  const std::lock_guard lock(mutex_);
  space_.give(slot, children_.look());  // a forked child watches no forks, so it holds nothing for them
}

void SpillFile::before_fork() {
  mutex_.lock();
  while (const std::uint32_t busy = under_way_.load()) under_way_.wait(busy);
  if (!is_child_ && space_.in_use() > Bytes{}) children_.before_fork(space_.fork_time());
}

void SpillFile::after_fork_in_parent() {
  children_.after_fork_in_parent();
  mutex_.unlock();
}

void SpillFile::after_fork_in_child() {
  children_.after_fork_in_child();
  is_child_ = true;
  mutex_.unlock();
}

SpillCounts SpillFile::counts() const {
  const std::lock_guard lock(mutex_);
  return {.in_use = space_.in_use(),
          .in_use_peak = space_.in_use_peak(),
          .written = Bytes{written_},
          .read = Bytes{read_},
          .file_bytes = space_.footprint(),
          .held_for_children = space_.held(),
          .write_us = write_us_,
          .read_us = read_us_};
}

}  // namespace ullage::store
