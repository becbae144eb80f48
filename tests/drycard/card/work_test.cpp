// SPDX-License-Identifier: Apache-2.0
// Tests that the dry card finds errors that a real card would punish. Each check is seen firing here, and not firing
// where the program is right.
#include "drycard/card/card_library.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace ullage::drycard {
namespace {

using Address = std::uintptr_t;
using Code = std::vector<std::uint8_t>;
constexpr std::size_t kPage = 2 * kMib;

struct LaunchGrid {
  unsigned x = 1, y = 1, z = 1;
};
struct PageProperties {  // CUmemAllocationProp: pinned, on card 0
  int type = 1, handle_types = 0, where = 1, card = 0;
  void* windows = nullptr;
  unsigned char flags[8] = {};
};

template <class T>
void add(Code& to, T value) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(&value);
  to.insert(to.end(), begin, begin + sizeof value);
}

constexpr std::size_t kCode = 640;

// The machine code of a kernel with arguments of these sizes: the description of the arguments, and the size of the
// instructions.
Code machine_code(const std::string& kernel, const std::vector<std::uint16_t>& sizes) {
  Code attributes;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    add<std::uint8_t>(attributes, 4), add<std::uint8_t>(attributes, 23), add<std::uint16_t>(attributes, 12);
    add<std::uint32_t>(attributes, 0), add(attributes, static_cast<std::uint16_t>(i)),
        add<std::uint16_t>(attributes, 0);
    add(attributes, static_cast<std::uint32_t>(sizes[i]) << 18 | 0x1f000u);
  }
  const std::string names =
      std::string(1, '\0') + ".shstrtab" + '\0' + ".nv.info." + kernel + '\0' + ".text." + kernel + '\0';
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_shoff = sizeof header, header.e_shentsize = sizeof(Elf64_Shdr), header.e_shnum = 3, header.e_shstrndx = 0;
  Elf64_Shdr texts = {}, info = {}, text = {};
  texts.sh_name = 1, texts.sh_offset = sizeof header + 3 * sizeof texts, texts.sh_size = names.size();
  info.sh_name = 11, info.sh_offset = texts.sh_offset + names.size(), info.sh_size = attributes.size();
  text.sh_name = static_cast<Elf64_Word>(names.find(".text.")), text.sh_type = SHT_NOBITS, text.sh_size = kCode;
  Code all;
  add(all, header), add(all, texts), add(all, info), add(all, text);
  all.insert(all.end(), names.begin(), names.end());
  all.insert(all.end(), attributes.begin(), attributes.end());
  return all;
}

class CheckedCard {
 public:
  CheckedCard() : card_({{"ULLAGE_DRYCARD_CHECKS", "1"}, {"ULLAGE_DRYCARD_CARD", "a100-80gb"}}) {
    EXPECT_EQ(card_("cuMemAddressReserve", &range_, 64 * kPage, std::size_t{0}, Address{0}, 0ull), 0);
    EXPECT_EQ(card_("cudaStreamCreateWithFlags", &stream_, 1u), 0);
    EXPECT_EQ(card_("cudaStreamCreateWithFlags", &other_, 1u), 0);
    const Code code = machine_code("kernel", {8, 24});
    add<std::uint32_t>(fat_, 0xba55ed50), add<std::uint16_t>(fat_, 1), add<std::uint16_t>(fat_, 16);
    add<std::uint64_t>(fat_, 32 + code.size());
    add<std::uint16_t>(fat_, 2), add<std::uint16_t>(fat_, 0), add<std::uint32_t>(fat_, 32);
    add<std::uint64_t>(fat_, code.size()), add<std::uint64_t>(fat_, 0), add<std::uint32_t>(fat_, 0);
    add<std::uint32_t>(fat_, 80);
    fat_.insert(fat_.end(), code.begin(), code.end());
    wrapper_ = {0x466243b1, 1, fat_.data()};
    using Register = void** (*)(const void*);
    void** module = reinterpret_cast<Register>(card_.find("__cudaRegisterFatBinary"))(&wrapper_);
    card_("__cudaRegisterFunction", module, static_cast<const void*>(&function_), static_cast<char*>(nullptr),
          static_cast<const char*>("kernel"));
  }

