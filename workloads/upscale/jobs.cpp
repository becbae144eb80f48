// SPDX-License-Identifier: Apache-2.0
#include "upscale/jobs.h"

#include "image/decode.h"
#include "image/picture_list.h"
#include "program/output_files.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace ullage::upscale {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLongestSide = (std::uint64_t{1} << 31) - 1;  // of a PNG

// Keeps of a picture only what is in PictureFacts.
class Look final : public image::RowSink {
 public:
  void kind(image::PictureKind kind) override { facts.kind = kind; }
  void start(image::PictureSize size) override { facts.size = size; }
  void row(std::span<const std::uint8_t> rgba) override {
    if (!facts.kind.alpha || !facts.opaque) return;
    for (std::size_t i = 3; i < rgba.size(); i += 4) facts.opaque &= rgba[i] == 255;
  }

  PictureFacts facts;
};

Error refused(const std::string& what, const std::string& where) { return {Error::Kind::BadArgument, what, where}; }

Status may_be_written(const Job& job, bool force) {
  std::error_code code;
  const fs::file_status status = fs::status(job.out, code);
  if (fs::is_directory(status)) return refused("is a folder; name a file with --out", job.out);
  if (!fs::exists(status)) return success();
  if (fs::equivalent(job.out, job.picture, code)) {
    return refused("is the picture itself; choose another --out", job.out);
  }
  if (!force) return refused("is there already; --force replaces it, another --out keeps it", job.out);
  return success();
}

}  // namespace

Result<PictureFacts> look_at(const std::string& path, const image::ChargeMemory& charge) {
  Look look;
  ULLAGE_TRY(image::decode(path, look, charge, image::Pixels::Rgba));
  return look.facts;
}

Result<std::vector<Job>> list_jobs(const Options& options, std::int64_t scale, const image::ChargeMemory& charge) {
  ULLAGE_TRY_VALUE(const auto pictures, image::list_pictures(options.input));
  const bool folder = fs::is_directory(options.input) || fs::is_directory(options.out);
  std::vector<Job> jobs;
  std::map<std::string, std::string> picture_of;  // keyed by the result
  for (const std::string& picture : pictures) {
    const std::string out = folder ? (fs::path(options.out) / fs::path(picture).stem()).string() + ".png" : options.out;
    const auto [other, is_new] = picture_of.emplace(out, picture);
    if (!is_new) return refused("this picture and " + other->second + " would both be written as " + out, picture);
    Job job{picture, out, {}};
    ULLAGE_TRY(may_be_written(job, options.force));
    ULLAGE_TRY_VALUE(job.facts, look_at(picture, charge));
    const std::uint64_t longest = std::max(job.facts.size.width, job.facts.size.height);
    if (longest * static_cast<std::uint64_t>(scale) > kLongestSide) {
      return refused("its longer side would be " + std::to_string(longest * static_cast<std::uint64_t>(scale)) +
                         " pixels; " + std::to_string(kLongestSide) + " are the most of a PNG",
                     picture);
    }
    jobs.push_back(std::move(job));
  }
  ULLAGE_TRY(program::make_writable(folder ? options.out : (fs::path(options.out).parent_path() / ".").string()));
  return jobs;
}

}  // namespace ullage::upscale
