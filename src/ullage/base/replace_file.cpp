// SPDX-License-Identifier: Apache-2.0
#include "ullage/base/replace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace ullage {
namespace {

Error cannot_write(const std::string& path, int reason) {
  return {Error::Kind::System, std::string("cannot be written: ") + std::strerror(reason), path};
}

}  // namespace

std::string name_before(const std::string& path) { return path + ".new-" + std::to_string(::getpid()); }

Status replace_file(const std::string& path, const std::function<Status(std::ostream&)>& writer) {
  const std::string fresh = name_before(path);
  std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
  if (!out) return cannot_write(path, errno);
  const Status written = writer(out);
  out.close();
  if (written && out && std::rename(fresh.c_str(), path.c_str()) == 0) return success();
  const int reason = errno;
  ::unlink(fresh.c_str());
  return written ? cannot_write(path, reason) : written;
}

}  // namespace ullage
