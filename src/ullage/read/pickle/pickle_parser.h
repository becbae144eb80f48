// SPDX-License-Identifier: Apache-2.0
#pragma once

// A pickle is a program for a stack machine; this is the machine. It knows only the opcodes that build data. In
// checkpoints it also records which classes and calls the file asks for, and makes none. It refuses all other opcodes.
// It reads the file in one loop and one pass. Use it through Pickle::parse and parse_checkpoint. Its bool
// functions return false on failure, after setting error_.

#include "ullage/read/pickle/pickle.h"
#include "ullage/read/pickle/pickle_opcodes.h"

#include <initializer_list>

namespace ullage::read {

class PickleParser final {
 public:
  PickleParser(std::span<const std::byte> file, const std::string& name, const PickleLimits& limits,
               PickleContent content = PickleContent::Snapshot, std::uint64_t place = 0)
      : file_(file), name_(name), limits_(limits), content_(content), place_(place) {}

  Result<Pickle> parse();

 private:
  using Kind = PickleValue::Kind;

  // pickle_parser.cpp: the opcodes, the stack, the memo.
  bool run();  // up to STOP
  bool step(PickleOpcode opcode);
  std::uint64_t left() const { return file_.size() - at_; }
  // The always_inline functions serve almost every opcode, so they are part of the loop.
  [[gnu::always_inline]] bool has(std::uint64_t bytes) { return left() >= bytes || cut_short(bytes); }
  [[gnu::always_inline]] std::uint64_t take(std::size_t bytes);  // call has(bytes) before
  bool skip_frame();
  bool string(std::size_t length_bytes, Kind kind = Kind::String);
  bool long_integer(std::size_t length_bytes);
  bool small_integer(std::size_t bytes, bool is_signed);
  bool floating();
  std::optional<std::uint64_t> decimal_line();
  [[gnu::always_inline]] bool push(PickleValue value) {
    if (stack_.size() >= limits_.stack) return too_many("values on the stack", limits_.stack);
    stack_.push_back(value);
    return true;
  }
  bool put(std::optional<std::uint64_t> index);
  [[gnu::always_inline]] bool fetch(std::uint64_t index);

  // pickle_containers.cpp. A mark says where the items of a container begin. No function takes values from below the
  // newest mark. pop() takes the mark itself if nothing is above it, as Python does.
  bool prepare();
  std::size_t above_mark() const { return stack_.size() - fence_; }
  bool needs(std::size_t values) { return above_mark() >= values || too_few(values); }
  bool mark();
  bool drop_mark();
  bool pop();
  bool open(Kind kind);                        // pushes an empty container
  bool collect(Kind kind, std::size_t count);  // moves `count` values from the stack into a new one
  bool collect_to_mark(Kind kind);
  bool extend(Kind kind, std::size_t count);
  bool extend_to_mark(Kind kind);
  bool make_room(Pickle::Container& one, std::size_t count);
  bool share(Pickle::Container& one, std::span<const PickleValue> items);
  PickleValue new_container(Kind kind);

  // pickle_fetches.cpp: lists whose items are all fetched from the memo. If the bytes that fill such a list are the
  // same as of a list before, it gets the same items at once, without reading the opcodes.
  bool mark_before_items();
  bool append_to_mark();
  // Where fetches_ remembers the bytes at items_at_: by the list filled before and by the bytes themselves.
  struct Places {
    std::size_t after_list, of_bytes;
  };
  Places places_of_fetches() const;
  void remember_fetches(const Pickle::Container& list);

  // pickle_objects.cpp: opcodes for checkpoints only.
  bool checkpoint_step(CheckpointOpcode opcode);
  bool object_step(CallingOpcode opcode);
  bool global_lines();
  bool global_of_stack();
  bool global(std::string_view module, std::string_view name);
  bool object(std::size_t values);
  bool build();
  bool persistent();
  bool add(Kind kind, std::initializer_list<PickleValue> items);
  bool enter_contents(PickleValue& target, Kind kind);

  // pickle_refusal.cpp
  bool begins_well();
  bool refuse(std::uint8_t opcode);
  std::string called_name(std::uint8_t opcode) const;
  bool fail(const std::string& message);
  bool cut_short(std::uint64_t bytes);
  bool too_few(std::size_t values);
  bool too_many(const char* what, std::size_t limit);

  const std::span<const std::byte> file_;
  const std::string& name_;
  const PickleLimits limits_;
  const PickleContent content_;
  const std::uint64_t place_;  // offset of file_ in the file that messages name
  Pickle made_;
  std::uint64_t at_ = 0;      // next byte
  std::uint64_t opcode_ = 0;  // offset of the opcode at work
  std::vector<PickleValue> stack_;
  std::vector<std::size_t> marks_;  // height of the stack at each mark
  std::size_t fence_ = 0;           // marks_.back(), or zero
  std::vector<PickleValue> memo_;
  std::size_t memo_entries_ = 0;  // how many of memo_ are not Absent; MEMOIZE numbers by this, as Python does
  struct Items {
    std::uint32_t begin = 0, size = 0;  // in made_.items_
  };
  std::vector<Items> filled_;  // index: a hash of items; the latest list that had them, so that equal lists share them
  // Bytes of file_ that only fetch from the memo, up to and with APPENDS, and the items that they gave. No bytes: an
  // unused entry.
  struct Fetches {
    std::uint32_t offset = 0, bytes = 0;
    Items items;
  };
  std::vector<Fetches> fetches_;      // index: see Places
  std::uint64_t items_at_ = 0;        // offset in file_ of the first item's opcode, for the list below the newest mark
  std::uint32_t list_before_ = 0;     // index in made_.items_ of the first item of the list that was filled last
  bool has_changed_entries_ = false;  // a memo entry was overwritten: the same bytes may fetch something else since
  bool stopped_ = false;
  std::optional<Error> error_;
};

}  // namespace ullage::read
