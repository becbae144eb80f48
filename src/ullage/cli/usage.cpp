// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/usage.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <memory>
#include <utility>

namespace ullage::cli {
namespace {

class UsageFormatter final : public CLI::Formatter {
 public:
  explicit UsageFormatter(std::string usage) : usage_(std::move(usage)) { column_width(28); }
  std::string make_usage(const CLI::App*, std::string) const override { return "\nusage: " + usage_ + "\n"; }

 private:
  std::string usage_;
};

}  // namespace

void set_usage(CLI::App& app, const std::string& usage) {
  app.formatter(std::make_shared<UsageFormatter>(usage));
  app.set_help_flag("-h,--help", "print this and exit");
  app.set_version_flag("--version", "ullage " ULLAGE_VERSION, "print the version and exit");
}

}  // namespace ullage::cli
