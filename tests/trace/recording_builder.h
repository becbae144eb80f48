// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes recordings as PyTorch's allocator does. Addresses are reused, frees are requested and completed, and the
// segments hold the blocks that are live at the end.

#include "ullage/trace/recording/recording.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace ullage::trace {

class RecordingBuilder {
 public:
  RecordingBuilder();

  // `frames` begins with the innermost frame.
  StackId stack(const std::vector<Frame>& frames);
  Address allocate(Bytes bytes, StackId stack = {});
  void free(Address address, StackId stack = {});
  void request_free(Address address, StackId stack = {});
  void complete_free(Address address, StackId stack = {});
  void out_of_memory(Bytes requested, StackId stack = {});
  // Adds an annotation. Its time lies between two events and never equals that of one.
  void annotate(const std::string& name, bool start);
  void add(RecordedEvent event);  // adds it unchecked, for impossible recordings

  std::size_t events() const { return recording_.devices[0].events.size(); }

  // Returns the recording that would be written now if the `lost` oldest events had been overwritten.
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