  ~CheckedCard() {
    for (void* event : events_) EXPECT_EQ(card_("cudaEventDestroy", event), 0);
    for (void* stream : {stream_, other_}) EXPECT_EQ(card_("cudaStreamDestroy", stream), 0);
  }
  CheckedCard(const CheckedCard&) = delete;
  CheckedCard& operator=(const CheckedCard&) = delete;

  void* make_event() {
    events_.push_back(nullptr);
    EXPECT_EQ(card_("cudaEventCreateWithFlags", &events_.back(), 2u), 0);
    return events_.back();
  }
  std::uint64_t map(std::size_t page) {
    std::uint64_t handle = 0;
    const PageProperties properties;
    EXPECT_EQ(card_("cuMemCreate", &handle, kPage, &properties, 0ull), 0);
    EXPECT_EQ(map(page, handle), 0);
    return handle;
  }
  int map(std::size_t page, std::uint64_t handle) {
    return card_("cuMemMap", at(page), kPage, std::size_t{0}, handle, 0ull);
  }
  int unmap(std::size_t page) { return card_("cuMemUnmap", at(page), kPage); }
  // Launches a kernel with two addresses: an argument, and the second word of a struct.
  void launch(Address first, Address second, void* stream) {
    struct Three {
      Address words[3];
    } three{{7, second, 9}};
    void* arguments[] = {&first, &three};
    EXPECT_EQ(card_("cudaLaunchKernel", static_cast<const void*>(&function_), LaunchGrid{}, LaunchGrid{},
                    static_cast<void**>(arguments), std::size_t{0}, stream),
              0);
  }
  Address at(std::size_t page) const { return range_ + page * kPage; }
  std::uint64_t findings() const { return card_.ledger().findings.load(); }
  std::string first() const { return card_.ledger().finding[0].text.data(); }

  CardLibrary card_;
  void* stream_ = nullptr;
  void* other_ = nullptr;

 private:
  std::vector<void*> events_;
  struct {
    std::uint32_t magic, version;
    const std::uint8_t* header;
  } wrapper_ = {};
  static inline const char function_ = 0;
  Code fat_;
  Address range_ = 0;
};

TEST(DryCardWork, ALaunchOnAPageThatIsAwayIsFound) {
  CheckedCard card;
  card.map(0), card.map(1);
  card.launch(card.at(0) + 512, card.at(1), card.stream_);
  EXPECT_EQ(card.findings(), 0u) << card.first();
  EXPECT_EQ(card.card_.ledger().unread_launches.load(), 0u);
  card.launch(card.at(0), card.at(2), card.stream_);
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_NE(card.first().find("nothing is mapped at"), std::string::npos) << card.first();
  EXPECT_TRUE(card.first().ends_with(": kernel")) << card.first();
}

// Half of an old address in the padding of a struct, beside a number, looks like an address.
TEST(DryCardWork, AWordThatWasOnceAPlainNumberIsNoAddress) {
  CheckedCard card;
  card.map(0);
  constexpr Address kNumber = 0x3e4ccccd;  // 0.2f
  card.launch(card.at(0), kNumber | Address{0x5558} << 32, card.stream_);
  card.launch(card.at(0), card.at(2), card.stream_);
  EXPECT_EQ(card.findings(), 0u) << card.first();
  card.launch(card.at(2), 0, card.stream_);  // the other word still counts
  EXPECT_EQ(card.findings(), 1u);
}

TEST(DryCardWork, CopiesAndMemsetsOnAPageThatIsAwayAreFound) {
  CheckedCard card;
  card.map(0);
  std::vector<char> host(2 * kPage);
  const auto* from = static_cast<const void*>(host.data());
  void* const to = host.data();
  for (const std::size_t bytes : {kPage, 2 * kPage}) {  // the second page is not there
    const std::uint64_t expected = bytes == kPage ? 0 : 1;
    const std::uint64_t before = card.findings();
    card.card_("cuMemcpyHtoDAsync_v2", card.at(0), from, bytes, card.stream_);
    EXPECT_EQ(card.findings() - before, expected) << card.first();
    card.card_("cuStreamSynchronize", card.stream_);
    card.card_("cuMemcpyDtoHAsync_v2", to, card.at(0), bytes, card.stream_);
    EXPECT_EQ(card.findings() - before, 2 * expected) << card.first();
    card.card_("cuStreamSynchronize", card.stream_);
    card.card_("cudaMemsetAsync", card.at(0), 0, bytes, card.stream_);
    EXPECT_EQ(card.findings() - before, 3 * expected) << card.first();
  }
}

