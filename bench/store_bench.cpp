// SPDX-License-Identifier: Apache-2.0
// Measures what one request costs in the store and in the C library, for typical sizes of tensors.
#include "ullage/store/os_pages.h"
#include "ullage/store/store.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

namespace {

using namespace ullage;
using namespace ullage::store;

void write_every_page(void* at, std::uint64_t size) {
  auto* bytes = static_cast<volatile char*>(at);
  for (std::uint64_t i = 0; i < size; i += 4096) bytes[i] = 1;
}

// Allocates and frees eight blocks, as an op does, and writes to each page of them, as ops write to tensors.
void store_request(benchmark::State& state) {
  static OsPages pages;
  static FixedLimit limit(4_GiB);
  static const std::unique_ptr<Store> store = Store::create(pages, limit).value();
  const Bytes size{static_cast<std::uint64_t>(state.range(0))};
  const auto once = [&] {
    std::array<Address, 8> blocks;
    for (Address& block : blocks) {
      block = std::get<Address>(store->allocate(size));
      write_every_page(reinterpret_cast<void*>(block.value), size.count);
    }
    for (const Address block : blocks) store->free(block);
  };
  once();  // warm-up: only the first time do pages come zeroed from the system
  for (auto _ : state) once();
  state.SetItemsProcessed(state.iterations() * 8);
}

void c_library_request(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    std::array<void*, 8> blocks;
    for (void*& block : blocks) {
      if (posix_memalign(&block, 64, size) != 0) state.SkipWithError("no memory");
      write_every_page(block, size);
    }
    for (void* block : blocks) std::free(block);
  }
  state.SetItemsProcessed(state.iterations() * 8);
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const std::int64_t size : {64, 4096, 60000, 65536, 1 << 20, 4 << 20, 64 << 20}) b->Arg(size);
}

BENCHMARK(c_library_request)->Apply(sizes)->Unit(benchmark::kMicrosecond);
BENCHMARK(store_request)->Apply(sizes)->Unit(benchmark::kMicrosecond);

}  // namespace
