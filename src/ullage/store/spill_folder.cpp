// SPDX-License-Identifier: Apache-2.0
#include "ullage/store/spill_folder.h"

#include "ullage/base/sizes.h"
#include "ullage/store/pages.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

namespace ullage::store {
namespace {

constexpr Bytes kLeastReserve = 64_MiB;
constexpr std::uint64_t kReserveShare = 20;  // a twentieth of what is free stays free

struct Spec {
  std::string folder;
  std::optional<Bytes> size;
};

Spec parse_spec(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    if (const Result<Bytes> size = parse_bytes(text.substr(colon + 1)); size.ok())
      return {std::string(text.substr(0, colon)), size.value()};
  }
  return {std::string(text), std::nullopt};
}

Error refused(Error::Kind kind, const std::string& message, const std::string& folder) {
  return {kind, message, folder};
}

std::string words(int error) { return std::strerror(error); }

// If "DIR:SOMETHING" does not exist but DIR does, SOMETHING is most likely a mistyped size.
std::string size_hint(const std::string& folder) {
  const std::size_t colon = folder.rfind(':');
  struct stat info = {};
  if (colon == std::string::npos || ::stat(folder.substr(0, colon).c_str(), &info) != 0) return "";
  return "; if '" + folder.substr(colon + 1) + "' is meant as a size, write it like 20GiB";
}

Status check_folder(const std::string& folder) {
  struct stat info = {};
  if (::stat(folder.c_str(), &info) != 0) {
    const int error = errno;
    if (error != ENOENT) return refused(Error::Kind::System, "cannot look at the folder: " + words(error), folder);
    return refused(Error::Kind::NotFound, "no such folder to spill to; make it or name another" + size_hint(folder),
                   folder);
  }
  if (!S_ISDIR(info.st_mode)) return refused(Error::Kind::System, "is not a folder; name one to spill to", folder);
  struct statfs system = {};
  if (::statfs(folder.c_str(), &system) != 0)
    return refused(Error::Kind::System, "cannot look at its file system: " + words(errno), folder);
  const auto type = static_cast<std::uint32_t>(system.f_type);
  if (type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC)
    return refused(Error::Kind::BadArgument,
                   "is memory: spilling there would free nothing; name a folder on a disk with --spill DIR", folder);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return refused(Error::Kind::System, "no file can be made there (" + words(errno) + "); name another folder",
                   folder);
  return success();
}

Result<Bytes> free_bytes(const std::string& folder) {
  struct statvfs room = {};
  if (::statvfs(folder.c_str(), &room) != 0)
    return refused(Error::Kind::System, "cannot see how much is free: " + words(errno), folder);
  return Bytes{room.f_bavail} * room.f_frsize;
}

Bytes file_size_limit() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return Bytes{UINT64_MAX};
  return Bytes{limit.rlim_cur};
}

Result<Bytes> bound(const std::string& folder, std::optional<Bytes> stated) {
  ULLAGE_TRY_VALUE(const Bytes free, free_bytes(folder));
  const Bytes limit = file_size_limit();
  if (!stated) {
    const Bytes most = saturating_sub(free, std::max(free / kReserveShare, kLeastReserve));
    if (most < kSmallPage)
      return refused(Error::Kind::System,
                     "has " + to_string(free) + " free, of which " + to_string(kLeastReserve) +
                         " are left to others; free some or name another folder",
                     folder);
    return round_down(std::min(most, limit), kSmallPage);
  }
  if (*stated < kSmallPage)
    return refused(Error::Kind::BadArgument,
                   to_string(*stated) + " is too little room to spill to; state more, as in DIR:20GiB", folder);
  if (*stated > free)
    return refused(Error::Kind::BadArgument,
                   "has " + with_count(free) + " free, less than the " + with_count(*stated) +
                       " stated; state less or name another folder",
                   folder);
  if (*stated > limit)
    return refused(Error::Kind::BadArgument,
                   "files there may have at most " + with_count(limit) + ", less than the " + with_count(*stated) +
                       " stated; raise 'ulimit -f' or state less",
                   folder);
  return round_down(*stated, kSmallPage);
}

Result<SpillPlace> look_at(const Spec& spec) {
  if (spec.folder.empty())
    return refused(Error::Kind::BadArgument, "no folder is named; write DIR or DIR:SIZE", "--spill");
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(spec.folder, failed);
  const std::string folder = failed ? spec.folder : absolute.string();
  ULLAGE_TRY(check_folder(folder));
  ULLAGE_TRY_VALUE(const Bytes most, bound(folder, spec.size));
  return SpillPlace{folder, most};
}

}  // namespace

Result<SpillPlace> find_spill_place(std::string_view spec) { return look_at(parse_spec(spec)); }

Result<SpillPlace> first_spill_place(const std::vector<std::string>& folders) {
  std::string reasons;
  for (const std::string& folder : folders) {
    Result<SpillPlace> place = look_at({folder, std::nullopt});
    if (place) return place;
    reasons += (reasons.empty() ? "" : "; ") + place.error().text();
  }
  return Error{Error::Kind::System, "no folder to spill to: " + reasons + "; name one on a disk with --spill DIR", ""};
}

Result<SpillPlace> default_spill_place() {
  std::vector<std::string> folders;
  if (const char* temporary = std::getenv("TMPDIR"); temporary != nullptr && *temporary != '\0')
    folders.emplace_back(temporary);
  folders.insert(folders.end(), {"/tmp", "/var/tmp", "."});
  return first_spill_place(folders);
}

}  // namespace ullage::store
