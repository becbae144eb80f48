// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/unnamed_file.h"

#include "ullage/base/sizes.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ullage::store {
namespace {

// A transfer of this size lets the disk reach its full rate, and a signal need not wait long for the end of the
// call.
constexpr std::uint64_t kChunk = (16_MiB).count;

int open_nameless(const char* folder) { return ::open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600); }

// Serves file systems without unnamed files. The name is removed before the first byte is written.
int open_and_unlink(const std::string& folder) {
  std::string path = folder + "/ullage-spill-XXXXXX";
  const int fd = ::mkostemp(path.data(), O_CLOEXEC);
  if (fd >= 0) ::unlink(path.c_str());
  return fd;
}

std::string free_in(const std::string& folder) {
  struct statvfs room = {};
  if (::statvfs(folder.c_str(), &room) != 0) return "how much is free there is not known";
  return with_count(Bytes{room.f_bavail} * room.f_frsize) + " free there";
}

}  // namespace

SpillCalls SpillCalls::system() { return {&open_nameless, &::fallocate, &::pwrite, &::pread}; }

Result<std::unique_ptr<UnnamedFile>> UnnamedFile::open(const std::string& folder, const SpillCalls& calls) {
  int fd = calls.open_unnamed(folder.c_str());
  if (fd < 0) fd = open_and_unlink(folder);
  if (fd < 0) {
    return Error{
        Error::Kind::System,
        std::string("cannot make the spill file: ") + std::strerror(errno) + "; name another folder with --spill DIR",
        folder};
  }
  return std::make_unique<UnnamedFile>(folder, calls, Descriptor(fd));
}

UnnamedFile::UnnamedFile(std::string folder, const SpillCalls& calls, Descriptor file)
    : folder_(std::move(folder)), calls_(calls), file_(std::move(file)) {
  // Sets O_DIRECT after opening. If a file system refuses the flag, opening a file that has a name with it could create
  // the file and then fail. That would leave the file behind.
  const int flags = ::fcntl(file_.number(), F_GETFL);
  direct_ = flags >= 0 && ::fcntl(file_.number(), F_SETFL, flags | O_DIRECT) == 0;
}

// Clears O_DIRECT, because some file systems accept the flag and refuse the first transfer. False: it cannot be
// cleared.
bool UnnamedFile::leave_direct() {
  const int flags = ::fcntl(file_.number(), F_GETFL);
  if (flags < 0 || ::fcntl(file_.number(), F_SETFL, flags & ~O_DIRECT) != 0) return false;
  direct_ = false;  // after the flag: a thread that sees false must find the flag cleared
  return true;
}

int UnnamedFile::promise_blocks(std::uint64_t offset, Bytes size) {
  int error = 0;
  do {
    error =
        calls_.allocate(descriptor(), 0, static_cast<off_t>(offset), static_cast<off_t>(size.count)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == EOPNOTSUPP || error == ENOSYS) return 0;
  if (error != 0) give_back_blocks(offset, size);  // what it got before it failed
  return error;
}

int UnnamedFile::give_back_blocks(std::uint64_t offset, Bytes size) {
  const int done = calls_.allocate(descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                                   static_cast<off_t>(size.count));
  return done == 0 ? 0 : errno;
}

bool UnnamedFile::is_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

Error UnnamedFile::refusal(Way way, Bytes size, int error) const {
  const bool writes = way == Way::Write;
  std::string message = std::string(writes ? "cannot write " : "cannot read ") + to_string(size) +
                        (writes ? " to" : " from") + " the spill file: " + std::strerror(error);
  if (is_full(error)) message += ", " + free_in(folder_) + "; free some or name another folder with --spill DIR";
  return {Error::Kind::System, message, folder_};
}

Status UnnamedFile::transfer(Way way, std::uint64_t offset, Address memory, Bytes size) {
  if (!file_.is_ours()) return error(Error::Kind::System, "the program closed the spill file's descriptor");
  char* const bytes = reinterpret_cast<char*>(memory.value);
  for (std::uint64_t done = 0; done < size.count;) {
    const bool direct = direct_;
    const std::uint64_t chunk = std::min(size.count - done, kChunk);
    const auto at = static_cast<off_t>(offset + done);
    const ssize_t moved = way == Way::Write ? calls_.write(descriptor(), bytes + done, chunk, at)
                                            : calls_.read(descriptor(), bytes + done, chunk, at);
    const int reason = errno;
    if (moved < 0 && reason == EINTR) continue;
    if (moved < 0 && reason == EINVAL && direct && leave_direct()) continue;
    if (moved < 0 && reason == EFAULT && way == Way::Write)
      return error(Error::Kind::NotFound, "the pages to write were taken away meanwhile");
    if (moved < 0) return refusal(way, size, reason);
    if (moved == 0 && way == Way::Write) return refusal(way, size, ENOSPC);
    if (moved == 0) {
      return error(Error::Kind::BadFile, "the spill file was cut short: " + std::to_string(done) + " of " +
                                             std::to_string(size.count) + " bytes at offset " + std::to_string(offset) +
                                             " are there");
    }
    // No direct transfer can begin inside a page. So only whole pages count as moved, and a page that was moved in part
    // is moved again. If not even one whole page was moved, the rest goes through the page cache.
    const std::uint64_t whole = round_down(Bytes{static_cast<std::uint64_t>(moved)}, kSmallPage).count;
    if (direct && whole == 0 && !leave_direct()) return refusal(way, size, EIO);
    done += direct ? whole : static_cast<std::uint64_t>(moved);
  }
  return success();
}

}  // namespace ullage::store
