// SPDX-License-Identifier: Apache-2.0
// Runs the pager of the CPU on a card: the same class, with the driver's pages and two tiers. Kernels run long after
// they were launched. A model knows the contents of every storage, and each kernel checks its inputs when it runs.
#include "card.h"

#include "ullage/cuda/card_pages.h"
#include "ullage/cuda/host_tier.h"
#include "ullage/cuda/last_uses.h"
#include "ullage/store/pager.h"
#include "ullage/store/spill_file.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace ullage::cuda {
namespace {

using store::OpInput;
using store::Pager;

constexpr Bytes kRoom = 24_MiB;

std::uint64_t word(std::uint64_t seed, std::uint64_t i) { return seed * 0x9e3779b97f4a7c15ull + i; }

// Checks samples from begin to end, so that a page of another storage, a stale copy or half a copy is found.
bool holds(const std::uint64_t* at, Bytes size, std::uint64_t seed) {
  const std::uint64_t last = size.count / 8 - 1;
  for (std::uint64_t i = 0; i < last; i += 509)
    if (at[i] != word(seed, i)) return false;
  return at[last] == word(seed, last);
}
void fill(std::uint64_t* at, Bytes size, std::uint64_t seed) {
  for (std::uint64_t i = 0; i < size.count / 8; ++i) at[i] = word(seed, i);
}

// A kernel that reads or writes a storage some time after its launch.
struct Kernel {
  std::uint64_t* at;
  Bytes size;
  std::uint64_t seed;
  bool writes;
};
int wrong = 0;  // kernels that did not find the bytes that they were launched for

void run(void* argument) {
  const auto* kernel = static_cast<Kernel*>(argument);
  if (kernel->writes) {
    fill(kernel->at, kernel->size, kernel->seed);
  } else if (!holds(kernel->at, kernel->size, kernel->seed)) {
    ++wrong;
  }
  delete kernel;
}
void launch(Address at, Bytes size, std::uint64_t seed, bool writes) {
  auto* pointer = reinterpret_cast<std::uint64_t*>(at.value);
  stand_in_launch(run, new Kernel{pointer, size, seed, writes}, at.value, size.count);
}

// Records each use. If asked about bytes, runs the card's queue only up to their last use.
class KnownWork final : public Work {
 public:
  void used(Address at, Bytes size) { uses_.used(at, size, stand_in_launched()); }
  bool done(Address at, Bytes size) override {
    const auto last = uses_.last(at, size);
    if (last) stand_in_run(*last);
    return last.has_value();
  }
  void fresh(Address at, Bytes size) override { uses_.used(at, size, 0); }

 private:
  LastUses uses_;
};

class CardPagerTest : public CardTest {
 protected:
  void open(Bytes host, bool evict_all = false, bool knows_work = false) {
    CardTest::open(kRoom);
    if (knows_work) driver_->set_work(&work_);
    wrong = 0;
    pages_ = std::make_unique<CardPages>(*driver_);
    limit_ = std::make_unique<store::FixedLimit>(kRoom);
    auto store = store::Store::create(*pages_, *limit_);
    ASSERT_TRUE(store) << store.error().text();
    store_ = std::move(*store);
    store::SpillFile::Options options;
    options.bridge = driver_.get();
    auto file = store::SpillFile::open({std::filesystem::temp_directory_path().string(), 1_GiB}, options);
    ASSERT_TRUE(file) << file.error().text();
    file_ = std::move(*file);
    tier_ = HostTier::open(*driver_, host, file_.get()).value();
    Pager::Settings settings;
    settings.heal_faults = settings.notices_writes = false;
    settings.evict_all = evict_all;
    settings.libraries_take_blocks = libraries_take_blocks_;
    if (knows_work) settings.used = [this](Address at, Bytes size) { work_.used(at, size); };
    pager_ = Pager::create(*store_, tier_.get(), settings);
  }
  void TearDown() override {
    EXPECT_LE(stand_in_counts().used_peak, kRoom.count) << "the card's own count passed the limit";
    pager_.reset();
    tier_.reset();
    file_.reset();
    store_.reset();
    pages_.reset();
    CardTest::TearDown();
  }