TEST(DryCardWork, ProductsAndPlansOnAPageThatIsAwayAreFound) {
  CheckedCard card;
  card.map(0);
  void* cublas = nullptr;
  ASSERT_EQ(card.card_("cublasCreate_v2", &cublas), 0);
  const auto multiply = [&](std::size_t page) {
    const float one = 1;
    const auto* scale = static_cast<const void*>(&one);
    const Address all = card.at(0);
    return card.card_("cublasSgemm_v2", cublas, 0, 0, 8, 8, 8, scale, all, 8, all, 8, scale, card.at(page), 8);
  };
  EXPECT_EQ(multiply(0), 0);
  EXPECT_EQ(card.findings(), 0u) << card.first();
  EXPECT_EQ(multiply(2), 0);
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_NE(card.first().find("cublasSgemm_v2"), std::string::npos) << card.first();
  EXPECT_EQ(card.card_("cublasDestroy_v2", cublas), 0);

  constexpr int kVariantPack = 16, kPointers = 1001, kPointerType = 6;
  void* cudnn = nullptr;
  ASSERT_EQ(card.card_("cudnnCreate", &cudnn), 0);
  void* pack = nullptr;
  ASSERT_EQ(card.card_("cudnnBackendCreateDescriptor", kVariantPack, &pack), 0);
  for (const std::size_t page : {std::size_t{0}, std::size_t{2}}) {
    const Address pointers[] = {card.at(0), card.at(page)};
    const auto* values = static_cast<const void*>(pointers);
    EXPECT_EQ(card.card_("cudnnBackendSetAttribute", pack, kPointers, kPointerType, std::int64_t{2}, values), 0);
    EXPECT_EQ(card.card_("cudnnBackendExecute", cudnn, static_cast<void*>(nullptr), pack), 0);
    EXPECT_EQ(card.findings(), page == 0 ? 1u : 2u) << card.first();
  }
  EXPECT_EQ(card.card_("cudnnBackendDestroyDescriptor", pack), 0);
  EXPECT_EQ(card.card_("cudnnDestroy", cudnn), 0);
}

TEST(DryCardWork, AnUnmapBeforeTheWorkIsDoneIsFound) {
  CheckedCard card;
  card.map(0), card.map(1);
  card.launch(card.at(0), card.at(1), card.stream_);
  EXPECT_EQ(card.unmap(1), 0);
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_NE(card.first().find("cuMemUnmap of 2097152 bytes, while kernel may still work"), std::string::npos)
      << card.first();
}

TEST(DryCardWork, AnUnmapAfterAnyKindOfWaitIsRight) {
  CheckedCard card;
  for (int kind = 0; kind < 5; ++kind) {
    card.map(0);
    card.launch(card.at(0), 0, card.stream_);
    void* const event = card.make_event();
    EXPECT_EQ(card.card_("cudaEventRecord", event, kind == 4 ? card.other_ : card.stream_), 0);
    if (kind == 0) card.card_("cudaStreamSynchronize", card.stream_);
    if (kind == 1) card.card_("cuCtxSynchronize");
    if (kind == 2) card.card_("cudaEventSynchronize", event);
    if (kind == 3) {
      while (card.card_("cudaEventQuery", event) != 0) {
      }
    }
    if (kind == 4) {  // the other stream waits for this one, and is waited for
      EXPECT_EQ(card.card_("cudaEventRecord", event, card.stream_), 0);
      EXPECT_EQ(card.card_("cudaStreamWaitEvent", card.other_, event, 0u), 0);
      card.launch(0, 0, card.other_);
      card.card_("cudaStreamSynchronize", card.other_);
    }
    EXPECT_EQ(card.unmap(0), 0);
    EXPECT_EQ(card.findings(), 0u) << kind << ": " << card.first();
  }
}

