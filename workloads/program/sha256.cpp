// SPDX-License-Identifier: Apache-2.0
#include "program/sha256.h"

#include <openssl/evp.h>

namespace ullage::program {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  ULLAGE_CHECK(context_->evp != nullptr && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1,
               "OpenSSL offers SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::update(const void* data, Bytes size) {
  ULLAGE_CHECK(context_ != nullptr, "update of a digest that is not finished");
  ULLAGE_CHECK(EVP_DigestUpdate(context_->evp, data, size.count) == 1, "OpenSSL takes what it is given");
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  ULLAGE_CHECK(context_ != nullptr, "finish of a digest that is not finished");
  ULLAGE_CHECK(EVP_DigestFinal_ex(context_->evp, digest, &length) == 1, "OpenSSL gives the digest");
  context_.reset();
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace ullage::program