  struct Storage {
    Bytes size;
    std::uint64_t seed = 0;
  };
  Address pick(std::uint64_t draw) const {
    return std::next(storages_.begin(), static_cast<long>(draw % storages_.size()))->first;
  }
  void allocate(std::uint64_t draw) {
    static constexpr std::uint64_t kSizes[] = {2 << 20, 3 << 20, 4 << 20, (4 << 20) + 8, 6 << 20};
    const Bytes size{kSizes[draw % std::size(kSizes)]};
    const auto placed = pager_->allocate(size);
    ASSERT_TRUE(std::holds_alternative<Address>(placed));
    const Address at = std::get<Address>(placed);
    ASSERT_FALSE(pager_->begin_op(1, std::vector<OpInput>{{at, size, true}}));
    storages_[at] = {size, ++seed_};
    launch(at, size, seed_, true);
    pager_->end_op();
  }
  void free(Address at) {
    pager_->free(at);
    storages_.erase(at);
  }
  // An op that reads one storage and reads or writes another.
  void op(std::uint64_t draw) {
    const Address first = pick(draw >> 4);
    const Address second = pick(draw >> 20);
    const bool writes = draw % 3 == 0;
    const bool sure = draw % 5 < 3;
    const std::vector<OpInput> inputs{{first, storages_.at(first).size, false, false, sure},
                                      {second, storages_.at(second).size, writes, false, sure && !writes}};
    ASSERT_FALSE(pager_->begin_op(draw % 31, inputs));
    launch(first, storages_.at(first).size, storages_.at(first).seed, false);
    Storage& other = storages_.at(second);
    if (writes) other.seed = ++seed_;
    launch(second, other.size, other.seed, writes);
    pager_->end_op();
  }
  void step(std::uint64_t draw) {
    if (storages_.size() < 4 || (storages_.size() < 20 && draw % 100 < 20)) return allocate(draw >> 8);
    const Address at = pick(draw >> 8);
    switch (draw % 12) {
      case 0:
      case 1:
        return free(at);
      case 2:
        pager_->planned().spill(at);
        return;
      case 3:
        return pager_->planned().write_ahead(at);
      case 4:
        return pager_->planned().read_ahead(at);
      default:
        return op(draw >> 12);
    }
  }
  void run_program(int steps) {
    std::mt19937_64 random(20261123);
    for (int i = 0; i < steps && !HasFatalFailure(); ++i) step(random());
    for (const auto& [at, storage] : storages_) {
      ASSERT_FALSE(pager_->begin_op(1, std::vector<OpInput>{{at, storage.size, false}}));
      launch(at, storage.size, storage.seed, false);
      pager_->end_op();
    }
    ASSERT_TRUE(driver_->synchronize());
    EXPECT_EQ(wrong, 0);
    while (!storages_.empty()) free(storages_.begin()->first);
  }

  bool libraries_take_blocks_ = false;
  KnownWork work_;
  std::unique_ptr<CardPages> pages_;
  std::unique_ptr<store::FixedLimit> limit_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::SpillFile> file_;
  std::unique_ptr<HostTier> tier_;
  std::unique_ptr<Pager> pager_;
  std::map<Address, Storage> storages_;
  std::uint64_t seed_ = 0;
};

TEST_F(CardPagerTest, KeepsEveryBitOfLateKernels) {
  open(1_GiB);
  run_program(800);
  EXPECT_GT(pager_->counts().evicted_on_demand, 100u);
  EXPECT_EQ(tier_->counts().passed_down, Bytes{});
}

TEST_F(CardPagerTest, KeepsEveryBitThroughBothTiers) {
  open(24_MiB);
  run_program(800);
  EXPECT_GT(tier_->counts().passed_down, Bytes{});
  EXPECT_GT(tier_->counts().in_use_peak, Bytes{});
}

TEST_F(CardPagerTest, KeepsEveryBitWhereEverythingLeavesBeforeEveryOp) {
  open(1_GiB, /*evict_all=*/true);
  run_program(300);
}

TEST_F(CardPagerTest, WaitsForTheWorkOnTheBytesAlone) {
  open(24_MiB, /*evict_all=*/false, /*knows_work=*/true);
  const std::uint64_t waits = stand_in_counts().waits;
  run_program(2000);
  EXPECT_GT(pager_->counts().evicted_on_demand, 100u);
  EXPECT_EQ(stand_in_counts().waits, waits + 1) << "for everything, but at the program's end";
}

TEST_F(CardPagerTest, WaitsForTheWorkOnTheBytesWhereEverythingLeavesBeforeEveryOp) {
  open(1_GiB, /*evict_all=*/true, /*knows_work=*/true);
  run_program(600);
}

// A tier whose writes wait at a gate and only then read the pages that they copy.
class GatedTier final : public store::Tier {
 public:
  explicit GatedTier(store::Tier& below) : below_(below) {}
  Result<store::SpillSlot> take(Bytes size) override { return below_.take(size); }
  Status write(const store::SpillSlot& slot, Address from, Sharing sharing, store::CopyGate* copies) override {
    entered.set_value();
    gate.get_future().wait();
    return below_.write(slot, from, sharing, copies);
  }
  Status read(const store::SpillSlot& slot, Address into) override { return below_.read(slot, into); }
  void give(const store::SpillSlot& slot) override { below_.give(slot); }