TEST(DryCardWork, AnEventOfAnotherMomentIsNotAWait) {
  CheckedCard card;
  card.map(0);
  void* const event = card.make_event();
  EXPECT_EQ(card.card_("cudaEventRecord", event, card.stream_), 0);
  card.launch(card.at(0), 0, card.stream_);
  EXPECT_EQ(card.card_("cudaEventSynchronize", event), 0);
  EXPECT_EQ(card.unmap(0), 0);
  EXPECT_EQ(card.findings(), 1u);
}

TEST(DryCardWork, QuestionsAreAnsweredBothWays) {
  CheckedCard card;
  card.map(0);
  int yes = 0;
  for (int i = 0; i < 200; ++i) {
    card.launch(card.at(0), 0, card.stream_);
    yes += card.card_("cudaStreamQuery", card.stream_) == 0;
  }
  EXPECT_GT(yes, 10);
  EXPECT_LT(yes, 190);
}

TEST(DryCardWork, AKernelBesideTheCopyOfItsBytesIsFound) {
  CheckedCard card;
  for (const bool ordered : {true, false}) {
    const std::size_t page = ordered ? 0 : 1;
    card.map(page);
    std::vector<char> host(kPage);
    EXPECT_EQ(
        card.card_("cuMemcpyHtoDAsync_v2", card.at(page), static_cast<const void*>(host.data()), kPage, card.other_),
        0);
    if (ordered) {
      void* const event = card.make_event();
      card.card_("cudaEventRecord", event, card.other_);
      card.card_("cudaStreamWaitEvent", card.stream_, event, 0u);
    }
    card.launch(card.at(page) + kMib, 0, card.stream_);
    EXPECT_EQ(card.findings(), ordered ? 0u : 1u) << card.first();
  }
}

// The default stream waits for streams made without cudaStreamNonBlocking, and they for it.
TEST(DryCardWork, TheDefaultStreamIsOrderedWithBlockingStreams) {
  CheckedCard card;
  void* blocking = nullptr;
  ASSERT_EQ(card.card_("cudaStreamCreateWithFlags", &blocking, 0u), 0);
  void* const by_default = nullptr;
  std::vector<char> host(3 * kPage);
  const auto move_out = [&](std::size_t page, void* stream) {
    card.card_("cuMemcpyDtoHAsync_v2", static_cast<void*>(&host[page * kPage]), card.at(page), kPage, stream);
  };
  for (std::size_t page = 0; page < 3; ++page) card.map(page);
  card.launch(card.at(0), 0, by_default);
  move_out(0, blocking);
  card.launch(card.at(1), 0, blocking);
  move_out(1, by_default);
  EXPECT_EQ(card.findings(), 0u) << card.first();
  card.launch(card.at(2), 0, by_default);
  move_out(2, card.stream_);  // this stream does not wait
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_EQ(card.card_("cudaStreamDestroy", blocking), 0);
}

TEST(DryCardWork, ANumberBesideHalfAnOldAddressIsNotLookedAt) {
  CheckedCard card;
  card.map(0);
  card.launch(card.at(0), card.at(2) + 0xcd, card.stream_);  // as 0.2f ends
  EXPECT_EQ(card.findings(), 0u) << card.first();
}

// As Triton does it.
class DryCardModules : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(All, DryCardModules, testing::Bool());

TEST_P(DryCardModules, ALaunchOfCodeThatWasLoadedAtRunTimeIsLookedAt) {
  const bool by_file = GetParam();
  CheckedCard card;
  card.map(0), card.map(1);
  Code code = machine_code("made_later", {8, 8});
  void *module = nullptr, *kernel = nullptr;
  const std::string file = testing::TempDir() + "made_later.cubin";  // torch.compile's launcher loads files
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(code.data()), std::ssize(code));
  const auto* image = static_cast<const void*>(code.data());
  ASSERT_EQ(
      by_file ? card.card_("cuModuleLoad", &module, file.c_str()) : card.card_("cuModuleLoadData", &module, image), 0);
  code.assign(code.size(), 0);  // the program need not keep it
  ASSERT_EQ(card.card_("cuModuleGetFunction", &kernel, module, static_cast<const char*>("made_later")), 0);
  const auto launch = [&](Address first, Address second) {
    void* arguments[] = {&first, &second};
    EXPECT_EQ(card.card_("cuLaunchKernel", kernel, 1u, 1u, 1u, 32u, 1u, 1u, 0u, card.stream_,
                         static_cast<void**>(arguments), static_cast<void**>(nullptr)),
              0);
  };
  launch(card.at(0), card.at(1));
  EXPECT_EQ(card.findings(), 0u) << card.first();
  EXPECT_EQ(card.card_.ledger().unread_launches.load(), 0u);
  launch(card.at(0), card.at(2));
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_TRUE(card.first().ends_with(": made_later")) << card.first();
  EXPECT_EQ(card.card_.ledger().kernels.load(), 1u);
  EXPECT_EQ(card.card_.ledger().kernel_code.load(), kCode);
}

