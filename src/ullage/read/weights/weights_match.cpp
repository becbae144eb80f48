// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/weights/weights_match.h"

#include "ullage/read/file/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ullage::read {
namespace {

constexpr std::size_t kListed = 10;  // keys listed of each kind of difference
constexpr std::size_t kBeginningsSaid = 8;
constexpr std::size_t kPrefixesTried = 16;  // trying one costs a lookup of each wanted key

std::string as_shown(std::string_view name) { return printable(name, kNameInMessage); }

// Returns "2 are missing: a, b"; empty if there are none.
std::string listed(const std::vector<std::string>& items, std::string_view are) {
  if (items.empty()) return "";
  std::string text = fmt::format("{} {}: ", items.size(), are);
  for (std::size_t i = 0; i < std::min(items.size(), kListed); ++i) text += (i > 0 ? ", " : "") + items[i];
  if (items.size() > kListed) text += ", ...";
  return text;
}

bool has_all(const Weights& weights, std::span<const WantedWeight> wanted, const std::string& prefix) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const WantedWeight& one) { return weights.find(prefix + one.name) != nullptr; });
}

// Returns a prefix that all wanted keys have in the file; empty if there is none.
std::string find_prefix(const Weights& weights, std::span<const WantedWeight> wanted) {
  std::size_t tried = 0;
  for (const NamedWeight& one : weights.tensors()) {
    if (!one.name.ends_with(wanted[0].name)) continue;
    const std::string prefix = one.name.substr(0, one.name.size() - wanted[0].name.size());
    if (!prefix.empty() && has_all(weights, wanted, prefix)) return prefix;
    if (++tried == kPrefixesTried) break;
  }
  return "";
}

}  // namespace

Status match(const Weights& weights, std::span<const WantedWeight> wanted, ExtraWeights extra) {
  return match(weights, wanted, [extra](std::string_view) { return extra == ExtraWeights::Allowed; });
}

Status match(const Weights& weights, std::span<const WantedWeight> wanted,
             const std::function<bool(std::string_view)>& may_be_extra) {
  std::vector<std::string> missing, misshapen, unwanted;
  std::set<std::string_view> names;
  for (const WantedWeight& one : wanted) {
    names.insert(one.name);
    const WeightTensor* found = weights.find(one.name);
    if (!found) {
      missing.push_back(one.name);
    } else if (found->shape != one.shape) {
      misshapen.push_back(fmt::format("{} is {}, wanted {}", one.name, to_string(found->shape), to_string(one.shape)));
    }
  }
  for (const NamedWeight& one : weights.tensors()) {
    if (!names.contains(one.name) && !may_be_extra(one.name)) unwanted.push_back(as_shown(one.name));
  }
  std::string message;
  for (const std::string& part :
       {listed(missing, "are missing"), listed(misshapen, "have another shape"), listed(unwanted, "are extra")}) {
    if (!part.empty()) message += "; " + part;
  }
  if (message.empty()) return success();
  message = fmt::format("of {} tensors, {} wanted{}", weights.tensors().size(), wanted.size(), message);
  if (!missing.empty()) {
    const std::string prefix = find_prefix(weights, wanted);
    message += prefix.empty() ? "; give the file that belongs to this program"
                              : fmt::format("; all keys have the prefix '{}': take those under it", as_shown(prefix));
  }
  return Error{Error::Kind::BadFile, message, weights.file()};
}

Status match_floats(const Weights& weights, std::span<const WantedWeight> wanted) {
  using enum Dtype;
  for (const WantedWeight& one : wanted) {
    const WeightTensor* found = weights.find(one.name);
    if (!found || found->dtype == F16 || found->dtype == BF16 || found->dtype == F32 || found->dtype == F64) continue;
    return Error{
        Error::Kind::BadFile,
        fmt::format("{} is of type {}; F16, BF16, F32 and F64 work", as_shown(one.name), name_of(found->dtype)),
        weights.file()};
  }
  return success();
}

std::string beginnings_of(const Weights& weights) {
  std::map<std::string, std::size_t> counts;
  for (const auto& [name, tensor] : weights.tensors()) {
    constexpr std::string_view kLightning = "state_dict.";
    const std::size_t dot = name.find('.', name.starts_with(kLightning) ? kLightning.size() : 0);
    ++counts[dot == std::string::npos ? name : name.substr(0, dot + 1)];
  }
  if (counts.empty()) return "it has no tensors";
  std::vector<std::pair<std::string, std::size_t>> found(counts.begin(), counts.end());
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = "its names begin with ";
  for (std::size_t i = 0; i < std::min(found.size(), kBeginningsSaid); ++i) {
    text += (i > 0 ? ", " : "") + as_shown(found[i].first) + " (" + std::to_string(found[i].second) + ")";
  }
  return text + (found.size() > kBeginningsSaid ? ", ..." : "");
}

}  // namespace ullage::read