  std::promise<void> entered, gate;

 private:
  store::Tier& below_;
};

TEST_F(CardPagerTest, TakesNoPagesFromUnderACopy) {
  open(1_GiB);
  GatedTier gated(*tier_);
  Pager::Settings settings;
  settings.heal_faults = settings.notices_writes = false;
  const std::unique_ptr<Pager> gated_pager = Pager::create(*store_, &gated, settings);
  Pager& pager = *gated_pager;
  const Address at = std::get<Address>(pager.allocate(16_MiB));
  auto spilled = std::async(std::launch::async, [&] { return pager.planned().spill(at); });
  gated.entered.get_future().wait();
  auto freed = std::async(std::launch::async, [&] {
    pager.free(at);
    return std::get<Address>(pager.allocate(20_MiB));  // 16 MiB of it are those pages
  });
  EXPECT_EQ(freed.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  gated.gate.set_value();
  static_cast<void>(spilled.get());  // whether or not the spill came before the free
  pager.free(freed.get());
}

// While a copy waits for the work on its bytes, an op of the program runs.
class WorkThatOpsInterrupt final : public Work {
 public:
  bool done(Address, Bytes) override {
    if (const auto op = std::exchange(next_op, nullptr)) op();
    return false;  // so that all work is waited for
  }
  void fresh(Address, Bytes) override {}

  std::function<void()> next_op;
};

class CopyThatOpsInterruptTest : public CardPagerTest {
 protected:
  void SetUp() override {
    open(1_GiB);
    allocate(0);
    driver_->set_work(&interrupted_);
    at_ = storages_.begin()->first;
    size_ = storages_.at(at_).size;
  }
  void TearDown() override {
    run_program(0);  // checks the bytes
    driver_->set_work(nullptr);
    if (has_background_) {
      pager_->begin_capture();  // keeps the background thread, which never ends, from all work
      static_cast<void>(pager_.release());
    }
    CardPagerTest::TearDown();
  }
  void begin_op(bool writes) { ASSERT_FALSE(pager_->begin_op(2, std::vector<OpInput>{{at_, size_, writes}})); }
  void end_op(bool writes) {
    if (writes) storages_.at(at_).seed = ++seed_;
    launch(at_, size_, storages_.at(at_).seed, writes);
    pager_->end_op();
  }

  bool has_background_ = false;
  WorkThatOpsInterrupt interrupted_;
  Address at_;
  Bytes size_;
};

TEST_F(CopyThatOpsInterruptTest, WaitsAgainForAnOpThatRead) {
  pager_->saved(at_);
  interrupted_.next_op = [&] { begin_op(false), end_op(false); };
  const std::uint64_t waits = stand_in_counts().waits;
  EXPECT_TRUE(pager_->planned().spill(at_));
  EXPECT_EQ(stand_in_counts().waits - waits, 3u) << "two before the copy, one before the pages go";
  EXPECT_EQ(stand_in_counts().copies_out, 1u);
}

TEST_F(CopyThatOpsInterruptTest, IsNotGivenIfAnOpWrites) {
  interrupted_.next_op = [&] { begin_op(true), end_op(true); };
  EXPECT_TRUE(pager_->planned().spill(at_));
  EXPECT_EQ(stand_in_counts().copies_out, 1u) << "that of the bytes which the op wrote";
}

TEST_F(CopyThatOpsInterruptTest, IsNotGivenWhileAnOpHasTheBytes) {
  pager_->saved(at_);
  interrupted_.next_op = [&] { begin_op(false); };
  EXPECT_FALSE(pager_->planned().spill(at_)) << "the op has it";
  EXPECT_EQ(stand_in_counts().copies_out, 0u);
  end_op(false);
}

// The op began before the copy was ordered, and is in flight when the order comes to its turn. Nobody would notice that
// the op writes after the copy.
TEST_F(CopyThatOpsInterruptTest, IsNotGivenIfAnOpBeganBeforeIt) {
  pager_->planned().follow_plan(true);
  std::promise<void> waits;
  interrupted_.next_op = [&] { waits.set_value(); };
  begin_op(true);  // its kernel comes after the copy would be done
  pager_->planned().write_ahead(at_);
  has_background_ = true;
  std::thread([pager = pager_.get()] { pager->run_in_background(); }).detach();
  waits.get_future().wait();
  for (int i = 0; i < 100 && stand_in_counts().copies_out == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(stand_in_counts().copies_out, 0u);
  end_op(true);
  EXPECT_TRUE(pager_->planned().spill(at_));
}

TEST_F(CardPagerTest, HoldsWhatACaptureUses) {
  open(1_GiB);
  const auto op = [&](Address at, Bytes size) {
    const auto missing = pager_->begin_op(7, std::vector<OpInput>{{at, size, false}});
    if (!missing) pager_->end_op();
    return missing;
  };
  const Address captured = std::get<Address>(pager_->allocate(8_MiB));
  const Address other = std::get<Address>(pager_->allocate(8_MiB));
  const Address away = std::get<Address>(pager_->allocate(4_MiB));
  ASSERT_TRUE(pager_->planned().spill(away));
  pager_->begin_capture();
  EXPECT_FALSE(op(captured, 8_MiB));
  const auto missing = op(away, 4_MiB);
  ASSERT_TRUE(missing);
  EXPECT_NE(missing->spill_failure.find("while a CUDA graph is captured"), std::string::npos);
  EXPECT_FALSE(pager_->planned().spill(other)) << "nothing moves";
  EXPECT_TRUE(std::holds_alternative<store::Shortage>(pager_->allocate(16_MiB))) << "nor makes way";
  pager_->end_capture();

  EXPECT_FALSE(pager_->planned().spill(captured)) << "its address stands in the graph";
  const Address more = std::get<Address>(pager_->allocate(14_MiB));  // evicts `other`, as the card has 24 MiB
  EXPECT_FALSE(pager_->planned().spill(captured));
  EXPECT_TRUE(std::holds_alternative<store::Shortage>(pager_->allocate(18_MiB)));
  for (const Address one : {captured, other, away, more}) pager_->free(one);
  const auto all = pager_->allocate(22_MiB);  // a freed storage is no longer held for the capture
  ASSERT_TRUE(std::holds_alternative<Address>(all));
  pager_->free(std::get<Address>(all));
}

// Example: an op such as batch norm writes to its running statistics although its schema does not say so.
TEST_F(CardPagerTest, KeepsWhatAnOpWroteThatSaidItReads) {
  open(1_GiB);
  allocate(0);
  const Address at = storages_.begin()->first;
  const Bytes size = storages_.at(at).size;
  ASSERT_TRUE(pager_->planned().spill(at));
  ASSERT_FALSE(pager_->begin_op(2, std::vector<OpInput>{{at, size, false}}));
  storages_.at(at).seed = ++seed_;
  launch(at, size, seed_, true);
  pager_->end_op();
  ASSERT_TRUE(pager_->planned().spill(at));
  run_program(0);
  EXPECT_EQ(pager_->counts().rewrites_avoided, Bytes{});
}

TEST_F(CardPagerTest, WritesOnceWhatOpsSurelyReadAlone) {
  open(1_GiB);
  allocate(0);
  const Address at = storages_.begin()->first;
  const auto [size, seed] = storages_.at(at);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(pager_->planned().spill(at));
    ASSERT_FALSE(pager_->begin_op(2, std::vector<OpInput>{{at, size, false, /*sliceable=*/false, /*only_read=*/true}}));
    launch(at, size, seed, false);
    pager_->end_op();
  }
  EXPECT_EQ(pager_->counts().rewrites_avoided, size + size);
  EXPECT_EQ(pager_->counts().written, size);
  run_program(0);
}

TEST_F(CardPagerTest, KeepsWhatWasWrittenOutsideOfAnOp) {
  open(1_GiB);
  allocate(0);
  const Address at = storages_.begin()->first;
  ASSERT_TRUE(pager_->planned().spill(at));
  ASSERT_FALSE(pager_->bring_back(at, /*may_write=*/true));
  storages_.at(at).seed = ++seed_;
  launch(at, storages_.at(at).size, seed_, true);
  ASSERT_TRUE(driver_->synchronize());
  ASSERT_TRUE(pager_->planned().spill(at));
  run_program(0);
}

TEST_F(CardPagerTest, WritesOnceWhatAutogradSaved) {
  open(1_GiB);
  allocate(0);
  const Address at = storages_.begin()->first;
  pager_->saved(at);
  ASSERT_TRUE(pager_->planned().spill(at));
  op(1 << 12);  // reads it
  ASSERT_TRUE(pager_->planned().spill(at));
  EXPECT_EQ(pager_->counts().rewrites_avoided, storages_.at(at).size);
  pager_->released(at);
  run_program(0);
}

// cuBLAS allocates its workspaces like tensors, keeps them, and writes to them without any notice.
TEST_F(CardPagerTest, LeavesWhereItIsWhatNoOpWasSeenToHave) {
  libraries_take_blocks_ = true;
  open(1_GiB);
  const Address workspace = std::get<Address>(pager_->allocate(4_MiB));
  const Address input = std::get<Address>(pager_->allocate(4_MiB));
  ASSERT_FALSE(pager_->begin_op(1, std::vector<OpInput>{{input, 4_MiB, true}}));
  const Address made = std::get<Address>(pager_->allocate(4_MiB));
  const Address in_the_op = std::get<Address>(pager_->allocate(4_MiB));  // the library keeps this one
  pager_->end_op(true, std::vector<Address>{made});
  pager_->evict_all();
  for (const Address kept : {workspace, in_the_op}) {
    EXPECT_FALSE(pager_->planned().spill(kept));
    stand_in_launch([](void* at) { *static_cast<int*>(at) = 7; }, reinterpret_cast<void*>(kept.value), kept.value, 4);
  }
  ASSERT_TRUE(driver_->synchronize());
  EXPECT_EQ(pager_->counts().spilled, 8_MiB) << "the input and the output alone";
  const Address large = std::get<Address>(pager_->allocate(16_MiB));
  EXPECT_TRUE(std::holds_alternative<store::Shortage>(pager_->allocate(4_MiB))) << "of 24 MiB they have 8";
  for (const Address one : {workspace, input, made, in_the_op, large}) pager_->free(one);
  const auto all = pager_->allocate(22_MiB);
  ASSERT_TRUE(std::holds_alternative<Address>(all)) << "freed, it holds nothing back";
  pager_->free(std::get<Address>(all));
}

TEST_F(CardPagerTest, GivesNothingBackWhileWorkIsCaptured) {
  open(1_GiB);
  pager_->free(std::get<Address>(pager_->allocate(8_MiB)));  // idle from now on
  pager_->begin_capture();
  *limit_ = store::FixedLimit(2_MiB);
  const std::uint64_t waits = stand_in_counts().waits;
  EXPECT_EQ(pager_->trim(), Bytes{});
  EXPECT_EQ(pager_->drop_idle(), Bytes{});
  EXPECT_EQ(store_->counts().resident, 8_MiB);
  EXPECT_EQ(stand_in_counts().waits, waits) << "a wait would end the capture";
  pager_->end_capture();
  pager_->trim();
  EXPECT_EQ(store_->counts().resident, 2_MiB);
  *limit_ = store::FixedLimit(kRoom);
}

TEST_F(CardPagerTest, WaitsForNothingWhileAllFits) {
  open(1_GiB);
  const auto step_of_program = [&] {
    const Address a = std::get<Address>(pager_->allocate(6_MiB));
    const Address b = std::get<Address>(pager_->allocate(4_MiB));
    ASSERT_FALSE(pager_->begin_op(1, std::vector<OpInput>{{a, 6_MiB, true}, {b, 4_MiB, true}}));
    pager_->end_op();
    pager_->free(a);
    pager_->free(b);
  };
  step_of_program();
  const std::uint64_t waits = stand_in_counts().waits;
  for (int i = 0; i < 50; ++i) step_of_program();
  EXPECT_EQ(stand_in_counts().waits, waits);
}

}  // namespace
}  // namespace ullage::cuda
