// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds the addresses among the arguments of a kernel. A launch passes a pointer to each argument, but not its size.
// The sizes are in the kernel's machine code, an ELF file that nvcc compresses by zstd.

#include "ullage/drycard/card/abi.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ullage::drycard {

// What the machine code of a module says of one of its kernels.
struct KernelCode {
  std::vector<std::size_t> arguments;  // their sizes, in order; empty: the module does not have that kernel, or cannot
                                       // be read
  std::size_t size = 0;                // bytes that a card loads for it: instructions and constants
};
KernelCode kernel_code(std::span<const std::uint8_t> machine_code, std::string_view kernel);

// Returns the machine code that begins at `image`, an ELF file. Empty if it is none: text (PTX), or a container.
std::span<const std::uint8_t> machine_code_at(const void* image);

// Returns `code`, decompressed if zstd compressed it; any other code as it is. `size` is the size when decompressed.
// Empty if it cannot be decompressed: libzstd.so.1 is missing, or the code is damaged.
std::vector<std::uint8_t> decompressed(std::span<const std::uint8_t> code, std::size_t size);

// Finds the words among the arguments of one kernel that are addresses of a card.
//
// Closures are passed as structs, whose padding is not initialised. Half of an old address may stand beside a number,
// as in {0.2f, ....}. Together they look like an address. But at some launch another value stands there. A word that
// once held neither zero nor an address of a card is therefore no address in any later launch. Values that are no
// multiple of 4 are ignored too. Nearly all addresses of tensors are multiples of 4, and most such numbers (0.1f, 0.2f)
// are not.
class ArgumentWords {
 public:
  ArgumentWords() = default;
  // `sizes`: of the arguments, in bytes.
  explicit ArgumentWords(std::span<const std::size_t> sizes);

  // `arguments`: of a launch, a pointer to each. The calls for one kernel must not run at the same time.
  std::vector<Address> addresses(void* const* arguments);

 private:
  struct Word {
    std::size_t argument;
    std::size_t offset;  // in the argument, in bytes
  };
  std::vector<Word> words_;  // those that may be addresses
};

// Sets the stack below the caller to zero. Torch passes many arguments as structs on the stack and does not initialise
// all members. One example is the unused places of a list of tensors. Without this call, addresses that an earlier op
// left there would be taken for this op's. Call it before each op, from a function that torch calls then.
void clear_dead_stack();

}  // namespace ullage::drycard
