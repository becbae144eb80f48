// SPDX-License-Identifier: Apache-2.0
#include "ullage/sim/caching_settings.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

namespace ullage::sim {
namespace {

constexpr Bytes kMiB = 1_MiB;
constexpr std::uint64_t kMostMiB = UINT64_MAX / kMiB.count;

// Keys that do not change where the model puts device bytes. They must have a value, and the value is ignored. So it is
// for `backend`, although with cudaMallocAsync torch uses another allocator, which is not modelled here.
constexpr const char* kWithoutEffect[] = {
    "backend",
    "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc",
    "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",
    "pinned_num_register_threads",
    "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb",
    "pinned_max_register_threads",
    "pinned_free_catch_all",
    "graph_capture_record_stream_reuse",
    "throw_on_cudamalloc_oom",
};
constexpr const char* kWithEffect[] = {
    "max_split_size_mb",   "max_non_split_rounding_mb", "garbage_collection_threshold", "roundup_power2_divisions",
    "expandable_segments", "large_segment_size_mb",     "per_process_memory_fraction",
};

Error bad(std::string message) { return {Error::Kind::BadArgument, std::move(message), "allocator settings"}; }

// The edit distance: how many letters must be changed, added or removed to turn one text into the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t kept = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({kept, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

Error unknown(const std::string& key) {
  std::vector<const char*> keys(std::begin(kWithEffect), std::end(kWithEffect));
  keys.insert(keys.end(), std::begin(kWithoutEffect), std::end(kWithoutEffect));
  const auto nearest = std::min_element(
      keys.begin(), keys.end(), [&](const char* a, const char* b) { return distance(key, a) < distance(key, b); });
  const bool meant = distance(key, *nearest) * 3 <= key.size();
  return bad("unknown key '" + key + "'" + (meant ? ", did you mean '" + std::string(*nearest) + "'?" : ""));
}

Result<std::uint64_t> whole(const std::string& key, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size()) {
    return bad(key + " is '" + std::string(text) + "', expected a whole number");
  }
  return value;
}

Result<double> share(const std::string& key, std::string_view text, bool one_is_allowed) {
  double value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = !text.empty() && fault == std::errc{} && end == text.data() + text.size();
  if (!number || !(value > 0) || !(value < 1 || (one_is_allowed && value == 1))) {
    return bad(key + " is '" + std::string(text) + "', expected a number above 0 and " +
               (one_is_allowed ? "up to 1" : "below 1"));
  }
  return value;
}

// Takes one key and the text of its value at a time. The keys come in any order, so check() compares the sizes with
// large_segment_size_mb at the end.
struct Parser {
  CachingSettings settings;

  Result<Bytes> mebibytes(const std::string& key, std::string_view text) {
    ULLAGE_TRY_VALUE(const std::uint64_t value, whole(key, text));
    return kMiB * std::min(value, kMostMiB);
  }

  Status take_size(const std::string& key, std::string_view text) {
    ULLAGE_TRY_VALUE(const Bytes size, mebibytes(key, text));
    if (key == "max_split_size_mb") {
      settings.max_split = size;
    } else if (key == "max_non_split_rounding_mb") {
      settings.max_non_split_rounding = size;
    } else {
      settings.large_segment = size;
    }
    return success();
  }

  Result<std::uint64_t> divisions(std::string_view text) {
    Result<std::uint64_t> value = whole("roundup_power2_divisions", text);
    if (value && *value != 0 && !std::has_single_bit(*value)) {
      return bad("roundup_power2_divisions has " + std::string(text) + " divisions, expected a power of 2 or 0");
    }
    return value;
  }

