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

// Removes the file when it goes out of scope, also by an exception of a writer.
struct Temporary {
  explicit Temporary(const std::string& path) : name(name_before(path)) {}
  ~Temporary() { ::unlink(name.c_str()); }  // does nothing after a rename
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string name;
};

}  // namespace

std::string name_before(const std::string& path) { return path + ".new-" + std::to_string(::getpid()); }

Status replace_file(const std::string& path, const std::function<Status(std::ostream&)>& writer) {
  const Temporary fresh(path);
  std::ofstream out(fresh.name, std::ios::binary | std::ios::trunc);
  if (!out) return cannot_write(path, errno);
  const Status written = writer(out);
  out.close();
  if (written && out && std::rename(fresh.name.c_str(), path.c_str()) == 0) return success();
  return written ? cannot_write(path, errno) : written;
}

}  // namespace ullage
