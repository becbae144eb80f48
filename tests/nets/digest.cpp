// SPDX-License-Identifier: Apache-2.0
#include "digest.h"

#include <openssl/evp.h>

#include <stdexcept>

namespace nets {
namespace {

void require(bool done) {
  if (!done) throw std::runtime_error("OpenSSL refused to digest");
}

}  // namespace

struct Digest::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Digest::Digest() : context_(std::make_unique<Context>()) {
  require(context_->evp != nullptr && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}

Digest::~Digest() = default;

void Digest::add(std::string_view text) { require(EVP_DigestUpdate(context_->evp, text.data(), text.size()) == 1); }

void Digest::add(std::string_view name, const at::Tensor& tensor) {
  std::string head(name);
  if (!tensor.defined()) {
    add(head + " none\n");
    return;
  }
  head += ' ';
  head += c10::toString(tensor.scalar_type());
  for (const std::int64_t size : tensor.sizes()) head += ' ' + std::to_string(size);
  add(head + '\n');
  const at::Tensor flat = tensor.detach().contiguous().cpu();
  require(EVP_DigestUpdate(context_->evp, flat.const_data_ptr(), flat.nbytes()) == 1);
}

std::string Digest::finish() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  require(EVP_DigestFinal_ex(context_->evp, bytes, &length) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace nets
