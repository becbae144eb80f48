// SPDX-License-Identifier: Apache-2.0
#include "ullage/drycard/cuda_libraries.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cctype>

namespace ullage::drycard {
namespace {

struct Family {
  std::string_view library;
  std::string_view prefix;    // of its functions
  bool capital_next = false;  // a capital must follow: "cudaMalloc" belongs to "cuda", "cudart_function" does not
};

// A function belongs to the longest prefix that fits.
constexpr std::array kFamilies = {
    Family{"libcuda", "cu", true},
    Family{"libcudart", "cuda", true},
    Family{"libcudart", "__cuda", true},
    Family{"libcublas", "cublas"},
    Family{"libcublasLt", "cublasLt"},
    Family{"libcudnn", "cudnn"},
    Family{"libcudss", "cudss"},
    Family{"libcufft", "cufft"},
    Family{"libcufile", "cuFile"},
    Family{"libcupti", "cupti"},
    Family{"libcurand", "curand"},
    Family{"libcusolver", "cusolver"},
    Family{"libcusolverMg", "cusolverMg"},
    Family{"libcusparse", "cusparse"},
    Family{"libcusparseLt", "cusparseLt"},
    Family{"libnccl", "nccl"},
    Family{"libnccl", "pnccl"},
    Family{"libnvJitLink", "nvJitLink"},
    Family{"libnvJitLink", "__nvJitLink"},
    Family{"libnvToolsExt", "nvtx"},
    Family{"libnvfatbin", "nvFatbin"},
    Family{"libnvidia-ml", "nvml", true},
    Family{"libnvjpeg", "nvjpeg"},
    Family{"libnvrtc", "nvrtc"},
    Family{"libnvrtc", "__nvrtc"},
    Family{"libnvshmem_host", "nvshmem"},
};

bool is_hash(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

std::string_view cuda_library(std::string_view soname) {
  std::string_view stem = soname.substr(0, soname.find(".so"));
  if (stem.size() == soname.size() || soname.find('/') != soname.npos) return {};  // stubs are files named so
  if (const auto dash = stem.rfind('-'); dash != stem.npos && is_hash(stem.substr(dash + 1)))
    stem = stem.substr(0, dash);
  for (const auto& family : kFamilies) {
    if (stem == family.library) return family.library;
  }
  // Parts of cuDNN ("libcudnn_ops") count as cuDNN. Only the real libcudnn needs them, never a stub.
  return stem.substr(0, 9) == "libcudnn_" ? std::string_view("libcudnn") : std::string_view();
}

std::string_view cuda_library_of_function(std::string_view name) {
  const Family* longest = nullptr;
  for (const auto& family : kFamilies) {
    if (name.substr(0, family.prefix.size()) != family.prefix || name.size() == family.prefix.size()) continue;
    if (family.capital_next && std::isupper(static_cast<unsigned char>(name[family.prefix.size()])) == 0) continue;
    if (longest == nullptr || family.prefix.size() > longest->prefix.size()) longest = &family;
  }
  return longest == nullptr ? std::string_view() : longest->library;
}

int major_version(std::string_view soname) {
  const auto at = soname.find(".so.");
  if (at == soname.npos) return 0;
  int number = 0;
  std::from_chars(soname.data() + at + 4, soname.data() + soname.size(), number);
  return number;
}

}  // namespace ullage::drycard
