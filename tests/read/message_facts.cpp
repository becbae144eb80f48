// SPDX-License-Identifier: Apache-2.0
#include "read/message_facts.h"

#include <nlohmann/json.hpp>

#include <sstream>

namespace ullage::read {

using nlohmann::json;
using trace::OutOfMemory;

std::vector<MessageFacts> message_facts() {
  std::map<std::string, std::string> texts;
  std::istringstream messages(text_of(data_folder() / "messages/messages.jsonl"));
  for (std::string line; std::getline(messages, line);) {
    const json message = json::parse(line);
    texts[message.at("id")] = message.at("text");
  }
  std::vector<MessageFacts> all;
  std::istringstream facts(text_of(data_folder() / "messages/facts.jsonl"));
  for (std::string line; std::getline(facts, line);) {
    const json fact = json::parse(line);
    MessageFacts one{fact.at("id"), texts.at(fact.at("id")), fact.at("teller"), fact.at("form"), {}};
    for (const auto& [key, value] : fact.items()) {
      if (value.is_number()) one.figures[key] = value;
    }
    for (const json& use : fact.value("processes", json::array())) {
      one.figures["pid:" + std::to_string(use.at(0).get<std::uint64_t>())] = use.at(1);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::map<std::string, std::uint64_t> figures_of(const OutOfMemory& error) {
  std::map<std::string, std::uint64_t> figures;
  const auto add = [&](const char* name, const std::optional<Bytes>& bytes) {
    if (bytes) figures[name] = bytes->count;
  };
  add("requested", error.requested);
  add("capacity", error.capacity);
  add("allocated", error.allocated);
  add("free", error.free);
  add("reserved", error.reserved);
  add("unallocated", error.unallocated);
  add("private_pools", error.private_pools);
  add("process", error.process);
  add("allowed", error.allowed);
  add("other", error.other);
  add("active", error.active);
  add("largest_block", error.largest_block);
  add("needed", error.needed);
  if (error.device) figures["device"] = *error.device;
  if (error.rank) figures["rank"] = *error.rank;
  for (const trace::ProcessUse& use : error.processes) figures["pid:" + std::to_string(use.pid)] = use.bytes.count;
  return figures;
}

std::string name_of(trace::Teller teller) {
  constexpr const char* kNames[] = {"cuda",          "cuda-driver", "cuda-malloc-async",
                                    "hip",           "xpu",         "npu",
                                    "mps",           "metal",       "cpu",
                                    "shared-memory", "kernel-kill", "cublas",
                                    "cudnn",         "cusolver",    "cusparse",
                                    "cufft",         "magma",       "nccl",
                                    "vllm",          "ullage",      "jax",
                                    "tensorflow",    "other"};
  return kNames[static_cast<std::size_t>(teller)];
}

}  // namespace ullage::read
