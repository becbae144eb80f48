// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/pickle/pickle.h"

#include "ullage/read/pickle/pickle_bytes.h"
#include "ullage/read/pickle/pickle_opcodes.h"
#include "ullage/read/pickle/pickle_parser.h"

namespace ullage::read {
namespace {

// An integer of any length in 64 bits. `fits`: the bytes above the low eight only repeat the sign.
struct Wide {
  std::uint64_t low = 0;
  bool negative = false;
  bool fits = true;
};

Wide wide(std::span<const std::byte> bytes) {
  Wide number;
  if (bytes.empty()) return number;
  number.negative = (std::to_integer<unsigned>(bytes.back()) & 0x80) != 0;
  const std::byte filling{number.negative ? std::uint8_t(0xff) : std::uint8_t(0)};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i >= 8 && bytes[i] != filling) number.fits = false;
  }
  for (std::size_t i = 0; i < 8; ++i) {
    number.low |= std::uint64_t(i < bytes.size() ? bytes[i] : filling) << (8 * i);
  }
  return number;
}

// Returns how many bytes the length field after a string's opcode has.
std::size_t length_bytes(std::uint8_t opcode) {
  if (PickleOpcode(opcode) == PickleOpcode::ShortBinUnicode) return 1;
  if (CheckpointOpcode(opcode) == CheckpointOpcode::ShortBinString) return 1;
  return PickleOpcode(opcode) == PickleOpcode::BinUnicode8 ? 8 : 4;
}

// Returns the bytes after an opcode and its length field of `length` bytes. The parser has checked that they are there.
std::span<const std::byte> counted(std::span<const std::byte> file, std::uint64_t offset, std::size_t length) {
  return file.subspan(offset + 1 + length, little_endian(&file[offset + 1], length));
}

Wide long_integer(std::span<const std::byte> file, std::uint64_t offset) {
  return wide(counted(file, offset, PickleOpcode(file[offset]) == PickleOpcode::Long1 ? 1 : 4));
}

}  // namespace

Result<Pickle> Pickle::parse(std::span<const std::byte> file, const std::string& name, const PickleLimits& limits) {
  return PickleParser(file, name, limits).parse();
}

Result<Pickle> Pickle::parse_checkpoint(std::span<const std::byte> file, const std::string& name, std::uint64_t place,
                                        const PickleLimits& limits) {
  return PickleParser(file, name, limits, PickleContent::Checkpoint, place).parse();
}

std::string_view Pickle::string(PickleValue value) const {
  if (value.kind() != PickleValue::Kind::String) return {};
  const auto opcode = std::to_integer<std::uint8_t>(file_[value.payload()]);
  const auto bytes = counted(file_, value.payload(), length_bytes(opcode));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

PickleGlobal Pickle::global(PickleValue value) const {
  return value.kind() == PickleValue::Kind::Global ? globals_[value.payload()] : PickleGlobal{};
}

PickleObject Pickle::object(PickleValue value) const {
  if (value.kind() != PickleValue::Kind::Object) return {};
  const auto parts = items(value);
  return {parts[0], parts[1], parts[2], parts[3]};
}

std::optional<std::int64_t> Pickle::signed_integer(PickleValue value) const {
  if (value.kind() == PickleValue::Kind::Integer) return value.small_integer();
  if (value.kind() != PickleValue::Kind::LongInteger) return std::nullopt;
  const Wide number = long_integer(file_, value.payload());
  if (!number.fits || (std::int64_t(number.low) < 0) != number.negative) return std::nullopt;
  return std::int64_t(number.low);
}

std::optional<std::uint64_t> Pickle::unsigned_integer(PickleValue value) const {
  if (value.kind() == PickleValue::Kind::Integer && value.small_integer() >= 0) return value.small_integer();
  if (value.kind() != PickleValue::Kind::LongInteger) return std::nullopt;
  const Wide number = long_integer(file_, value.payload());
  if (!number.fits || number.negative) return std::nullopt;
  return number.low;
}

std::optional<double> Pickle::number(PickleValue value) const {
  if (value.kind() == PickleValue::Kind::Float) return big_endian_double(&file_[value.payload() + 1]);
  if (const auto integer = signed_integer(value)) return double(*integer);
  return std::nullopt;
}

std::optional<std::uint64_t> Pickle::offset(PickleValue value) const {
  switch (value.kind()) {
    case PickleValue::Kind::LongInteger:
    case PickleValue::Kind::Float:
    case PickleValue::Kind::String:
    case PickleValue::Kind::Bytes:
      return value.payload();
    case PickleValue::Kind::Global:
      return globals_[value.payload()].offset;
    case PickleValue::Kind::List:
    case PickleValue::Kind::Tuple:
    case PickleValue::Kind::Dict:
    case PickleValue::Kind::Set:
    case PickleValue::Kind::Object:
    case PickleValue::Kind::Persistent:
      return containers_[value.payload()].offset;
    default:
      return std::nullopt;
  }
}

}  // namespace ullage::read