TEST(DryCardWork, ALaunchWhoseArgumentsCannotBeReadIsCounted) {
  CheckedCard card;
  const char unknown = 0;  // no module has registered this function
  Address first = card.at(0);
  void* arguments[] = {&first};
  EXPECT_EQ(card.card_("cudaLaunchKernel", static_cast<const void*>(&unknown), LaunchGrid{}, LaunchGrid{},
                       static_cast<void**>(arguments), std::size_t{0}, card.stream_),
            0);
  EXPECT_EQ(card.card_.ledger().unread_launches.load(), 1u);
}

TEST(DryCardWork, AMoveOfBytesThatAKernelMayStillUseIsFound) {
  CheckedCard card;
  for (const bool ordered : {true, false}) {
    const std::size_t page = ordered ? 0 : 1;
    card.map(page);
    std::vector<char> host(kPage);
    card.launch(card.at(page), 0, card.stream_);
    if (ordered) card.card_("cuStreamSynchronize", card.stream_);
    EXPECT_EQ(card.card_("cuMemcpyDtoHAsync_v2", static_cast<void*>(host.data()), card.at(page), kPage, card.other_),
              0);
    EXPECT_EQ(card.findings(), ordered ? 0u : 1u) << card.first();
  }
}

TEST(DryCardWork, MapsAndReleasesTwiceAreFound) {
  CheckedCard card;
  const std::uint64_t handle = card.map(0);
  EXPECT_NE(card.map(0, handle), 0);
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_EQ(card.unmap(0), 0);
  EXPECT_NE(card.unmap(0), 0);
  EXPECT_EQ(card.findings(), 2u);
  EXPECT_EQ(card.card_("cuMemRelease", handle), 0);
  EXPECT_NE(card.card_("cuMemRelease", handle), 0);
  EXPECT_EQ(card.findings(), 3u);
}

TEST(DryCardWork, ARequestBeyondTheCardIsFound) {
  CheckedCard card;
  EXPECT_NE(card.card_.allocate(70 * kGib), 0u);
  EXPECT_EQ(card.findings(), 0u);
  std::uint64_t handle = 0;
  const PageProperties properties;
  EXPECT_EQ(card.card_("cuMemCreate", &handle, 20 * kGib, &properties, 0ull), 2);
  EXPECT_EQ(card.findings(), 1u);
  EXPECT_EQ(card.first(), "a request of 21474836480 bytes: the card has no more");
}

TEST(DryCardWork, UnlockingWhatACopyUsesIsFound) {
  CheckedCard card;
  card.map(0);
  void* const host = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (const bool waits : {true, false}) {
    EXPECT_EQ(card.card_("cuMemHostRegister_v2", host, kPage, 0u), 0);
    EXPECT_EQ(card.card_("cuMemcpyDtoHAsync_v2", host, card.at(0), kPage, card.stream_), 0);
    if (waits) card.card_("cuStreamSynchronize", card.stream_);
    EXPECT_EQ(card.card_("cuMemHostUnregister", host), 0);
    EXPECT_EQ(card.findings(), waits ? 0u : 1u) << card.first();
  }
}

TEST(DryCardWork, NothingIsCheckedUnlessAskedFor) {
  ::unsetenv("ULLAGE_DRYCARD_CHECKS");
  CardLibrary card({});
  Address range = 0;
  EXPECT_EQ(card("cuMemAddressReserve", &range, kPage, std::size_t{0}, Address{0}, 0ull), 0);
  EXPECT_NE(card("cuMemUnmap", range, kPage), 0);
  EXPECT_EQ(card.ledger().findings.load(), 0u);
}

}  // namespace
}  // namespace ullage::drycard
