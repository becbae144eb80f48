// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/file/content_kind.h"

#include "ullage/read/file/gzip.h"
#include "ullage/trace/file/trace_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace ullage::read {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view begins;
  ForeignContent content;
};

constexpr std::string_view kCheckpointAdvice =
    "it holds tensors, not what the allocator did; record with torch.cuda.memory._record_memory_history() and write "
    "with "
    "torch.cuda.memory._dump_snapshot()";
constexpr std::string_view kUnpack = "unpack it and give the file itself";
constexpr std::string_view kRewrite = "write it with torch.cuda.memory._dump_snapshot()";

// The first match counts.
constexpr std::array kSignatures = {
    Signature{"PK\x03\x04"sv, {"a zip archive, as torch.save writes checkpoints", kCheckpointAdvice}},
    Signature{"\x80\x02\x8a\x0al\xfc\x9c"sv, {"a checkpoint of torch.save in its old form", kCheckpointAdvice}},
    Signature{"\x7f"
              "ELF"sv,
              {"a program or library (ELF)", ""}},
    Signature{"\x89PNG"sv, {"a PNG picture", "pictures of memory timelines hold no figures"}},
    Signature{"\xff\xd8\xff"sv, {"a JPEG picture", "pictures of memory timelines hold no figures"}},
    Signature{"%PDF"sv, {"a PDF document", ""}},
    Signature{"GGUF"sv, {"a GGUF model", kCheckpointAdvice}},
    Signature{"\x89HDF"sv, {"an HDF5 file", kCheckpointAdvice}},
    Signature{"SQLite format 3"sv, {"an SQLite database, as Nsight Systems exports them", ""}},
    Signature{"BZh"sv, {"bzip2 data", kUnpack}},
    Signature{"\xfd"
              "7zXZ"sv,
              {"xz data", kUnpack}},
    Signature{"\x28\xb5\x2f\xfd"sv, {"zstd data", kUnpack}},
    Signature{"\x04\x22\x4d\x18"sv, {"lz4 data", kUnpack}},
    // How a pickled dict or list begins in protocol 0 ("(dp0\n", "(lp0\n") and 1 ("}q\0", "]q\0").
    Signature{"(dp"sv, {"a pickle of an old protocol (0)", kRewrite}},
    Signature{"(lp"sv, {"a pickle of an old protocol (0)", kRewrite}},
    Signature{"}q\0"sv, {"a pickle of an old protocol (1)", kRewrite}},
    Signature{"]q\0"sv, {"a pickle of an old protocol (1)", kRewrite}},
    Signature{"<!DOCTYPE"sv,
              {"an HTML page", "viewers' pages hold pictures; give the snapshot or trace they were made of"}},
    Signature{"<!doctype"sv,
              {"an HTML page", "viewers' pages hold pictures; give the snapshot or trace they were made of"}},
    Signature{"<html"sv,
              {"an HTML page", "viewers' pages hold pictures; give the snapshot or trace they were made of"}},
};

constexpr std::size_t kLookedThrough = std::size_t{1} << 16;  // bytes

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// The format begins with a length in 8 bytes, of which the highest is 0. Then comes JSON whose entries have
// "data_offsets".
bool is_safetensors(std::string_view text) {
  return text.size() > 10 && text[8] == '{' && text[7] == 0 && has(text.substr(0, kLookedThrough), "\"data_offsets\"");
}

// Judges text that begins with a brace or a square bracket, as JSON and printed Python dicts and lists do. Without the
// keys of a snapshot or a profile it counts as text: it may be a log of one object a line.
std::variant<ContentKind, ForeignContent> kind_of_braces(std::string_view text) {
  const std::string_view start = text.substr(0, kLookedThrough);
  if (has(start, "\"device_traces\"") || (has(start, "\"segments\"") && has(start, "\"blocks\"")) ||
      (has(start, "\"total_size\"") && has(start, "\"segment_type\"")))
    return ForeignContent{"a memory snapshot printed as JSON", kRewrite};
  if (has(start, "'device_traces'") || (has(start, "'segment_type'") && has(start, "'blocks'")))
    return ForeignContent{"a memory snapshot printed by Python", kRewrite};
  if (has(text, "\"traceEvents\"")) return ContentKind::Profile;
  const std::size_t first = text.find_first_not_of(" \t\r\n", 1);
  const bool list_of_objects = text[0] == '[' && first != std::string_view::npos && text[first] == '{';
  if (list_of_objects && has(start, "\"ph\"") && has(start, "\"ts\"")) return ContentKind::Profile;
  return ContentKind::Text;
}

}  // namespace

std::variant<ContentKind, ForeignContent> kind_of(std::span<const std::byte> content) {
  std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  if (is_gzip(content)) return ContentKind::Gzip;
  if (text.starts_with(trace::kTraceFileMagic)) return ContentKind::Trace;
  for (const Signature& signature : kSignatures)
    if (text.starts_with(signature.begins)) return signature.content;
  if (text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5) return ContentKind::Snapshot;
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) return ContentKind::WideText;
  if (is_safetensors(text)) return ForeignContent{"a safetensors file", kCheckpointAdvice};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  if (text.empty()) return ForeignContent{"a file without anything in it", ""};
  // Progress bars and crashed programs leave single zero bytes in logs; a binary file has many near its start.
  const std::string_view start = text.substr(0, 4096);
  if (static_cast<std::size_t>(std::count(start.begin(), start.end(), '\0')) > start.size() / 10)
    return ForeignContent{"binary data of an unknown kind", ""};
  if (text.front() == '{' || text.front() == '[') return kind_of_braces(text);
  return ContentKind::Text;
}

std::string narrow(std::span<const std::byte> wide) {
  const bool big_endian = wide.size() >= 2 && wide[0] == std::byte{0xfe};
  const auto unit = [&](std::size_t i) {
    const auto low = std::to_integer<std::uint32_t>(wide[i + (big_endian ? 1 : 0)]);
    const auto high = std::to_integer<std::uint32_t>(wide[i + (big_endian ? 0 : 1)]);
    return high << 8 | low;
  };
  std::string out;
  for (std::size_t i = 2; i + 1 < wide.size(); i += 2) {
    std::uint32_t c = unit(i);
    const bool leads =
        c >= 0xd800 && c < 0xdc00 && i + 3 < wide.size() && unit(i + 2) >= 0xdc00 && unit(i + 2) < 0xe000;
    if (leads) {
      c = 0x10000 + ((c - 0xd800) << 10) + (unit(i + 2) - 0xdc00);
      i += 2;
    } else if (c >= 0xd800 && c < 0xe000) {
      c = '?';
    }
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    } else if (c < 0x10000) {
      out += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
              static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      out += {static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3f)),
              static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return out;
}

}  // namespace ullage::read
