// SPDX-License-Identifier: Apache-2.0
#include "recording.h"

#include "comparison.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace ullage::oracle {

namespace {

using nlohmann::ordered_json;

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }
std::uint64_t from_hex(const std::string& text) { return std::stoull(text, nullptr, 16); }

std::string hex(const std::vector<std::uint32_t>& chunks) {
  std::string text;
  for (const std::uint32_t chunk : chunks) text += fmt::format("{:08x}", chunk);
  return text;
}

std::vector<std::uint32_t> chunks_of(const std::string& text) {
  std::vector<std::uint32_t> chunks;
  for (std::size_t at = 0; at + 8 <= text.size(); at += 8) {
    chunks.push_back(static_cast<std::uint32_t>(from_hex(text.substr(at, 8))));
  }
  return chunks;
}

std::optional<Case> case_of(const std::string& name, std::uint64_t seed) {
  if (name == "random") return random_case(seed);
  for (Case& one : named_cases()) {
    if (one.name != name) continue;
    one.seed = seed;
    return one;
  }
  return std::nullopt;
}

ordered_json json_of(const RecordedCase& recorded) {
  const Totals& totals = recorded.totals;
  return {{"name", recorded.one.name},
          {"seed", recorded.one.seed},
          {"operations", recorded.one.operations},
          {"first_fit", recorded.one.first_fit},
          {"settings", recorded.settings},
          {"operations_hash", hex(recorded.operations_hash)},
          {"events", recorded.events},
          {"hash", hex(recorded.hash)},
          {"totals",
           {totals.allocated, totals.allocated_peak, totals.reserved, totals.reserved_peak, totals.segments,
            totals.retries, totals.out_of_memory}},
          {"chunks", hex(recorded.chunks)}};
}

RecordedCase recorded_of(const ordered_json& json) {
  RecordedCase recorded;
  const auto one = case_of(json.at("name"), json.at("seed"));
  if (!one) throw std::runtime_error(fmt::format("no case is named {}", json.at("name").get<std::string>()));
  recorded.one = *one;
  recorded.one.operations = json.at("operations");
  recorded.one.first_fit = json.at("first_fit");
  recorded.settings = json.at("settings");
  recorded.operations_hash = from_hex(json.at("operations_hash"));
  recorded.events = json.at("events");
  recorded.hash = from_hex(json.at("hash"));
  recorded.chunks = chunks_of(json.at("chunks"));
  const std::vector<std::uint64_t> totals = json.at("totals");
  recorded.totals = {totals.at(0), totals.at(1), totals.at(2), totals.at(3), totals.at(4), totals.at(5), totals.at(6)};
  return recorded;
}

}  // namespace

std::vector<Case> cases_to_record() {
  std::vector<Case> cases = named_cases();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].operations = 20'000;
    cases[i].first_fit = i % 2 == 0;
  }
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    cases.push_back(random_case(seed));
    cases.back().operations = 4000;
    cases.back().first_fit = seed % 4 != 0;
  }
  return cases;
}

RecordedCase record(const Case& one, const std::vector<Operation>& operations, const Run& real) {
  const Digest digest = digest_of(real.events);
  return {one,           one.settings.text(), digest_of(operations).hash(),
          digest.hash(), digest.events(),     digest.chunks(),
          real.totals};
}

Result<Recording> read_recording(const std::string& file) {
  std::ifstream in(file);
  if (!in) return Error{Error::Kind::NotFound, "cannot be opened", file};
  Recording recording;
  try {
    const auto json = ordered_json::parse(in);
    recording.torch = json.at("torch");
    for (const auto& one : json.at("cases")) recording.cases.push_back(recorded_of(one));
  } catch (const std::exception& error) {
    return Error{Error::Kind::BadFile, error.what(), file};
  }
  return recording;
}

Status write_recording(const std::string& file, const Recording& recording) {
  std::ofstream out(file);
  out << "{\"torch\": " << ordered_json(recording.torch) << ",\n \"cases\": [\n";
  for (std::size_t i = 0; i < recording.cases.size(); ++i) {
    out << "  " << json_of(recording.cases[i]) << (i + 1 < recording.cases.size() ? ",\n" : "\n");
  }
  out << "]}\n";
  if (!out.flush()) return Error{Error::Kind::System, "cannot be written", file};
  return success();
}

std::optional<std::string> difference(const RecordedCase& recorded, const Behaviour& behaviour) {
  const std::vector<Operation> operations = operations_of(recorded.one);
  if (digest_of(operations).hash() != recorded.operations_hash || recorded.one.settings.text() != recorded.settings) {
    return fmt::format("{}: cases.cpp, operations.cpp or random.h makes another case than was recorded; record anew",
                       text(recorded.one));
  }
  const Run model = run_model(recorded.one, operations, behaviour);
  const Digest digest = digest_of(model.events);
  if (digest.hash() == recorded.hash && digest.events() == recorded.events) {
    if (model.totals == recorded.totals) return std::nullopt;
    return fmt::format("{}: all {} events are equal, the totals are not", text(recorded.one), recorded.events);
  }
  const auto equal = std::ranges::mismatch(digest.chunks(), recorded.chunks).in1 - digest.chunks().begin();
  const auto from = static_cast<std::uint64_t>(equal) * Digest::kChunk;
  return fmt::format("{}: differs from the real allocator between events {} and {}; model {} events, real {}",
                     text(recorded.one), from, from + Digest::kChunk, digest.events(), recorded.events);
}

}  // namespace ullage::oracle
