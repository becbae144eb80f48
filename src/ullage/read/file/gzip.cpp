// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <new>
#include <optional>

namespace ullage::read {
namespace {

constexpr std::byte kMagic0{0x1f};
constexpr std::byte kMagic1{0x8b};
constexpr std::size_t kFirstRoom = std::size_t{1} << 16;
// Most bytes in or out of one call of zlib: it counts in 32 bits, and the limits are checked after each call.
constexpr std::size_t kMostFed = std::size_t{1} << 20;

class Gunzip final {
 public:
  Gunzip(std::span<const std::byte> content, const std::string& name, const GzipLimits& limits)
      : content_(content), name_(name), limits_(limits) {
    constexpr int kGzipHeaderOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipHeaderOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Result<std::string> run() {
    while (used_ < content_.size()) {
      ULLAGE_TRY(unfold_member());
      const auto rest = content_.subspan(used_);
      if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) break;
      if (!is_gzip(rest)) return bad("gzip data is followed by other bytes");
      inflateReset(&stream_);
    }
    out_.resize(written_);
    return std::move(out_);
  }

 private:
  Status unfold_member() {
    while (true) {
      const std::size_t fed = std::min(kMostFed, content_.size() - used_);
      make_room();
      const std::size_t room = std::min(out_.size() - written_, kMostFed);
      // The cast is safe: zlib does not write to its input.
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(content_.data() + used_));
      stream_.avail_in = static_cast<uInt>(fed);
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data() + written_);
      stream_.avail_out = static_cast<uInt>(room);
      const int code = inflate(&stream_, Z_NO_FLUSH);
      used_ += fed - stream_.avail_in;
      written_ += room - stream_.avail_out;
      if (auto passed = over_limit()) return *passed;
      if (code == Z_STREAM_END) return success();
      if (code == Z_MEM_ERROR) throw std::bad_alloc();
      if (code != Z_OK && code != Z_BUF_ERROR)
        return bad(fmt::format("gzip data is damaged: {}", stream_.msg ? stream_.msg : "it asks for a dictionary"));
      if (used_ == content_.size() && stream_.avail_out != 0)
        return bad(
            fmt::format("gzip data is cut off: it ends after {} bytes, which decompress to {}", used_, written_));
    }
  }

  void make_room() {
    if (written_ == out_.size()) out_.resize(std::max(kFirstRoom, out_.size() * 2));
  }

  std::optional<Error> over_limit() const {
    if (written_ > limits_.largest.count)
      return bad(fmt::format(
          "gzip data decompresses to more than {} bytes; the limit is {}; unzip it and give the file itself", written_,
          limits_.largest.count));
    // Divides instead of multiplying: used_ * ratio could overflow 64 bits if the caller sets a large ratio.
    if (written_ > limits_.ratio_from.count && written_ / limits_.ratio > used_)
      return bad(
          fmt::format("gzip data decompresses to more than {} times its size ({} bytes from {}); the limit is {} times",
                      written_ / used_, written_, used_, limits_.ratio));
    return std::nullopt;
  }

  Error bad(std::string message) const {
    return {Error::Kind::BadFile, std::move(message), fmt::format("{}:{}", name_, used_)};
  }

  std::span<const std::byte> content_;
  const std::string& name_;
  GzipLimits limits_;
  z_stream stream_{};
  std::size_t used_ = 0;     // bytes of content_ consumed
  std::size_t written_ = 0;  // bytes of out_ filled
  std::string out_;
};

}  // namespace

bool is_gzip(std::span<const std::byte> content) {
  return content.size() >= 2 && content[0] == kMagic0 && content[1] == kMagic1;
}

Result<std::string> gunzip(std::span<const std::byte> content, const std::string& name, const GzipLimits& limits) {
  if (!is_gzip(content)) return Error{Error::Kind::BadFile, "not gzip data", name + ":0"};
  return Gunzip(content, name, limits).run();
}

}  // namespace ullage::read
