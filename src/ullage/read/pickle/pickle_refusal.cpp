// SPDX-License-Identifier: Apache-2.0
// The error messages of PickleParser.
#include "ullage/read/file/printable.h"
#include "ullage/read/pickle/pickle_parser.h"

#include <algorithm>

namespace ullage::read {
namespace {

// Ends of messages: after an opcode's name (calls, is_strange) or after a limit.
struct Refusals {
  std::string_view calls, is_strange, limit;
};
constexpr Refusals kOfSnapshots = {"could run code; a memory snapshot holds only data",
                                   "does not occur in memory snapshots", "the limit for snapshots"};
constexpr Refusals kOfCheckpoints = {"could run code; torch.save writes no such thing", "does not occur in checkpoints",
                                     "the limit for checkpoints"};

const Refusals& words(PickleContent content) {
  return content == PickleContent::Snapshot ? kOfSnapshots : kOfCheckpoints;
}

// Removes the first line from `text` and returns it.
std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace

bool PickleParser::begins_well() {
  if (file_.empty()) return fail("the file is empty");
  if (file_.size() > limits_.file_bytes) return too_many("bytes", limits_.file_bytes);
  const unsigned first = std::to_integer<unsigned>(file_[0]);
  if (PickleOpcode(first) == PickleOpcode::Proto) return true;
  return fail("not a pickle of protocol 2 or later: it begins with byte " + std::to_string(first) + ", not with 128");
}

bool PickleParser::refuse(std::uint8_t opcode) {
  const std::string name(opcode_name(opcode));
  if (name.empty()) return fail("byte " + std::to_string(opcode) + " is not a pickle opcode: the file is damaged");
  if (calls(opcode)) return fail("opcode " + name + called_name(opcode) + " " + std::string(words(content_).calls));
  return fail("opcode " + name + " " + std::string(words(content_).is_strange));
}

// Returns " (posix.system)" if the file names what it asks for; else empty.
std::string PickleParser::called_name(std::uint8_t opcode) const {
  std::string_view module, name;
  if (CallingOpcode(opcode) == CallingOpcode::Global || CallingOpcode(opcode) == CallingOpcode::Inst) {
    std::string_view rest(reinterpret_cast<const char*>(file_.data()) + at_, left());
    module = next_line(rest);
    name = next_line(rest);
  } else if (CallingOpcode(opcode) == CallingOpcode::StackGlobal && above_mark() >= 2) {
    module = made_.string(stack_[stack_.size() - 2]);
    name = made_.string(stack_.back());
  } else {
    return {};
  }
  return " (" + printable(module, kNameInMessage) + "." + printable(name, kNameInMessage) + ")";
}

bool PickleParser::fail(const std::string& message) {
  error_ = Error{Error::Kind::BadFile, message, name_ + ":" + std::to_string(place_ + opcode_)};
  return false;
}

bool PickleParser::cut_short(std::uint64_t bytes) {
  return fail("needs " + std::to_string(bytes) + " bytes more, " + std::to_string(left()) +
              " are left: the file is cut short or damaged");
}

bool PickleParser::too_few(std::size_t values) {
  return fail("takes " + std::to_string(values) + " values, " + std::to_string(above_mark()) +
              " are there: the file is damaged");
}

bool PickleParser::too_many(const char* what, std::size_t limit) {
  return fail("more than " + std::to_string(limit) + " " + what + ", " + std::string(words(content_).limit));
}

}  // namespace ullage::read
