// SPDX-License-Identifier: Apache-2.0
#include "dcgan/run_folder.h"

#include "program/output_files.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace ullage::dcgan {
namespace {

namespace fs = std::filesystem;

// Nine digits, so that equal text means equal 32-bit floats. A run that diverged writes null, because JSON has no NaN.
void append_number(std::string& line, const char* name, double value) {
  char text[64];
  if (std::isfinite(value)) {
    std::snprintf(text, sizeof text, ", \"%s\": %.9g", name, value);
  } else {
    std::snprintf(text, sizeof text, ", \"%s\": null", name);
  }
  line += text;
}

// Returns the lines of steps 1..last. Drops everything after them, including a torn last line.
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
  ULLAGE_TRY(program::make_writable(path_));
  return program::make_writable(checkpoints());
}

Result<LossLog> LossLog::open(const std::string& path, std::uint64_t last_step) {
  std::error_code code;
  if (last_step > 0 && fs::exists(path, code)) {
    ULLAGE_TRY(program::write_whole_file(path, lines_up_to(path, last_step)));
  }
  std::FILE* file = std::fopen(path.c_str(), last_step > 0 ? "ae" : "we");
  if (file == nullptr) return program::cannot_write(path, errno);
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
  if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0)
    return program::cannot_write(path_, errno);
  return success();
}

}  // namespace ullage::dcgan
