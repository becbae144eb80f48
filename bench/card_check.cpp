// SPDX-License-Identifier: Apache-2.0
// Measures what pages and copies cost on a card through the driver, and checks that every byte survives the pager.
// Needs only the driver: tools/gpu_check compiles base, store and cuda with it.
//   card_check [--library FILE] [--device N] [--pool MIB] [--operations N]
// Exit code 1: a byte was wrong or the card held more than it may. BadInput's code, 3: there is no card.
#include "ullage/base/exit_code.h"
#include "ullage/base/sizes.h"
#include "ullage/cuda/card_pages.h"
#include "ullage/cuda/host_tier.h"
#include "ullage/store/pager.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace {

using namespace ullage;
using store::PageKind;

constexpr int kTimes = 9;
constexpr Bytes kBlock = 64_MiB;

struct Options {
  std::string library = "libcuda.so.1";
  int device = 0;
  Bytes pool = 1_GiB;
  int operations = 2000;
};

[[noreturn]] void end(ExitCode code, const std::string& why) {
  std::fprintf(stderr, "card_check: %s\n", why.c_str());
  std::exit(to_int(code));
}

template <class T>
T must(Result<T> result) {
  if (!result) end(ExitCode::Failed, result.error().text());
  return std::move(result).value();
}

void must_be(bool so, const char* what) {
  if (!so) end(ExitCode::Failed, what);
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Returns the median of nine times of `work`; `before` runs ahead of each and is not timed. A first run, which warms
// up, does not count.
double median_of(const std::function<void()>& before, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i <= kTimes; ++i) {
    before();
    const double took = seconds_of(work);
    if (i > 0) times.push_back(took);
  }
  std::nth_element(times.begin(), times.begin() + kTimes / 2, times.end());
  return times[kTimes / 2];
}

void row(const char* what, double seconds, Bytes size = {}) {
  std::printf("| %-58s | %10.1f us |", what, seconds * 1e6);
  if (size > Bytes{}) std::printf(" %7.2f GB/s |", static_cast<double>(size.count) / seconds * 1e-9);
  std::printf("\n");
}

void print_figures(cuda::Driver& driver) {
  cuda::CardPages pages(driver);
  const Address at = must(pages.reserve(16_GiB)).begin;
  const Address other = at + 8_GiB;
  const auto nothing = [] {};
  row("wait for an idle card", median_of(nothing, [&] { must(driver.synchronize()); }));
  row("64 MiB: take from the driver and map",
      median_of([&] { pages.drop(at, kBlock); },
                [&] { must_be(pages.fill(at, kBlock, PageKind::Huge), "card full"); }));
  Address here = at;
  row("64 MiB: hand on to another address", median_of(nothing, [&] {
        const Address to = here == at ? other : at;
        must_be(pages.move(here, to, kBlock), "the driver moves no pages");
        here = to;
      }));
  std::vector<char> plain(kBlock.count, 1);
  row("64 MiB: copy out, host memory as it is",
      median_of(nothing, [&] { must(driver.copy_out(here, plain.data(), kBlock)); }), kBlock);
  const auto tier = must(cuda::HostTier::open(driver, kBlock, nullptr));
  const store::SpillSlot slot = must(tier->take(kBlock));
  using Sharing = store::Tier::Sharing;
  row("64 MiB: copy out, locked", median_of(nothing, [&] { must(tier->write(slot, here, Sharing::None, nullptr)); }),
      kBlock);
  row("64 MiB: copy in, locked", median_of(nothing, [&] { must(tier->read(slot, here)); }), kBlock);
}

// Bytes that the driver may keep on the card for itself, for locked host memory and for mapped pages.
constexpr Bytes kPageTables = 32_MiB;

// A random program of allocations, writes, checks, spills and frees. It reads and writes by copies, so it needs no
// kernel.
class Program final {
 public:
  Program(cuda::Driver& driver, store::Pager& pager, Bytes pool) : driver_(driver), pager_(pager), pool_(pool) {}

  void run(int operations) {
    const Bytes free_at_first = must(driver_.memory()).free;
    Bytes most{};
    std::mt19937_64 random(20261123);
    for (int i = 0; i < operations; ++i) {
      step(random());
      if (i % 16 == 0) most = std::max(most, saturating_sub(free_at_first, must(driver_.memory()).free));
    }
    while (!storages_.empty()) {
      check(storages_.begin()->first);
      free(storages_.begin()->first);
    }
    const store::PagerCounts moves = pager_.counts();
    std::printf("| pager: %d operations, %s moved out, %s back | %d wrong | card %s of %s |\n", operations,
                to_string(moves.spilled).c_str(), to_string(moves.restored).c_str(), wrong_, to_string(most).c_str(),
                to_string(pool_).c_str());
    must_be(moves.spilled > Bytes{}, "nothing was moved: the test tests nothing");
    if (most > pool_ + kPageTables)
      end(ExitCode::Failed, "the card held " + to_string(most) + " of " + to_string(pool_));
    if (wrong_ > 0) end(ExitCode::Failed, std::to_string(wrong_) + " storages came back with other bytes");
  }

