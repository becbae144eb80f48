// SPDX-License-Identifier: Apache-2.0
// How PickleParser records a checkpoint's classes and calls. An object has four places among the items:
//
//   made_by | arguments | state (set by BUILD) | contents (set by SETITEM(S) or APPEND(S))
#include "ullage/read/file/printable.h"
#include "ullage/read/pickle/pickle_globals.h"
#include "ullage/read/pickle/pickle_parser.h"

#include <algorithm>

namespace ullage::read {
namespace {

constexpr std::size_t kState = 2, kContents = 3;  // places in an object
constexpr std::size_t kLongestName = 1000;        // bytes of a module's name, or a class's

}  // namespace

bool PickleParser::checkpoint_step(CheckpointOpcode opcode) {
  switch (opcode) {
    case CheckpointOpcode::PopMark:
      stack_.resize(fence_);
      return drop_mark();
    case CheckpointOpcode::ShortBinString:
      return string(1);
    case CheckpointOpcode::BinString:
      return string(4);
    case CheckpointOpcode::ShortBinBytes:
      return string(1, Kind::Bytes);
    case CheckpointOpcode::BinBytes:
      return string(4, Kind::Bytes);
    case CheckpointOpcode::BinBytes8:
    case CheckpointOpcode::ByteArray8:
      return string(8, Kind::Bytes);
    case CheckpointOpcode::EmptySet:
      return open(Kind::Set);
    case CheckpointOpcode::AddItems:
      return extend_to_mark(Kind::Set);
    case CheckpointOpcode::FrozenSet:
      return collect_to_mark(Kind::Set);
  }
  return refuse(std::uint8_t(opcode));
}

bool PickleParser::object_step(CallingOpcode opcode) {
  switch (opcode) {
    case CallingOpcode::Global:
      return global_lines();
    case CallingOpcode::StackGlobal:
      return global_of_stack();
    case CallingOpcode::Reduce:
    case CallingOpcode::NewObj:
      return object(2);
    case CallingOpcode::NewObjEx:
      return object(3);
    case CallingOpcode::Build:
      return build();
    case CallingOpcode::BinPersId:
      return persistent();
    default:
      return refuse(std::uint8_t(opcode));
  }
}

// Reads two lines of text: the module's name and the class's.
bool PickleParser::global_lines() {
  const std::string_view rest(reinterpret_cast<const char*>(file_.data()) + at_, left());
  const std::size_t first = rest.substr(0, kLongestName + 1).find('\n');
  if (first == std::string_view::npos) return fail("the name of a module does not end: the file is damaged");
  const std::size_t second = rest.substr(first + 1, kLongestName + 1).find('\n');
  if (second == std::string_view::npos) return fail("the name of a class does not end: the file is damaged");
  at_ += first + second + 2;
  return global(rest.substr(0, first), rest.substr(first + 1, second));
}

bool PickleParser::global_of_stack() {
  if (!needs(2)) return false;
  const PickleValue module = stack_[stack_.size() - 2], name = stack_.back();
  if (module.kind() != Kind::String || name.kind() != Kind::String) {
    return fail("names a class by a value that is not text: the file is damaged");
  }
  stack_.resize(stack_.size() - 2);
  return global(made_.string(module), made_.string(name));
}

bool PickleParser::global(std::string_view module, std::string_view name) {
  if (runs_programs(module, name)) {
    return fail(
        "names " + printable(module, kLongestName) + "." + printable(name, kLongestName) +
        ", which runs programs; no weights need it: do not give this file to Python, take it from another source");
  }
  made_.globals_.push_back({module, name, opcode_});
  return push({Kind::Global, made_.globals_.size() - 1});
}

// Makes an object of the top `values` items of the stack: what makes it, its arguments and, for NEWOBJ_EX, its named
// arguments. The named ones are not kept.
bool PickleParser::object(std::size_t values) {
  if (!needs(values)) return false;
  const auto first = stack_.end() - std::ptrdiff_t(values);
  const PickleValue made_by = first[0], arguments = first[1];
  if (arguments.kind() != Kind::Tuple) return fail("calls with arguments that are not a tuple: the file is damaged");
  stack_.erase(first, stack_.end());
  return add(Kind::Object, {made_by, arguments, PickleValue(), PickleValue()});
}

bool PickleParser::build() {
  if (!needs(2)) return false;
  const PickleValue state = stack_.back(), target = stack_[stack_.size() - 2];
  if (target.kind() != Kind::Object)
    return fail("sets the state of a value that is not an object: the file is damaged");
  made_.items_[made_.containers_[target.payload()].begin + kState] = state;
  stack_.pop_back();
  return true;
}

bool PickleParser::persistent() {
  if (!needs(1)) return false;
  const PickleValue what = stack_.back();
  stack_.pop_back();
  if (!add(Kind::Persistent, {what})) return false;
  made_.persistent_.push_back(stack_.back());
  return true;
}

// Pushes a new container with these items.
bool PickleParser::add(Kind kind, std::initializer_list<PickleValue> items) {
  if (!open(kind)) return false;
  for (const PickleValue item : items) {
    if (!push(item)) return false;
  }
  return extend(kind, items.size());
}

// Values that the file sets in an object, or appends to it, go into a dict or list of the object's own. Makes that if
// needed, and sets `target` to it.
bool PickleParser::enter_contents(PickleValue& target, Kind kind) {
  if (made_.containers_.size() >= limits_.containers) return too_many("lists, tuples and dicts", limits_.containers);
  const std::size_t place = made_.containers_[target.payload()].begin + kContents;
  if (made_.items_[place].kind() == Kind::Absent) made_.items_[place] = new_container(kind);
  target = made_.items_[place];
  return true;
}

}  // namespace ullage::read
