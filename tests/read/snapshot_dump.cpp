// SPDX-License-Identifier: Apache-2.0
// Prints everything that was read from snapshots, as lines. test_against_python.py compares them with what Python's own
// pickle reads. A stack gets a number and is printed where it first occurs.
#include "ullage/read/snapshot/snapshot.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

namespace ullage {
namespace {

// In the order of the alternatives of trace::RecordedEvent::what.
constexpr std::array kActions = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                 "segment_free", "segment_map",    "segment_unmap",  "oom",
                                 "snapshot"};
constexpr std::array kStates = {"active", "pending", "inactive"};   // of trace::Block::State
constexpr std::array kLayouts = {"list", "A", "B", "C", "D", "X"};  // of trace::SnapshotLayout

class Dump final {
 public:
  explicit Dump(const trace::Recording& all) : all_(all) {}

  void write() {
    std::cout << "layout " << kLayouts[std::size_t(all_.layout)] << '\n';
    for (const auto& device : all_.devices) {
      for (const auto& segment : device.segments) write(device.device, segment);
      for (const auto& event : device.events) write(device.device, event);
    }
    for (const auto& one : all_.annotations) {
      std::cout << "annotation " << (one.start ? "START" : "END") << ' ' << one.name << ' ' << one.device << ' '
                << one.at.count << '\n';
    }
    if (all_.settings) std::cout << "settings " << all_.settings->text << '\n';
  }

 private:
  std::size_t number(trace::StackId id) {
    const auto [met, is_new] = numbers_.try_emplace(id, numbers_.size());
    if (is_new) {
      std::cout << "stack " << met->second;
      for (const trace::FrameId frame_id : all_.stacks.frames(id)) {
        const trace::Frame& frame = all_.stacks.frame(frame_id);
        std::cout << " | " << frame.file << ':' << frame.line << ' ' << frame.function;
      }
      std::cout << '\n';
    }
    return met->second;
  }

  void write(unsigned device, const trace::Segment& segment) {
    const std::size_t stack = number(segment.stack);
    std::cout << "segment " << device << ' ' << segment.address.value << ' ' << segment.size.count << ' '
              << segment.allocated.count << ' ' << segment.active.count << ' ' << segment.requested.count << ' '
              << segment.stream.value << ' ' << (segment.small ? "small" : "large") << ' ' << segment.expandable << ' '
              << segment.pool.first << ' ' << segment.pool.second << ' ' << stack << '\n';
    for (const trace::Block& block : segment.blocks) {
      const std::size_t of_block = number(block.stack);
      std::cout << "block " << block.address.value << ' ' << block.size.count << ' ' << block.requested.count << ' '
                << kStates[std::size_t(block.state)] << ' ' << of_block << '\n';
    }
  }

  void write(unsigned device, const trace::RecordedEvent& event) {
    const std::size_t stack = number(event.stack);
    std::cout << "event " << device << ' ' << kActions[event.what.index()] << ' ';
    std::visit(
        [](const auto& one) {
          if constexpr (requires { one.address; }) {
            std::cout << one.address.value << ' ' << one.bytes.count << ' ' << one.stream.value;
          } else if constexpr (requires { one.requested; }) {
            std::cout << one.device_free.count << ' ' << one.requested.count << ' ' << one.stream.value;
          } else {
            std::cout << one.reserved.count;
          }
        },
        event.what);
    std::cout << ' ' << (event.at ? std::to_string(event.at->count) : "-") << ' ' << stack << '\n';
  }

  const trace::Recording& all_;
  std::map<trace::StackId, std::size_t> numbers_;
};

}  // namespace
}  // namespace ullage

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    std::ifstream in(words[i], std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(in), {}};
    const auto recording = ullage::read::read_snapshot(std::as_bytes(std::span(content)), words[i]);
    if (!recording) return std::fprintf(stderr, "%s\n", recording.error().text().c_str()), 1;
    ullage::Dump(*recording).write();
  }
  return 0;
}
