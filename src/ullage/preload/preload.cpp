// SPDX-License-Identifier: Apache-2.0

// libullage_preload.so, which `ullage run` puts into LD_PRELOAD: it brings Ullage's runtime into programs that were
// never linked to it. Every process of the program's tree loads it, shells and editors too, so it needs nothing but
// libc, looks once, and does nothing where there is no torch.
//
//   no ledger in the environment, no torch mapped, or the runtime mapped already (a linked program)  ->  nothing
//   torch of another version than the runtime was built against  ->  one line on stderr, no runtime
//   else  ->  dlopen of libullage_torch.so, whose own constructor starts the session
//
// The order of constructors: dlopen initialises what the runtime needs before the runtime itself, so torch's own
// constructors have run by then, and those of the program run afterwards: its first tensor is in the pool. A Python
// script maps torch after this and is not reached.

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* kTorch = "libtorch_cpu.so";  // every program with tensors maps it, one on a GPU too
constexpr const char* kRuntime = "libullage_torch.so";
constexpr const char* kFolders[] = {"/", "/../lib/"};        // from this library to the runtime
constexpr const char* kBuiltAgainst = ULLAGE_TORCH_VERSION;  // "2.13.0"; empty: there is no runtime in this build

struct Mapped {
  bool torch = false;
  bool runtime = false;
};

int look_at(dl_phdr_info* info, std::size_t, void* seen) {
  const char* slash = std::strrchr(info->dlpi_name, '/');
  const char* name = slash != nullptr ? slash + 1 : info->dlpi_name;
  auto* mapped = static_cast<Mapped*>(seen);
  if (std::strcmp(name, kTorch) == 0) mapped->torch = true;
  if (std::strcmp(name, kRuntime) == 0) mapped->runtime = true;
  return 0;
}

struct Text {
  char chars[64] = "";
};

// "2.13.0". Asked of torch's plain C interface, which is there since 2.7 (torch/csrc/inductor/aoti_torch/c/shim.h):
// major, minor and patch are the three upper bytes. at::show_config() would wake the driver of a GPU.
Text torch_version() {
  using Version = std::uint64_t (*)();
  Text text;
  const auto version = reinterpret_cast<Version>(dlsym(RTLD_DEFAULT, "aoti_torch_abi_version"));
  if (version == nullptr) {
    std::snprintf(text.chars, sizeof text.chars, "older than 2.7");
    return text;
  }
  const std::uint64_t parts = version();
  std::snprintf(text.chars, sizeof text.chars, "%u.%u.%u", static_cast<unsigned>(parts >> 56 & 255),
                static_cast<unsigned>(parts >> 48 & 255), static_cast<unsigned>(parts >> 40 & 255));
  return text;
}

// The runtime's file beside this library, or in the folder lib beside this one's.
bool find_runtime(char (&path)[PATH_MAX]) {
  Dl_info own = {};
  if (dladdr(reinterpret_cast<const void*>(&find_runtime), &own) == 0 || own.dli_fname == nullptr) return false;
  const char* slash = std::strrchr(own.dli_fname, '/');
  const int folder = slash != nullptr ? static_cast<int>(slash - own.dli_fname) : 0;
  for (const char* between : kFolders) {
    const int length = std::snprintf(path, sizeof path, "%.*s%s%s", folder, own.dli_fname, between, kRuntime);
    if (length > 0 && length < PATH_MAX && access(path, R_OK) == 0) return true;
  }
  return false;
}

__attribute__((constructor)) void bring_in_the_runtime() {
  const char* ledger = std::getenv("ULLAGE_LEDGER");
  if (ledger == nullptr || *ledger == '\0' || *kBuiltAgainst == '\0') return;
  Mapped mapped;
  dl_iterate_phdr(look_at, &mapped);
  if (!mapped.torch || mapped.runtime) return;

  const Text version = torch_version();
  if (std::strcmp(version.chars, kBuiltAgainst) != 0) {
    std::fprintf(stderr,
                 "ullage: this program runs torch %s, Ullage's runtime was built against %s; it runs without a budget "
                 "(build Ullage against torch %s)\n",
                 version.chars, kBuiltAgainst, version.chars);
    return;
  }
  char path[PATH_MAX];
  if (!find_runtime(path)) {
    std::fprintf(stderr, "ullage: %s does not stand beside libullage_preload.so; this program runs without a budget\n",
                 kRuntime);
  } else if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "ullage: the runtime cannot be loaded: %s; this program runs without a budget\n", dlerror());
  }
}

}  // namespace
