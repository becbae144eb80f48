// SPDX-License-Identifier: Apache-2.0
// Tests our allocator in front of PyTorch's own (libc10_cuda.so) with two stand-ins. The one for the CUDA runtime gives
// PyTorch's allocator memory that is only counted. The one for the driver gives the pool pages with bytes.
// test_card_pool.py builds this program once for each version of torch.
#include "ullage/cuda/card_pages.h"
#include "ullage/cuda/host_tier.h"
#include "ullage/runtime/card/card_seam.h"
#include "ullage/runtime/pool/stream_order.h"
#include "ullage/store/pager.h"

#include "fake_cudart.h"
#include "stand_in_driver.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <variant>

// In a whole torch, ATen's CUDA hooks call this. The function is exported but declared in no header.
namespace c10::cuda::_internal {
C10_CUDA_API void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

extern "C" ullage::runtime::CardAllocator* ullage_put_before_cuda(ullage::runtime::CardMemory& memory);

namespace ullage::runtime {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;
namespace abi = cuda::abi;

// Compares driver_abi.h with CUDA's own header.
static_assert(sizeof(abi::AllocationProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(abi::AllocationProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(offsetof(abi::AllocationProperties, windows) == offsetof(CUmemAllocationProp, win32HandleMetaData));
static_assert(offsetof(abi::AllocationProperties, flags) == offsetof(CUmemAllocationProp, allocFlags));
static_assert(sizeof(abi::AllocationFlags) == sizeof(CUmemAllocationProp::allocFlags));
static_assert(sizeof(abi::AccessDescription) == sizeof(CUmemAccessDesc));
static_assert(offsetof(abi::AccessDescription, flags) == offsetof(CUmemAccessDesc, flags));
static_assert(sizeof(abi::Location) == sizeof(CUmemLocation) && sizeof(abi::Result) == sizeof(CUresult));
static_assert(sizeof(abi::Pointer) == sizeof(CUdeviceptr) &&
              sizeof(abi::Handle) == sizeof(CUmemGenericAllocationHandle));
static_assert(abi::kSuccess == CUDA_SUCCESS && abi::kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(abi::kPinned == CU_MEM_ALLOCATION_TYPE_PINNED && abi::kOnDevice == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(abi::kReadWrite == CU_MEM_ACCESS_FLAGS_PROT_READWRITE && abi::kLeast == CU_MEM_ALLOC_GRANULARITY_MINIMUM);
static_assert(abi::kNonBlocking == CU_STREAM_NON_BLOCKING && abi::kPortable == CU_MEMHOSTREGISTER_PORTABLE);

constexpr Bytes kOurs = 32_MiB;
constexpr Bytes kTheirs = 100_MiB;

// The pool of the process: a pager and little else. A process has one pool for good, so all tests share it.
class World final : public CardMemory {
 public:
  World() {
    FakeDeviceSettings settings;
    settings.total = kTheirs.count;
    fake_cuda_configure(&settings);
    stand_in_reset(kOurs.count, (1_GiB).count);
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    c10::cuda::detail::init_p2p_access_cache(1);  // expandable segments query it
    caching::init(1);
    driver = cuda::Driver::open(0, ULLAGE_STAND_IN_DRIVER).value();
    pages = std::make_unique<cuda::CardPages>(*driver);
    store = store::Store::create(*pages, limit).value();
    tier = cuda::HostTier::open(*driver, 64_MiB, nullptr).value();
    store::Pager::Settings without_faults;
    without_faults.heal_faults = without_faults.notices_writes = false;
    pager = store::Pager::create(*store, tier.get(), without_faults);
  }

  int card() const override { return 0; }
  Bytes least() const override { return 4_MiB; }
  bool ready() override { return is_ready; }
  c10::DataPtr allocate(Bytes size) override {
    auto placed = pager->allocate(size);
    if (const auto* shortage = std::get_if<store::Shortage>(&placed))
      TORCH_CHECK_WITH(OutOfMemoryError, false, "no room for ", shortage->refusal.requested.count);
    const Address at = std::get<Address>(placed);
    order.taken(at);
    auto* const pointer = reinterpret_cast<void*>(at.value);
    return {pointer, pointer, &World::free, {c10::DeviceType::CUDA, 0}};
  }
  bool owns(const void* at) const override { return store->owns({reinterpret_cast<std::uint64_t>(at)}); }
  void used(const void* at, const c10::Stream& on) override { order.used({reinterpret_cast<std::uint64_t>(at)}, on); }
  void theirs_made(const void* at, Bytes size) override { theirs[at] = size; }
  void theirs_goes(const void* at) override { EXPECT_EQ(theirs.erase(at), 1u); }
  bool give_way(Bytes) override {
    if (spare.empty()) return false;
    spare.pop_front();
    ++gave_way;
    return true;
  }
  void captures(bool begin) override { capturing += begin ? 1 : -1; }
  void drop_idle() override { store->drop_idle(); }
  store::StoreCounts counts() const override { return store->counts(); }

  std::unique_ptr<cuda::Driver> driver;
  std::unique_ptr<cuda::CardPages> pages;
  store::FixedLimit limit{kOurs};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<cuda::HostTier> tier;
  std::unique_ptr<store::Pager> pager;
  StreamOrder order{{c10::DeviceType::CUDA, 0}};
  std::map<const void*, Bytes> theirs;
  int capturing = 0;
  bool is_ready = true;
  std::deque<c10::DataPtr> spare;  // give_way() frees these one by one
  int gave_way = 0;
  CardAllocator* torchs = nullptr;

 private:
  static void free(void* at);
};

World& world() {
  static auto* one = [] {
    auto* made = new World;
    made->torchs = ullage_put_before_cuda(*made);
    return made;
  }();
  return *one;
}

void World::free(void* at) {
  const Address begin{reinterpret_cast<std::uint64_t>(at)};
  world().order.freed(begin);
  world().pager->free(begin);
}

c10::DataPtr take(Bytes size) { return c10::GetAllocator(c10::DeviceType::CUDA)->allocate(size.count); }
Address at(const c10::DataPtr& block) { return {reinterpret_cast<std::uint64_t>(block.get())}; }
bool ours(const c10::DataPtr& block) { return world().store->owns(at(block)); }
std::uint64_t stream_waits() {
  FakeDeviceCounters counters{};
  fake_cuda_counters(&counters);
  return counters.stream_waits;
}

TEST(CardPool, TakesTheLargeRequestsAndLeavesTheSmallOnes) {
  world();
  const c10::DataPtr large = take(4_MiB);
  const Bytes small_size{(4_MiB).count - 1};
  const c10::DataPtr small = take(small_size);
  EXPECT_TRUE(ours(large));
  EXPECT_FALSE(ours(small));
  EXPECT_EQ(large.device(), c10::Device(c10::DeviceType::CUDA, 0));
  EXPECT_EQ(caching::get()->name(), "native");
  *static_cast<std::uint64_t*>(large.get()) = 1;  // there is memory behind it
  EXPECT_EQ(world().theirs.at(small.get()), small_size) << "told, though it is not ours";
}

TEST(CardPool, CountsBothInTheStatistics) {
  const auto allocated = [] { return caching::getDeviceStats(0).allocated_bytes[0].current; };
  const std::int64_t before = allocated();
  const c10::DataPtr large = take(6_MiB);
  EXPECT_EQ(allocated() - before, (6_MiB).count);
  const c10::DataPtr small = take(1_MiB);
  EXPECT_EQ(allocated() - before, (7_MiB).count);
  EXPECT_GE(caching::getDeviceStats(0).reserved_bytes[0].current, allocated());
}

TEST(CardPool, MakesRoomByEvictingAndKeepsTheBytes) {
  std::vector<c10::DataPtr> blocks;
  for (std::uint64_t i = 0; i < 6; ++i) {  // 48 MiB in 32 MiB
    blocks.push_back(take(8_MiB));
    *static_cast<std::uint64_t*>(blocks.back().get()) = 1000 + i;
  }
  EXPECT_LE(stand_in_counts().used_peak, kOurs.count);
  for (std::uint64_t i = 0; i < 6; ++i) {
    ASSERT_FALSE(world().pager->bring_back(at(blocks[i])));
    EXPECT_EQ(*static_cast<std::uint64_t*>(blocks[i].get()), 1000 + i);
  }
}

TEST(CardPool, RefusesInItsOwnWordsAndStaysUsable) {
  try {
    static_cast<void>(take(64_MiB));
    FAIL() << "64 MiB in 32";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("no room for 67108864"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(ours(take(4_MiB)));
}

TEST(CardPool, GivesWayToTheAllocatorBefore) {
  World& all = world();
  void* big = caching::raw_alloc((60_MiB).count);
  for (int i = 0; i < 3; ++i) all.spare.push_back(take(3_MiB));
  const int before = all.gave_way;
  std::vector<void*> more;
  bool thrown = false;
  try {
    for (int i = 0; i < 60; ++i) more.push_back(caching::raw_alloc((3_MiB).count));
  } catch (const c10::OutOfMemoryError&) {
    thrown = true;  // PyTorch's own error, when nothing is left to give way
  }
  EXPECT_TRUE(thrown);
  EXPECT_EQ(all.gave_way - before, 3);
  EXPECT_TRUE(all.spare.empty());
  for (void* one : more) caching::raw_delete(one);
  caching::raw_delete(big);
  caching::emptyCache();
}

TEST(CardPool, LeavesPrivatePoolsAlone) {
  const c10::MempoolId_t pool{0, 7};
  caching::get()->createOrIncrefPool(0, pool, nullptr);
  caching::get()->beginAllocateToPool(0, pool, [](cudaStream_t) { return true; });
  EXPECT_EQ(world().capturing, 1);
  const c10::DataPtr captured = take(8_MiB);
  caching::get()->endAllocateToPool(0, pool);
  EXPECT_EQ(world().capturing, 0);
  EXPECT_FALSE(ours(captured));
  EXPECT_TRUE(ours(take(8_MiB)));
}

TEST(CardPool, OrdersStreamsBehindWhatWasFreedOnOthers) {
  const auto first = c10::cuda::getStreamFromPool(false, 0);
  const auto second = c10::cuda::getStreamFromPool(false, 0);
  const std::uint64_t before = stream_waits();
  {
    const c10::cuda::CUDAStreamGuard on(first);
    static_cast<void>(take(4_MiB));
    static_cast<void>(take(4_MiB));
  }
  EXPECT_EQ(stream_waits(), before + 1) << "for the default stream of the tests before";
  const std::uint64_t alone = stream_waits();
  {
    const c10::cuda::CUDAStreamGuard on(first);
    static_cast<void>(take(4_MiB));
  }
  EXPECT_EQ(stream_waits(), alone) << "a program of one stream waits for nothing";
  {
    const c10::cuda::CUDAStreamGuard on(second);
    const c10::DataPtr block = take(4_MiB);
    EXPECT_EQ(stream_waits(), alone + 2) << "for the default one and the first";
    caching::recordStream(block, first);
  }
  const c10::cuda::CUDAStreamGuard on(first);
  static_cast<void>(take(4_MiB));
  EXPECT_EQ(stream_waits(), alone + 3) << "for the second; what is its own comes in order";
}

TEST(CardPool, DoesNotShareWhatItMayMove) {
  const c10::DataPtr block = take(4_MiB);
  std::size_t size = 0;
  EXPECT_THROW(caching::getBaseAllocation(block.get(), &size), c10::Error);
}

TEST(CardPool, LeavesAllToPyTorchBeforeTheBudgetBegins) {
  world().is_ready = false;
  const c10::DataPtr early = take(8_MiB);
  world().is_ready = true;
  EXPECT_FALSE(ours(early));
  EXPECT_TRUE(ours(take(8_MiB)));
}

TEST(CardPool, KeepsPyTorchToWhatIsAllowed) {
  caching::emptyCache();
  CardAllocator& torchs = *world().torchs;
  const Bytes before = torchs.reserved();
  torchs.allow(before + 20_MiB);
  std::vector<void*> blocks;
  const auto fill = [&] {
    try {
      for (int i = 0; i < 30; ++i) blocks.push_back(caching::raw_alloc((3_MiB).count));
      return false;
    } catch (const c10::OutOfMemoryError&) {
      return true;
    }
  };
  EXPECT_TRUE(fill());
  EXPECT_LE(torchs.reserved(), before + 20_MiB);
  EXPECT_GE(blocks.size(), 4u);
  caching::setMemoryFraction(1.0, 0);  // called by the program: must not lift the bound
  EXPECT_TRUE(fill());
  EXPECT_LE(torchs.reserved(), before + 20_MiB);
  EXPECT_EQ(caching::getMemoryFraction(0), 1.0);
  torchs.allow(kTheirs);
  EXPECT_FALSE(blocks.empty() || fill() == false) << "the card is full before 60 blocks of 3 MiB";
  EXPECT_GT(torchs.reserved(), before + 20_MiB);
  for (void* one : blocks) caching::raw_delete(one);
  caching::emptyCache();
}

}  // namespace
}  // namespace ullage::runtime

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  const int failed = RUN_ALL_TESTS();
  std::fflush(nullptr);
  std::_Exit(failed);  // skips the stand-ins' destructors
}
