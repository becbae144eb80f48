// SPDX-License-Identifier: Apache-2.0
#include "drycard/card/card_library.h"

#include "folders.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace ullage::drycard {

CardLibrary::CardLibrary(std::initializer_list<std::pair<const char*, std::string>> environment) {
  path_ = testing::TempDir() + "ullage-drycard-" + std::to_string(::getpid());
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::setenv("ULLAGE_DRYCARD_LEDGER", path_.c_str(), 1);
  for (const auto& [name, value] : environment) ::setenv(name, value.c_str(), 1);
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (::ftruncate(fd, sizeof(CardLedger)) != 0) std::abort();
  void* place = ::mmap(nullptr, sizeof(CardLedger), PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  ledger_ = static_cast<const CardLedger*>(place);
  handle_ = ::dlopen((libraries_folder() / "libullage_drycard.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) ADD_FAILURE() << ::dlerror();
}

CardLibrary::~CardLibrary() { ::unlink(path_.c_str()); }

void* CardLibrary::find(const char* name) const {
  void* found = ::dlsym(handle_, name);
  if (found == nullptr) ADD_FAILURE() << name << " is not there";
  return found;
}

std::uintptr_t CardLibrary::allocate(std::size_t bytes) const {
  void* place = nullptr;
  return (*this)("cudaMalloc", &place, bytes) == 0 ? reinterpret_cast<std::uintptr_t>(place) : 0;
}

std::size_t CardLibrary::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  EXPECT_EQ((*this)("cudaMemGetInfo", &free, &total), 0);
  return free;
}

}  // namespace ullage::drycard
