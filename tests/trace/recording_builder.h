// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes recordings as PyTorch's allocator would: addresses are used again, frees are requested and completed, and the
// segments at the end hold the blocks that are live then.

#include "ullage/trace/recording/recording.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace ullage::trace {

class RecordingBuilder {
 public:
  RecordingBuilder();

  // Innermost first.
  StackId stack(const std::vector<Frame>& frames);
  Address allocate(Bytes bytes, StackId stack = {});
  void free(Address address, StackId stack = {});
  void request_free(Address address, StackId stack = {});
  void complete_free(Address address, StackId stack = {});
  void out_of_memory(Bytes requested, StackId stack = {});
  // The same time is between two events, never at one.
  void annotate(const std::string& name, bool start);
  void add(RecordedEvent event);  // as it is: for what cannot be

  std::size_t events() const { return recording_.devices[0].events.size(); }

  // The file that is written now, when the `lost` oldest events are gone.
  Recording recording(std::size_t lost = 0) const;

 private:
  struct Live {
    Bytes bytes;
    StackId stack;
    bool pending = false;
  };

  Recording recording_;
  std::map<Address, Live> live_;
  std::map<std::uint64_t, std::vector<Address>> free_;  // by size
  Address next_{0x7f0000000000};
  std::int64_t now_ = 1000;
};

}  // namespace ullage::trace
