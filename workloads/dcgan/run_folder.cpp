// SPDX-License-Identifier: Apache-2.0
#include "dcgan/run_folder.h"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ullage::dcgan {
namespace {

namespace fs = std::filesystem;

Error cannot_write(const std::string& path, int error) {
  return {Error::Kind::System, std::string("cannot write: ") + std::strerror(error), path};
}

// A folder that is there and takes files.
Status make_writable(const std::string& folder) {
  const auto failed = [&](const std::string& why) {
    return Error{Error::Kind::BadArgument, "cannot write there: " + why + "; choose another --out", folder};
  };
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return failed(code.message());
  const std::string probe = folder + "/.ullage-" + std::to_string(::getpid());
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return failed(std::strerror(errno));
  ::close(fd);
  ::unlink(probe.c_str());
  return success();
}

// Digits enough that equal lines mean equal numbers of 32 bits. JSON has no NaN: a run that diverged says null.
void append_number(std::string& line, const char* name, double value) {
  char text[64];
  if (std::isfinite(value)) {
    std::snprintf(text, sizeof text, ", \"%s\": %.9g", name, value);
  } else {
    std::snprintf(text, sizeof text, ", \"%s\": null", name);
  }
  line += text;
}

// The lines of steps 1..last; whatever follows them, a torn last line too, is left out.
std::string lines_up_to(const std::string& path, std::uint64_t last) {
  std::string kept;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_unsigned()) break;
    if (json["step"].get<std::uint64_t>() > last) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

std::string step_name(std::uint64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

std::string RunFolder::sample(std::uint64_t step) const { return path_ + "/samples-" + step_name(step) + ".png"; }

Status RunFolder::prepare(bool resume) const {
  std::error_code code;
  for (const std::string& file : {losses(), run_json()}) {
    if (!resume && fs::exists(file, code)) {
      return Error{Error::Kind::BadArgument, "holds a run already; add --resume or choose another --out", path_};
    }
  }
  const bool has_checkpoint = fs::is_directory(checkpoints(), code) && !fs::is_empty(checkpoints(), code) && !code;
  if (!resume && has_checkpoint) {
    return Error{Error::Kind::BadArgument, "holds a checkpoint already; add --resume or choose another --out", path_};
  }
  if (resume && !has_checkpoint) {
    return Error{Error::Kind::NotFound, "no checkpoint to resume from; start without --resume in an empty folder",
                 checkpoints()};
  }
  if (Status status = make_writable(path_); !status) return status;
  return make_writable(checkpoints());
}

Status write_whole_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return cannot_write(fresh, errno);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  const bool written = done == text.size() && ::fsync(fd) == 0;
  const int write_error = errno;
  ::close(fd);
  if (written && ::rename(fresh.c_str(), path.c_str()) == 0) return success();
  const int error = written ? errno : write_error;
  ::unlink(fresh.c_str());
  return cannot_write(path, error);
}

Result<LossLog> LossLog::open(const std::string& path, std::uint64_t last_step) {
  std::error_code code;
  if (last_step > 0 && fs::exists(path, code)) {
    if (Status status = write_whole_file(path, lines_up_to(path, last_step)); !status) return status.error();
  }
  std::FILE* file = std::fopen(path.c_str(), last_step > 0 ? "ae" : "we");
  if (file == nullptr) return cannot_write(path, errno);
  return LossLog(path, file);
}

Status LossLog::append(std::uint64_t step, const Losses& losses) {
  std::string line = "{\"step\": " + std::to_string(step);
  append_number(line, "loss_d", losses.loss_d);
  append_number(line, "loss_g", losses.loss_g);
  append_number(line, "d_x", losses.d_x);
  append_number(line, "d_g_z1", losses.d_g_z1);
  append_number(line, "d_g_z2", losses.d_g_z2);
  line += "}\n";
  if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0) return cannot_write(path_, errno);
  return success();
}

}  // namespace ullage::dcgan