 private:
  struct Storage {
    Bytes size;
    std::uint64_t seed;
  };

  void step(std::uint64_t draw) {
    if (storages_.size() < 8 || (storages_.size() < 40 && draw % 100 < 15)) return allocate(draw >> 8);
    const Address at = std::next(storages_.begin(), static_cast<long>((draw >> 8) % storages_.size()))->first;
    switch (draw % 8) {
      case 0:
        return free(at);
      case 1:
        pager_.planned().spill(at);
        return;
      case 2:
        return write(at);
      default:
        return check(at);
    }
  }
  void allocate(std::uint64_t draw) {
    // A sixteenth to an eighth of the pool; need not be whole pages.
    const Bytes size = Bytes{pool_.count / 16 + draw % (pool_.count / 16)};
    auto placed = pager_.allocate(size);
    must_be(std::holds_alternative<Address>(placed), "no room was made");
    const Address at = std::get<Address>(placed);
    storages_[at] = {size, 0};
    write(at);
  }
  void write(Address at) {
    Storage& storage = storages_.at(at);
    storage.seed = ++seed_;
    fill(storage);
    const std::vector<store::OpInput> input{{at, storage.size, true}};
    must_be(!pager_.begin_op(1, input), "no room for one storage");
    must(driver_.copy_in(bytes_.data(), at, storage.size));
    pager_.end_op();
  }
  void check(Address at) {
    const Storage& storage = storages_.at(at);
    fill(storage);
    seen_.resize(bytes_.size());
    const std::vector<store::OpInput> input{{at, storage.size, false}};
    must_be(!pager_.begin_op(2, input), "no room for one storage");
    must(driver_.copy_out(at, seen_.data(), storage.size));
    pager_.end_op();
    if (std::memcmp(seen_.data(), bytes_.data(), storage.size.count) != 0) ++wrong_;
  }
  void free(Address at) {
    pager_.free(at);
    storages_.erase(at);
  }
  void fill(const Storage& storage) {
    bytes_.resize(storage.size.count / 8 + 1);
    for (std::size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = storage.seed * 0x9e3779b97f4a7c15ull + i;
  }

  cuda::Driver& driver_;
  store::Pager& pager_;
  const Bytes pool_;
  std::map<Address, Storage> storages_;
  std::vector<std::uint64_t> bytes_, seen_;
  std::uint64_t seed_ = 0;
  int wrong_ = 0;
};

void check_bytes(cuda::Driver& driver, const Options& options) {
  cuda::CardPages pages(driver);
  store::FixedLimit limit(options.pool);
  const auto store = must(store::Store::create(pages, limit));
  const auto tier = must(cuda::HostTier::open(driver, options.pool * 8, nullptr));
  store::Pager::Settings without_faults;
  without_faults.heal_faults = without_faults.notices_writes = false;
  const std::unique_ptr<store::Pager> made = store::Pager::create(*store, tier.get(), without_faults);
  store::Pager& pager = *made;
  Program(driver, pager, options.pool).run(options.operations);
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = words[i];
    const char* value = words[i + 1];
    if (name == "--library")
      options.library = value;
    else if (name == "--device")
      options.device = std::atoi(value);
    else if (name == "--pool")
      options.pool = 1_MiB * std::strtoull(value, nullptr, 10);
    else if (name == "--operations")
      options.operations = std::atoi(value);
    else
      end(ExitCode::WrongUse, "no option '" + name + "': --library, --device, --pool, --operations");
  }
  if (count % 2 == 0) end(ExitCode::WrongUse, "the value of '" + std::string(words[count - 1]) + "' is missing");
  if (options.pool < 16_MiB) end(ExitCode::WrongUse, "--pool is 16 (MiB) or more");
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  auto driver = cuda::Driver::open(options.device, options.library);
  if (!driver) end(ExitCode::BadInput, driver.error().text());
  const cuda::Driver::Memory memory = must((*driver)->memory());
  std::printf("card %d: %s, %s free, pages of %s\n", options.device, to_string(memory.total).c_str(),
              to_string(memory.free).c_str(), to_string((*driver)->page()).c_str());
  print_figures(**driver);
  check_bytes(**driver, options);
  return 0;
}