  // "4", or "[256:1,512:2,>:4]" with intervals in MiB. The first value holds below its interval too; '>' holds above
  // the last interval that was named.
  Status take_roundup(std::string_view text) {
    auto& table = settings.roundup_power2_divisions;
    if (text.empty() || text.front() != '[') {
      ULLAGE_TRY_VALUE(const std::uint64_t value, divisions(text));
      if (value == 0) return bad("roundup_power2_divisions is 0, expected a power of 2, or a list with 0 in it");
      table.fill(value);
      return success();
    }
    if (text.back() != ']') return bad("roundup_power2_divisions has a list without its ']'");
    text = text.substr(1, text.size() - 2);
    std::size_t last = 0;
    for (bool first = true; !text.empty(); first = false) {
      const std::string_view item = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), item.size() + 1));
      ULLAGE_TRY(take_interval(item, first, last));
    }
    return success();
  }

  Status take_interval(std::string_view item, bool first, std::size_t& last) {
    auto& table = settings.roundup_power2_divisions;
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      return bad("roundup_power2_divisions has '" + std::string(item) + "' in its list, expected interval:divisions");
    }
    ULLAGE_TRY_VALUE(const std::uint64_t value, divisions(item.substr(colon + 1)));
    if (item.substr(0, colon) == ">") {
      // Begins after the last named interval, as torch 2.11 and later do. Older versions began at that interval.
      std::fill(table.begin() + static_cast<std::ptrdiff_t>(last + 1), table.end(), value);
      return success();
    }
    ULLAGE_TRY_VALUE(const std::uint64_t interval, whole("roundup_power2_divisions", item.substr(0, colon)));
    if (!std::has_single_bit(interval)) {
      return bad("roundup_power2_divisions has the interval " + std::to_string(interval) + ", expected a power of 2");
    }
    last = std::min(static_cast<std::size_t>(std::countr_zero(interval)), table.size() - 1);
    if (first) std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(last), value);
    table[last] = value;
    return success();
  }

  Status take(const std::string& key, std::string_view text) {
    if (key == "max_split_size_mb" || key == "max_non_split_rounding_mb" || key == "large_segment_size_mb") {
      return take_size(key, text);
    }
    if (key == "roundup_power2_divisions") return take_roundup(text);
    if (key == "garbage_collection_threshold" || key == "per_process_memory_fraction") {
      const bool fraction = key == "per_process_memory_fraction";
      ULLAGE_TRY_VALUE(const double value, share(key, text, fraction));
      (fraction ? settings.memory_fraction : settings.garbage_collection_threshold) = value;
      return success();
    }
    if (key == "expandable_segments") {
      if (text != "True" && text != "False") {
        return bad("expandable_segments is '" + std::string(text) + "', expected True or False");
      }
      settings.expandable_segments = text == "True";
      return success();
    }
    if (std::find(std::begin(kWithoutEffect), std::end(kWithoutEffect), key) == std::end(kWithoutEffect)) {
      return unknown(key);
    }
    if (text.empty()) return bad(key + " has no value");
    return success();
  }

  Status check() const {
    if (settings.large_segment < 2_MiB) return bad("large_segment_size_mb is below 2");
    const auto refused = [&](const char* key, const std::optional<Bytes>& size) {
      return size && *size < settings.large_segment
                 ? std::optional(bad(
                       std::string(key) + " is " + std::to_string(size->count / kMiB.count) + ", expected at least " +
                       std::to_string(settings.large_segment.count / kMiB.count) + ", the size of a large segment"))
                 : std::nullopt;
    };
    if (const auto error = refused("max_split_size_mb", settings.max_split)) return *error;
    if (const auto error = refused("max_non_split_rounding_mb", settings.max_non_split_rounding)) return *error;
    return success();
  }
};

// The end of the first "key:value" in `text`: the next comma outside brackets, or the end of the text.
std::size_t item_end(std::string_view text) {
  bool inside = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '[') inside = true;
    if (text[at] == ']') inside = false;
    if (text[at] == ',' && !inside) return at;
  }
  return text.size();
}

}  // namespace

Result<CachingSettings> CachingSettings::parse(std::string_view text) {
  std::string dense;
  std::copy_if(text.begin(), text.end(), std::back_inserter(dense), [](char c) { return c != ' '; });
  Parser parser;
  for (std::string_view rest = dense; !rest.empty();) {
    const std::size_t end = item_end(rest);
    const std::string_view item = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      return bad("'" + std::string(item) + "' has no value, expected key:value");
    }
    ULLAGE_TRY(parser.take(std::string(item.substr(0, colon)), item.substr(colon + 1)));
  }
  ULLAGE_TRY(parser.check());
  return parser.settings;
}

}  // namespace ullage::sim
