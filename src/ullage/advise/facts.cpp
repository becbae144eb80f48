// SPDX-License-Identifier: Apache-2.0
#include "ullage/advise/facts.h"

#include <nlohmann/json.hpp>

#include <fstream>

namespace ullage::advise {
namespace {

using Json = nlohmann::json;

std::string text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool flag(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

std::optional<bool> choice(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

std::int64_t number(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

Place place(const Json& json) { return {text(json, "file"), static_cast<int>(number(json, "line"))}; }

std::optional<Place> place_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return std::nullopt;
  return place(*found);
}

Facts facts_of(const Json& json) {
  Facts facts;
  const auto with = [&](const char* name, const auto& read) {
    const auto found = json.find(name);
    if (found != json.end() && found->is_object()) read(*found);
  };
  with("forward", [&](const Json& one) { facts.network = {place(one), text(one, "name"), text(one, "device")}; });
  with("optimizer", [&](const Json& one) {
    facts.optimizer = {place(one),
                       text(one, "name"),
                       flag(one, "has_foreach"),
                       flag(one, "has_fused"),
                       choice(one, "foreach"),
                       choice(one, "fused"),
                       text(one, "device")};
  });
  with("repeated_layers", [&](const Json& one) {
    facts.repeated_layers = {place(one), text(one, "name"), number(one, "count"), flag(one, "has_batch_norm")};
  });
  if (facts.repeated_layers) facts.repeated_layers->called = place_of(json, "layer_call").value_or(Place{});
  with("replicas", [&](const Json& one) { facts.replicas = {place(one), flag(one, "bucket_views")}; });
  with("costs", [&](const Json& one) {
    const auto found = one.find("seconds");
    if (found != one.end() && found->is_number()) facts.step = Seconds{found->get<double>()};
  });
  with("process", [&](const Json& one) {
    const auto seconds = one.find("seconds");
    if (number(one, "peak") <= 0 || seconds == one.end() || !seconds->is_number()) return;
    const auto others = std::max<std::int64_t>(0, number(one, "others"));
    facts.process = {Bytes{static_cast<std::uint64_t>(number(one, "peak"))}, Bytes{static_cast<std::uint64_t>(others)},
                     Seconds{seconds->get<double>()}};
  });
  facts.autocast = place_of(json, "autocast");
  facts.autocast_off = place_of(json, "autocast_off");
  facts.checkpoint = place_of(json, "checkpoint");
  facts.cudnn_benchmark = place_of(json, "cudnn_benchmark");
  facts.keeps_zeroed_gradients = place_of(json, "keeps_zeroed_gradients");
  facts.math_attention = place_of(json, "math_attention");
  facts.has_half_weights = json.contains("half_weights");
  with("torch", [&](const Json& one) { facts.torch = text(one, "version"); });
  with("cast", [&](const Json& one) { facts.cast = {place(one), text(one, "name"), text(one, "device")}; });
  facts.evaluation = json.contains("evaluation");
  with("other_device", [&](const Json& one) { facts.other_device = text(one, "device"); });
  return facts;
}

// Ranks the processes of a program, so that the one that trains is taken: it has casts, an optimizer, a network, torch.
int weight(const Facts& facts) {
  return (facts.cast ? 8 : 0) + (facts.optimizer ? 4 : 0) + (facts.network ? 2 : 0) + (facts.torch.empty() ? 0 : 1);
}

}  // namespace

Facts read_facts(const std::filesystem::path& folder) {
  Facts best;
  std::error_code ignored;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    if (Facts facts = facts_of(json); weight(facts) > weight(best)) best = std::move(facts);
  }
  return best;
}

}  // namespace ullage::advise
