// SPDX-License-Identifier: Apache-2.0
// Marks of storages whose bytes are away. The moves are made up: the storages are plain ones of the CPU.
#include "ullage/runtime/pool/storage_marks.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/RefcountedDeleter.h>
#include <c10/core/StorageImpl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace ullage::runtime {
namespace {

using Moved = StorageMarks::Moved;

c10::intrusive_ptr<c10::StorageImpl> make_storage() {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), 64, c10::GetCPUAllocator(), false);
}

void meet(StorageMarks& marks, Address at, const c10::intrusive_ptr<c10::StorageImpl>& storage,
          bool in_collective = false) {
  const StorageUse use{.begin = at, .size = Bytes{64}, .storage = storage};
  marks.meet(std::span(&use, 1), in_collective);
}

bool is_marked(const c10::StorageImpl& storage) {
  try {
    return storage.data() == nullptr;
  } catch (const std::exception&) {
    return true;
  }
}

#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13

TEST(StorageMarks, AStorageIsMarkedWhileItIsAway) {
  StorageMarks marks;
  const auto storage = make_storage();
  meet(marks, Address{1}, storage);
  marks.moved(Address{1}, Moved::Away);
  EXPECT_FALSE(is_marked(*storage));
  marks.update();
  EXPECT_TRUE(is_marked(*storage));
  marks.moved(Address{1}, Moved::Back);
  marks.update();
  EXPECT_FALSE(is_marked(*storage));
}

TEST(StorageMarks, AStorageOfACollectiveIsNotMarkedFromThenOn) {
  StorageMarks marks;
  const auto storage = make_storage();
  meet(marks, Address{1}, storage);
  meet(marks, Address{1}, storage, /*in_collective=*/true);
  meet(marks, Address{1}, storage);
  marks.moved(Address{1}, Moved::Away);
  marks.update();
  EXPECT_FALSE(is_marked(*storage));
}

TEST(StorageMarks, StoragesAreComparedAlsoWhileTheyAreAway) {
  StorageMarks marks;
  const c10::Storage one(make_storage()), other(make_storage());
  const c10::Storage same = c10::newStorageImplFromRefcountedDataPtr(one);
  EXPECT_TRUE(is_shared_alias(&one, &same));
  meet(marks, Address{1}, c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(one.unsafeGetStorageImpl()));
  marks.moved(Address{1}, Moved::Away);
  marks.update();
  EXPECT_ANY_THROW(c10::isSharedStorageAlias(one, same)) << "so is_shared_alias() is needed";
  EXPECT_TRUE(is_shared_alias(&one, &same));
  EXPECT_FALSE(is_shared_alias(&one, &other));
}

TEST(StorageMarks, AMoveOfAFreedStorageMarksNoOtherAtItsAddress) {
  StorageMarks marks;
  const auto first = make_storage(), next = make_storage();
  meet(marks, Address{1}, first);
  marks.moved(Address{1}, Moved::Away);
  marks.forget(Address{1});
  meet(marks, Address{1}, next);
  marks.update();
  EXPECT_FALSE(is_marked(*next));
}

// A thread's update() may find that another thread has taken its moves and is setting their marks.
TEST(StorageMarks, AfterUpdateAThreadSeesItsStoragesAsTheyAre) {
  StorageMarks marks;
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended.load()) marks.update();
  });
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> storages;
  for (std::uint64_t i = 0; i < 100; ++i) {
    storages.push_back(make_storage());
    meet(marks, Address{i + 1}, storages.back());
  }
  int wrong = 0;
  for (int round = 0; round < 30000; ++round) {
    for (const Moved what : {Moved::Away, Moved::Back}) {
      for (std::uint64_t i = 0; i < storages.size(); ++i) marks.moved(Address{i + 1}, what);
    }
    marks.update();
    for (const auto& storage : storages) wrong += is_marked(*storage);
  }
  ended.store(true);
  other.join();
  EXPECT_EQ(wrong, 0);
}

#endif

}  // namespace
}  // namespace ullage::runtime
