// SPDX-License-Identifier: Apache-2.0
#pragma once

// The 92 real messages of tests/data/messages and the facts that the log reader must find in each.

#include "real.h"
#include "ullage/trace/recording/out_of_memory.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ullage::read {

struct MessageFacts {
  std::string id;
  std::string text;
  std::string teller;
  std::string form;
  std::map<std::string, std::uint64_t> figures;  // device and rank too; processes as "pid:21422"
};

std::vector<MessageFacts> message_facts();

// Returns the same map for what the reader found. Equal maps mean that nothing is missing and nothing is made up.
std::map<std::string, std::uint64_t> figures_of(const trace::OutOfMemory& error);
std::string name_of(trace::Teller teller);

}  // namespace ullage::read
